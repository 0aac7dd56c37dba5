"""Tasks of Django's API by real worker processes."""

from collections import Counter
from collections.abc import Callable
from uuid import UUID

import pytest

from django_jobqueue.backend import enqueue_many
from django_jobqueue.backend.results import stored
from django_jobqueue.compat import TaskResultStatus, task_backends
from django_jobqueue.models import Job
from tests.processes.workers import RunWorker
from tests.tasks import sample

pytestmark = pytest.mark.usefixtures("quiet_server")

TASKS = 10_000


def test_10000_tasks_of_which_one_in_twenty_fails_once_are_all_successful_and_say_how(
    start_worker: Callable[..., RunWorker],
) -> None:
    results = enqueue_many(sample.one_in_twenty_fails_once, [((n,), {}) for n in range(TASKS - 100)])
    results += [sample.one_in_twenty_fails_once.enqueue(n) for n in range(TASKS - 100, TASKS)]

    worker = start_worker("--drain", "--processes", "2")

    assert worker.wait(120) == 0
    assert len(worker.worker_ids) == 2
    jobs = Job.objects.in_bulk()
    found = [stored(jobs[UUID(result.id)], {"backend": "default"}) for result in results]
    assert [task_backends["default"].get_result(one.id) for one in found[::100]] == found[::100]
    assert Counter(one.status for one in found) == {TaskResultStatus.SUCCESSFUL: TASKS}
    for n, one in enumerate(found):
        failed = n % 20 == 0
        assert (one.args, one.return_value, one.attempts) == ([n], 2 * n, 2 if failed else 1)
        assert [error.exception_class for error in one.errors] == [LookupError] * failed
        assert [error.traceback.rstrip().splitlines()[-1] for error in one.errors] == [
            f"LookupError: {n} at first"
        ] * failed
        assert one.enqueued_at <= one.started_at <= one.last_attempted_at <= one.finished_at
    ran = Counter(worker_id for one in found for worker_id in one.worker_ids)
    assert ran.keys() == set(worker.worker_ids.values())
    assert ran.total() == TASKS + TASKS // 20
    assert len(jobs) == Job.objects.count() == TASKS


def test_async_and_plain_tasks_are_run_side_by_side_and_found_by_their_path(
    start_worker: Callable[..., RunWorker],
) -> None:
    results = [task.enqueue(n) for n in range(200) for task in (sample.echo, sample.echo_async)]

    assert start_worker("--drain").wait(60) == 0
    for result in results:
        result.refresh()
        assert result.return_value == {"args": result.args, "kwargs": {}}
