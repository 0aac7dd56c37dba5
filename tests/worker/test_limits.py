"""Time limits and cancel in a worker inside this process: what threads allow."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection

from django_jobqueue import RetryJob
from django_jobqueue.exceptions import JobCancelled, JobInterrupted, JobTimeout
from django_jobqueue.handlers import JobContext
from django_jobqueue.models import Job
from django_jobqueue.worker import Worker
from tests.waiting import equals, eventually
from tests.worker.handlers import CANCELLED, DEAD, DONE, PENDING, RUNNING, Handlers, fresh, status

Start = Callable[..., Worker]

TIMEOUT = "django_jobqueue.exceptions.JobTimeout"
FORCED = "django_jobqueue.exceptions.JobCancelled"


def busy(seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.005)


async def async_busy(seconds: float = 60) -> None:
    await asyncio.sleep(seconds)


def slow_query() -> None:
    with connection.cursor() as cursor:
        busy()
        cursor.execute("SELECT 1")


def causes(job: Job) -> list[str]:
    return [error["exception"] for error in fresh(job).errors]


@pytest.mark.parametrize("function", [busy, async_busy])
def test_a_handler_that_is_out_of_time_is_interrupted_and_the_cause_stored(
    start_worker: Start, handlers: Handlers, function: Callable[..., Any]
) -> None:
    job = Job.objects.enqueue(handlers.add(function, timeout=0.5, max_attempts=1))
    begun = time.monotonic()
    start_worker()

    equals(DEAD, lambda: status(job))
    assert time.monotonic() - begun < 10
    assert causes(job) == [TIMEOUT]
    assert fresh(job).last_error == f"{TIMEOUT}: ran longer than its timeout of 0.5 s"
    assert function.__name__ in fresh(job).errors[0]["traceback"]


def test_a_job_that_was_out_of_time_is_tried_again_by_its_policy(
    start_worker: Start, handlers: Handlers
) -> None:
    seen = []

    def policy(error: BaseException, job: Any) -> float:
        seen.append(type(error))
        return 0.0

    job = Job.objects.enqueue(
        handlers.add(busy, timeout=timedelta(seconds=0.3), max_attempts=2, retry=policy)
    )
    start_worker()

    equals(DEAD, lambda: status(job))
    assert causes(job) == [TIMEOUT, TIMEOUT]
    assert seen == [JobTimeout, JobTimeout]


def test_never_retry_knows_the_timeout(start_worker: Start, handlers: Handlers) -> None:
    job = Job.objects.enqueue(handlers.add(busy, timeout=0.3, never_retry=[JobTimeout]))
    start_worker()

    equals(DEAD, lambda: status(job))
    assert fresh(job).attempts == 1


@pytest.mark.parametrize("function", [busy, async_busy])
def test_a_call_may_give_its_job_a_timeout_of_its_own(
    start_worker: Start, handlers: Handlers, function: Callable[..., Any]
) -> None:
    name = handlers.add(function, timeout=60, max_attempts=1)
    short = Job.objects.enqueue(name, timeout=0.3)
    enough = Job.objects.enqueue(name, {"seconds": 1.0}, timeout=30)
    start_worker()

    equals(DEAD, lambda: status(short))
    equals(DONE, lambda: status(enough))


def test_except_exception_does_not_swallow_it_and_a_handler_may_catch_it_to_clean_up(
    start_worker: Start, handlers: Handlers
) -> None:
    def stubborn() -> None:
        try:
            busy()
        except Exception:
            busy()

    def careful() -> str:
        try:
            busy()
        except JobTimeout:
            return "what was done so far"
        return ""

    def judging() -> None:
        try:
            busy()
        except JobTimeout:
            raise RetryJob(3_600) from None

    jobs = [
        Job.objects.enqueue(handlers.add(one, timeout=0.3, max_attempts=3))
        for one in (stubborn, careful, judging)
    ]
    start_worker()

    equals([TIMEOUT], lambda: causes(jobs[0]))
    equals(DONE, lambda: status(jobs[1]))
    assert fresh(jobs[1]).result == "what was done so far"
    equals(["django_jobqueue.exceptions.RetryJob"], lambda: causes(jobs[2]))
    assert status(jobs[2]) == PENDING


@pytest.mark.parametrize("function", [busy, async_busy])
def test_a_handler_without_a_context_is_interrupted_soon_after_its_job_was_cancelled(
    start_worker: Start, handlers: Handlers, function: Callable[..., Any]
) -> None:
    job = Job.objects.enqueue(handlers.add(function))
    start_worker()
    equals(RUNNING, lambda: status(job))

    Job.objects.filter(pk=job.pk).cancel()

    begun = time.monotonic()
    equals(CANCELLED, lambda: status(job))
    assert time.monotonic() - begun < 5
    assert causes(job) == [FORCED]


def test_a_handler_that_can_see_the_cancel_is_asked_first_and_then_forced(
    start_worker: Start, handlers: Handlers
) -> None:
    seen: dict[str, float] = {}

    def watching(context: JobContext) -> None:
        while True:
            if context.cancelled:
                seen.setdefault("asked", time.monotonic())
            try:
                busy(0.01)
            except JobCancelled:
                seen["forced"] = time.monotonic()
                raise

    async def async_watching(context: JobContext) -> None:
        while True:
            if context.cancelled:
                seen.setdefault("asked", time.monotonic())
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                seen["forced"] = time.monotonic()
                raise

    start_worker(interrupt_grace=1)
    for function in (watching, async_watching):
        seen.clear()
        job = Job.objects.enqueue(handlers.add(function, takes_context=True))
        equals(RUNNING, lambda job=job: status(job))
        begun = time.monotonic()
        Job.objects.filter(pk=job.pk).cancel()

        equals(CANCELLED, lambda job=job: status(job))
        assert seen["asked"] - begun < 2
        assert 0.7 < seen["forced"] - seen["asked"] < 5
        assert causes(job) == [FORCED]


def test_the_thread_and_its_connection_are_good_for_the_next_job(
    start_worker: Start, handlers: Handlers
) -> None:
    def query() -> int:
        return Job.objects.count()

    hang = handlers.add(slow_query, timeout=0.3, max_attempts=1)
    fine = handlers.add(query)
    jobs = []
    for _ in range(3):
        jobs += [Job.objects.enqueue(hang), Job.objects.enqueue(fine)]
    start_worker(threads=1)

    equals([DEAD, DONE] * 3, lambda: [status(job) for job in jobs])


def test_an_atomic_handler_that_is_out_of_time_leaves_nothing(
    start_worker: Start, handlers: Handlers
) -> None:
    def writes() -> None:
        Job.objects.enqueue("tests:nothing", queue="unserved")
        busy()

    job = Job.objects.enqueue(handlers.add(writes, atomic=True, timeout=0.3, max_attempts=1))
    start_worker(exclude_queues=["unserved"])

    equals(DEAD, lambda: status(job))
    assert causes(job) == [TIMEOUT]
    assert not Job.objects.filter(queue="unserved").exists()


def test_what_a_thread_cannot_end_stays_running_and_is_told(
    start_worker: Start, handlers: Handlers, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Event()

    def deaf() -> str:
        while not gate.wait(0.01):
            with suppress(JobInterrupted):
                busy(0.05)
        return "at last"

    job = Job.objects.enqueue(handlers.add(deaf, timeout=0.3))
    worker = start_worker(interrupt_grace=0.3)

    eventually(lambda: job.pk in worker.limits.stuck)
    assert status(job) == RUNNING
    assert "a thread cannot be ended" in caplog.text
    gate.set()
    equals(DONE, lambda: status(job))
    equals(frozenset(), lambda: worker.limits.stuck)


def test_an_embedded_worker_tells_of_timeouts_that_outlast_its_lease(
    start_worker: Start, handlers: Handlers, caplog: pytest.LogCaptureFixture
) -> None:
    long, short = handlers.add(busy, timeout=31), handlers.add(busy, timeout=29)

    start_worker(lease=30)

    [told] = [record.getMessage() for record in caplog.records if "Leases last 30 s" in record.getMessage()]
    assert long in told
    assert short not in told
