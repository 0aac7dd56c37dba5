"""Handlers that hold the interpreter, or bring their process down."""

from collections.abc import Callable

import pytest

from django_jobqueue.models import Job
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DEAD, DONE, errors, ids, row, standing, status, touches
from tests.processes.workers import RunWorker
from tests.waiting import equals

pytestmark = pytest.mark.usefixtures("quiet_server")

WORKER_LOST = "django_jobqueue.exceptions.WorkerLost"
POISON = "django_jobqueue.exceptions.TooManyCrashes"


def test_a_handler_that_holds_the_interpreter_for_three_leases_keeps_its_lease(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    job = Job.objects.enqueue("tests:gil", {"seconds": 7})
    workers = [start_worker("--lease", "2") for _ in range(2)]

    equals(DONE, lambda: status(job))
    assert len(ledger.runs()) == 1
    assert (row(job)["attempts"], row(job)["fence"]) == (1, 1)
    assert [worker.ready().stop() for worker in workers] == [0, 0]
    assert [worker.trouble for worker in workers] == [[], []]


def test_a_poison_job_starts_three_times_and_nobody_else_is_hurt(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    poison = Job.objects.enqueue("tests:kill", max_attempts=30, priority=10)
    others = touches(300, max_attempts=1)
    worker = start_worker("--processes", "2", "--threads", "1", "--lease", "2")

    equals({DONE: 300, DEAD: 1}, standing)

    assert [run.facts["attempt"] for run in ledger.runs(poison)] == [1, 2, 3]
    assert errors(poison) == [WORKER_LOST, WORKER_LOST, POISON]
    assert (row(poison)["attempts"], row(poison)["crashes"]) == (3, 3)
    assert {job for job, times in ledger.times_run().items() if times == 1} == ids(others)
    # The workers survive it: what comes now is done as ever.
    more = touches(5)
    equals(5, lambda: [status(job) for job in more].count(DONE))
    assert worker.stop() == 0


# 0, 10, 11, 12: codes with which a worker process itself ends.
@pytest.mark.parametrize("code", [0, 3, 10, 11])
def test_a_handler_that_leaves_the_process_costs_its_own_attempt_and_the_next_jobs_run(
    start_worker: Callable[..., RunWorker], ledger: Ledger, code: int
) -> None:
    job = Job.objects.enqueue("tests:leave", {"code": code}, max_attempts=2)
    worker = start_worker("--threads", "1")
    equals(2, lambda: len(ledger.runs(job)))
    others = touches(10)

    equals({DONE: 10, DEAD: 1}, standing)
    assert errors(job) == [WORKER_LOST] * 2
    assert [row(job)["attempts"] for job in others] == [1] * 10
    assert worker.stop() == 0


def test_nobody_is_beside_a_suspect_when_it_brings_its_process_down_again(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    suspects = [Job.objects.enqueue("tests:kill", max_attempts=1, priority=number) for number in (10, 0)]
    Job.objects.filter(pk__in=ids(suspects)).update(crashes=1)
    others = touches(200, max_attempts=1)
    worker = start_worker("--threads", "4")

    equals({DONE: 200, DEAD: 2}, standing)
    assert [errors(job) for job in suspects] == [[WORKER_LOST]] * 2
    assert {job for job, times in ledger.times_run().items() if times == 1} == ids([*suspects, *others])
    assert all(row(job)["crashes"] == 0 for job in others)
    assert worker.stop() == 0
