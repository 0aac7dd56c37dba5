"""``fail``: again after a delay, or dead, or cancelled; and what is kept of each failure."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from django_jobqueue import Retry, job, registry
from django_jobqueue.exceptions import DeadJob, InvalidOption
from django_jobqueue.managers.failures import describe
from django_jobqueue.models import Job, JobStatus
from django_jobqueue.registry import JobType
from tests.moves.factories import (
    WORKER,
    claim_again,
    claimed,
    make_due,
    row,
    seconds_from_now,
    selected,
    stored,
)

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def raised(error: BaseException) -> BaseException:
    """The exception with a traceback, as a handler's."""
    try:
        raise error
    except BaseException as caught:
        return caught


def test_three_attempts_mean_three_starts_and_then_dead_with_three_errors() -> None:
    held = claimed()
    delays = []
    for attempt in (1, 2, 3):
        assert held.attempts == attempt
        assert Job.objects.fail(held, raised(ValueError(f"number {attempt}")))
        fresh = stored(held)
        if attempt < 3:
            assert fresh.status == PENDING
            delays.append(seconds_from_now(fresh.run_after))
            held = claim_again(held)
    assert (fresh.status, fresh.attempts, fresh.fence) == (DEAD, 3, 3)
    assert [error["message"] for error in fresh.errors] == ["number 1", "number 2", "number 3"]
    assert [error["attempt"] for error in fresh.errors] == [1, 2, 3]
    assert 1.7 < delays[0] < 2.3
    assert 3.5 < delays[1] < 4.5
    assert fresh.finished_at is not None
    make_due(fresh)
    assert not Job.objects.claim(worker_id=WORKER, limit=10)


def test_an_error_tells_attempt_worker_times_and_place() -> None:
    held = claimed("me")
    Job.objects.record_started("me", [(held.id, 2.5)])
    Job.objects.fail(held, raised(KeyError("missing")))
    fresh = stored(held)
    [error] = fresh.errors
    assert (error["attempt"], error["worker"], error["exception"]) == (1, "me", "KeyError")
    assert error["message"] == "'missing'"
    assert "raise error" in error["traceback"]
    started, ended = (datetime.fromisoformat(error[name]) for name in ("started_at", "ended_at"))
    assert started.utcoffset() == ended.utcoffset() == timedelta(0)
    assert 2.4 < (ended - started).total_seconds() < 60
    assert fresh.last_error == "KeyError: 'missing'"
    assert fresh.error_fingerprint == "KeyError in tests.moves.test_fail.raised"


@pytest.mark.parametrize("delay", [0, 7, 7.5, timedelta(minutes=5)], ids=str)
def test_a_delay_may_be_given(delay: Any) -> None:
    held = claimed()
    assert Job.objects.fail(held, "no", delay=delay)
    wanted = delay.total_seconds() if isinstance(delay, timedelta) else delay
    assert wanted - 5 < seconds_from_now(stored(held).run_after) <= wanted


def test_no_delay_at_all_is_dead_whatever_attempts_are_left() -> None:
    held = claimed(max_attempts=10)
    assert Job.objects.fail(held, DeadJob("refused"), delay=None)
    fresh = stored(held)
    assert (fresh.status, fresh.attempts) == (DEAD, 1)
    assert "refused" in fresh.last_error


def test_no_delay_saves_a_job_that_is_out_of_attempts() -> None:
    held = claimed(max_attempts=1)
    assert Job.objects.fail(held, "no", delay=5)
    assert stored(held).status == DEAD


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), "5", True, timedelta(seconds=-1), 10**10])
def test_a_bad_delay_is_refused_and_the_job_still_runs(delay: Any) -> None:
    held = claimed()
    before = row(held)
    with pytest.raises(InvalidOption, match="delay="):
        Job.objects.fail(held, "no", delay=delay)
    assert row(held) == before


def test_a_job_that_was_asked_to_stop_is_cancelled_by_its_failure() -> None:
    held = claimed()
    selected(held).cancel()
    assert Job.objects.fail(held, ValueError("stopped"))
    fresh = stored(held)
    assert fresh.status == CANCELLED
    assert fresh.finished_at is not None
    assert [error["message"] for error in fresh.errors] == ["stopped"]


def test_a_job_that_completes_although_asked_to_stop_is_done() -> None:
    held = claimed()
    selected(held).cancel()
    assert Job.objects.complete(held, "all the same")
    fresh = stored(held)
    assert (fresh.status, fresh.result) == (DONE, "all the same")


def fail_times(held: Job, times: int) -> Job:
    for n in range(times):
        assert Job.objects.fail(held, f"number {n + 1}", delay=0)
        if n + 1 < times:
            held = claim_again(held)
    return stored(held)


def test_past_a_hundred_errors_the_first_ten_and_the_last_ninety_are_kept() -> None:
    fresh = fail_times(claimed(max_attempts=200), 105)
    assert [error["attempt"] for error in fresh.errors] == [*range(1, 11), *range(16, 106)]
    assert [error["message"] for error in fresh.errors] == [
        f"number {error['attempt']}" for error in fresh.errors
    ]
    assert fresh.last_error == "RuntimeError: number 105"


def test_a_hundred_errors_are_all_kept() -> None:
    fresh = fail_times(claimed(max_attempts=200), 100)
    assert [error["attempt"] for error in fresh.errors] == [*range(1, 101)]


def test_a_message_of_ten_megabytes_is_kept_in_part() -> None:
    held = claimed()
    Job.objects.fail(held, raised(ValueError("H" * 5_000_000 + "T" * 5_000_000)))
    fresh = stored(held)
    [error] = fresh.errors
    assert error["message"].startswith("HHHH")
    assert error["message"].endswith("TTTT")
    assert "characters left out" in error["message"]
    assert len(error["message"]) < 3_000
    assert len(error["traceback"]) < 20_000
    assert len(fresh.last_error) < 3_000
    assert len(json.dumps(fresh.errors)) < 30_000


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("and this one breaks as well")


class NoText(Exception):
    def __str__(self) -> str:
        return 5  # noqa: PLE0307 - that is the point


def chained() -> BaseException:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def oddly_named() -> BaseException:
    kind = type("Odd", (Exception,), {})
    kind.__qualname__ = "Bad\x00Name\ud800"
    return kind("x")


def recursion() -> BaseException:
    def again() -> None:
        again()

    try:
        again()
    except RecursionError as caught:
        return caught
    raise AssertionError


ODD: dict[str, BaseException] = {
    "NUL": ValueError("a\x00b"),
    "lone surrogate": ValueError("a\ud800b"),
    "unprintable": Unprintable("x"),
    "str that is no text": NoText(),
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt(),
    "GeneratorExit": GeneratorExit(),
    "BaseException": BaseException("base"),
    "group": ExceptionGroup("many", [ValueError(n) for n in range(50)]),
    "chain in a circle": chained(),
    "unpicklable": ValueError(lambda: None),
    "quotes and percents": ValueError("""it's "100%" %s %(now)s $[0] {}"""),
    "class with an odd name": oddly_named(),
}


@pytest.mark.parametrize("error", ODD.values(), ids=ODD)
def test_whatever_was_raised_is_a_recorded_failure(error: BaseException) -> None:
    held = claimed()
    assert Job.objects.fail(held, raised(error))
    fresh = stored(held)
    assert fresh.status == PENDING
    [recorded] = fresh.errors
    assert recorded["exception"]
    assert fresh.last_error.startswith(recorded["exception"])
    assert fresh.error_fingerprint


def test_deep_recursion_is_a_recorded_failure() -> None:
    held = claimed()
    assert Job.objects.fail(held, recursion())
    [recorded] = stored(held).errors
    assert recorded["exception"] == "RecursionError"
    assert len(recorded["traceback"]) < 20_000


def test_the_fingerprint_is_the_class_and_place_whatever_the_text_says() -> None:
    prints = {describe(raised(ValueError(f"user {n}"))).fingerprint for n in range(5)}
    assert len(prints) == 1
    assert describe(raised(KeyError("user 1"))).fingerprint not in prints
    assert describe(chained()).fingerprint not in prints


def test_the_fingerprint_is_bounded() -> None:
    error = type("X" * 100_000, (Exception,), {})("x")
    assert len(describe(raised(error)).fingerprint) < 3_000


def rule(exception: BaseException, one: Any) -> float | None:
    return None if isinstance(exception, KeyError) else 100.0 * one.attempts


@pytest.fixture
def with_rule() -> Iterator[Any]:
    yield job("tests:rule", retry=rule, max_attempts=9)(lambda: None)
    registry.unregister("tests:rule")


@pytest.mark.usefixtures("with_rule")
def test_the_types_own_rule_says_when() -> None:
    held = claimed(job_type="tests:rule")
    assert Job.objects.fail(held, ValueError("x"))
    assert 95 < seconds_from_now(stored(held).run_after) <= 100
    again = claim_again(held)
    assert Job.objects.fail(again, ValueError("x"))
    assert 195 < seconds_from_now(stored(held).run_after) <= 200


@pytest.mark.usefixtures("with_rule")
def test_the_types_own_rule_may_say_never() -> None:
    held = claimed(job_type="tests:rule")
    assert Job.objects.fail(held, KeyError("x"))
    assert stored(held).status == DEAD


def test_a_types_own_delays_are_used() -> None:
    job("tests:slow", retry=Retry(base=1_000, cap=5_000, jitter=0))(lambda: None)
    try:
        held = claimed(job_type="tests:slow")
        assert Job.objects.fail(held, "no")
        assert 1_990 < seconds_from_now(stored(held).run_after) <= 2_000
    finally:
        registry.unregister("tests:slow")


def test_a_huge_number_of_attempts_waits_no_longer_than_the_cap() -> None:
    held = claimed(max_attempts=10_000)
    selected(held).update(attempts=9_000)
    held.refresh_from_db()
    assert Job.objects.fail(held, "no")
    assert 50 < seconds_from_now(stored(held).run_after) <= 60


@pytest.mark.django_db
def test_a_broken_retry_rule_does_not_cost_the_job() -> None:
    def broken(exception: BaseException, job: Any) -> float:
        raise SystemExit(3)

    registry.register(JobType(name="tests:broken_rule", function=lambda: None, retry=broken))
    try:
        Job.objects.enqueue("tests:broken_rule")
        [job] = Job.objects.claim(worker_id="w")
        assert Job.objects.fail(job, ValueError("no"))
        job.refresh_from_db()
        assert (job.status, job.attempts) == (JobStatus.PENDING, 1)
    finally:
        registry.unregister("tests:broken_rule")
