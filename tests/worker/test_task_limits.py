"""Timeouts of tasks, by a worker."""

from typing import Any

import pytest

from django_jobqueue.backend import cancel, wait
from django_jobqueue.compat import TaskResultStatus
from django_jobqueue.exceptions import JobCancelled, TaskTimeout
from django_jobqueue.worker import Worker
from tests.tasks import sample

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker() -> Any:
    worker = Worker(poll_interval=0.2)
    worker.start()
    yield worker
    assert worker.stop(30)


@pytest.mark.parametrize("task", [sample.endless, sample.endless_async])
def test_a_task_that_runs_too_long_fails_by_task_timeout(worker: Worker, task: Any) -> None:
    by_task, by_call = task.enqueue(), task.using(timeout=0.3).enqueue()

    for result, seconds in ((by_task, 0.5), (by_call, 0.3)):
        wait(result, 30)
        assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
        [error] = result.errors
        assert error.exception_class is TaskTimeout
        assert f"ran longer than its timeout of {seconds} s" in error.traceback


def test_a_running_task_that_is_cancelled_has_failed_by_that(worker: Worker) -> None:
    result = sample.endless_async.using(timeout=60).enqueue()
    while result.status == TaskResultStatus.READY:
        result.refresh()

    assert cancel(result) is True
    wait(result, 30)
    assert (result.status, [one.exception_class for one in result.errors]) == (
        TaskResultStatus.FAILED,
        [JobCancelled],
    )
