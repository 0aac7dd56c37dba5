"""Progress out, cancel in, many at once on the loop, types that nobody here knows."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest
from pytest_django import Settings

from django_jobqueue import registry
from django_jobqueue.models import Job
from django_jobqueue.worker import Worker
from tests.jobsapp.ledger import Ledger
from tests.waiting import equals, eventually, outlast
from tests.worker.handlers import CANCELLED, DEAD, DONE, PENDING, RUNNING, Handlers, fresh, standing, status

Start = Callable[..., Worker]


@pytest.mark.parametrize(("raises", "end"), [(True, CANCELLED), (False, DONE)])
@pytest.mark.parametrize("job_type", ["tests:until_cancelled", "tests:async_until_cancelled"])
def test_a_running_job_sees_within_two_seconds_that_it_was_cancelled(
    start_worker: Start, ledger: Ledger, job_type: str, raises: bool, end: int
) -> None:
    start_worker()
    job = Job.objects.enqueue(job_type, {"raises": raises})
    eventually(ledger.starts)

    asked = monotonic()
    assert Job.objects.filter(pk=job.pk).cancel().done == 1
    [seen] = eventually(lambda: ledger.events("seen"))
    assert seen["at"] - asked < 2
    equals(end, lambda: status(job))
    assert fresh(job).result == (None if raises else "the end")


def test_a_pending_job_that_was_cancelled_never_starts(start_worker: Start, ledger: Ledger) -> None:
    job = Job.objects.enqueue("tests:touch", run_after=timedelta(seconds=0.5))
    Job.objects.filter(pk=job.pk).cancel()
    start_worker()
    after = Job.objects.enqueue("tests:touch", run_after=timedelta(seconds=0.6))
    equals(DONE, lambda: status(after))
    assert (status(job), ledger.runs(job)) == (CANCELLED, [])


@pytest.mark.parametrize("is_async", [False, True])
def test_progress_is_stored_while_the_job_runs(
    start_worker: Start, handlers: Handlers, is_async: bool
) -> None:
    seen: list[bool] = []

    async def on_the_loop(context: Any) -> None:
        context.progress(1, 4, "a quarter \0 \ud800")
        while not seen:
            await asyncio.sleep(0.01)
        context.progress(3, 4, "almost")

    def plain(context: Any) -> None:
        asyncio.run(on_the_loop(context))

    start_worker()
    job = Job.objects.enqueue(handlers.add(on_the_loop if is_async else plain, takes_context=True))
    equals((RUNNING, 0.25), lambda: (status(job), fresh(job).progress), within=10)
    assert fresh(job).progress_note == "a quarter \\x00 \\ud800"
    seen.append(True)
    equals(DONE, lambda: status(job))
    assert (fresh(job).progress, fresh(job).progress_note) == (0.75, "almost")


def test_tracking_reports_the_share_of_what_was_used_up(start_worker: Start, handlers: Handlers) -> None:
    def handler(context: Any) -> list[int]:
        return [item * 2 for item in context.track([1, 2, 3, 4], note="doubling")]

    start_worker()
    job = Job.objects.enqueue(handlers.add(handler, takes_context=True))
    equals(DONE, lambda: status(job))
    assert fresh(job).result == [2, 4, 6, 8]
    assert (fresh(job).progress, fresh(job).progress_note) == (1.0, "doubling")


def test_async_handlers_run_side_by_side(start_worker: Start, handlers: Handlers) -> None:
    at_once, most = [0], [0]

    async def handler() -> None:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        await asyncio.sleep(0.2)
        at_once[0] -= 1

    Job.objects.enqueue_many([(handlers.add(handler), {})] * 100)
    begun = monotonic()
    start_worker(async_concurrency=100)
    equals({DONE: 100}, standing)
    assert monotonic() - begun < 5  # one after another: 20 s
    assert most[0] > 50


def test_plain_handlers_run_side_by_side_up_to_the_number_of_threads(
    start_worker: Start, ledger: Ledger, tmp_path: Any
) -> None:
    gate = tmp_path / "gate"
    Job.objects.enqueue_many([("tests:wait", {"gate": str(gate)})] * 8)
    start_worker(threads=4)
    equals(4, ledger.starts)
    outlast(0.3)
    assert ledger.starts() == 4
    gate.touch()
    equals({DONE: 8}, standing)


def test_an_async_handler_that_blocks_its_loop_keeps_its_lease(
    start_worker: Start, handlers: Handlers, ledger: Ledger
) -> None:
    starts: list[int] = []

    async def handler() -> None:
        starts.append(1)
        outlast(3)

    workers = [start_worker(lease=1) for _ in range(2)]
    job = Job.objects.enqueue(handlers.add(handler))
    equals(DONE, lambda: status(job))
    assert (len(starts), fresh(job).attempts, fresh(job).fence) == (1, 1, 1)
    assert not any(worker.died.is_set() for worker in workers)


@pytest.fixture
def unknown(settings: Settings) -> str:
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["elsewhere:*"]}
    return "elsewhere:type"


def test_a_type_that_this_worker_does_not_know_is_given_back_unchanged_and_left_alone(
    start_worker: Start, unknown: str, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [Job.objects.enqueue(unknown) for _ in range(3)]
    start_worker()
    equals([1] * 3, lambda: [min(fresh(job).fence, 1) * (status(job) == PENDING) for job in jobs])
    known = Job.objects.enqueue("tests:touch")
    equals(DONE, lambda: status(known), within=10)
    fences = [fresh(job).fence for job in jobs]
    outlast(0.5)

    for job in jobs:
        after = fresh(job)
        assert (after.status, after.attempts, after.errors, after.crashes) == (PENDING, 0, [], 0)
        assert after.unknown_since is not None
    assert [fresh(job).fence for job in jobs] == fences  # not claimed again
    assert caplog.text.count(unknown) == 1  # told of once


def test_another_worker_that_knows_the_type_does_it(
    start_worker: Start, unknown: str, handlers: Handlers
) -> None:
    job = Job.objects.enqueue(unknown)
    start_worker()
    equals(True, lambda: fresh(job).unknown_since is not None and status(job) == PENDING)

    from django_jobqueue import job as decorate

    decorate(unknown)(lambda: "known now")
    handlers.names.append(unknown)
    start_worker()
    equals(DONE, lambda: status(job))
    assert (fresh(job).attempts, fresh(job).result) == (1, "known now")
    assert registry.find(unknown) is not None


def test_a_type_that_nobody_knew_for_too_long_is_dead(start_worker: Start, settings: Settings) -> None:
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["elsewhere:*"], "UNKNOWN_TYPE_GRACE": timedelta(seconds=0.2)}
    job = Job.objects.enqueue("elsewhere:type")
    start_worker()
    equals(True, lambda: fresh(job).unknown_since is not None and status(job) == PENDING)
    outlast(0.3)
    start_worker()
    equals(DEAD, lambda: status(job))
    assert fresh(job).errors[0]["exception"] == "django_jobqueue.exceptions.UnknownTypeHere"
