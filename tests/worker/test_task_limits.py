"""Timeouts of tasks, by a worker."""

import os
from typing import Any

import pytest

from django_jobqueue.backend import cancel, wait
from django_jobqueue.compat import TaskResultStatus
from django_jobqueue.exceptions import JobCancelled, TaskTimeout
from django_jobqueue.worker import Worker
from tests.tasks import sample

#: Seconds: on a busy machine a process takes its time to set up Django.
STARTS_WITHIN = 90.0

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


def test_an_isolated_task_runs_in_another_process_and_is_killed_there() -> None:
    hangs, after = sample.apart_gil.enqueue(), sample.apart.enqueue()
    worker = Worker(poll_interval=0.2, threads=1, interrupt_grace=0.3)
    worker.start()
    try:
        wait(hangs, STARTS_WITHIN)
        wait(after, STARTS_WITHIN)
    finally:
        assert worker.stop(30)
    assert [one.exception_class for one in hangs.errors] == [TaskTimeout]
    assert after.return_value != os.getpid()
    assert (hangs.attempts, after.attempts) == (1, 1)


@pytest.mark.skipif("sys.platform != 'linux'")
def test_the_memory_of_an_isolated_task_is_bounded(worker: Worker) -> None:
    much, little = sample.apart_eats.enqueue(300), sample.apart_eats.enqueue(1)
    wait(much, STARTS_WITHIN)
    wait(little, STARTS_WITHIN)
    assert [one.exception_class for one in much.errors] == [MemoryError]
    assert little.return_value == 1024 * 1024
