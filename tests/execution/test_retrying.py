"""What becomes of a job after a failed attempt: when it comes again, or why never."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from django_jobqueue import DeadJob, Retry, RetryJob, SnoozeJob
from django_jobqueue.models import Job
from tests.execution.runner import CANCELLED, DEAD, DONE, PENDING, Runner, exceptions


def raising(make: Callable[[], BaseException]) -> Callable[[], None]:
    def handler() -> None:
        raise make()

    return handler


def delay(job: Job) -> float:
    """Seconds from the end of the attempt until the next."""
    return (job.run_after - job.updated_at).total_seconds()


def test_three_attempts_are_three_starts_with_two_and_four_seconds_between(runner: Runner) -> None:
    starts = []

    def fails() -> None:
        starts.append(1)
        raise ValueError(len(starts))

    job = runner.run(fails, max_attempts=3)
    assert (job.status, job.attempts) == (PENDING, 1)
    assert delay(job) == pytest.approx(2, abs=0.2 + 0.01)
    job = runner.attempt(job)
    assert (job.status, job.attempts) == (PENDING, 2)
    assert delay(job) == pytest.approx(4, abs=0.4 + 0.01)
    job = runner.attempt(job)
    assert (job.status, job.attempts) == (DEAD, 3)

    assert len(starts) == 3
    assert [(one["attempt"], one["message"]) for one in job.errors] == [(1, "1"), (2, "2"), (3, "3")]
    assert job.finished_at is not None


def test_success_at_the_last_attempt_is_success(runner: Runner) -> None:
    answers = iter([ValueError("no"), ValueError("no"), None])

    def handler() -> str:
        if (answer := next(answers)) is not None:
            raise answer
        return "yes"

    job = runner.run(handler, max_attempts=3)
    job = runner.attempt(runner.attempt(job))
    assert (job.status, job.result, len(job.errors)) == (DONE, "yes", 2)


def test_retry_job_says_after_how_long(runner: Runner) -> None:
    job = runner.run(raising(lambda: RetryJob(timedelta(minutes=5), "the server is busy")))
    assert (job.status, job.attempts) == (PENDING, 1)
    assert delay(job) == pytest.approx(300, abs=0.01)
    assert "the server is busy" in job.last_error
    assert job.errors[0]["traceback"] == ""


def test_retry_job_without_a_delay_follows_the_rule_of_the_type(runner: Runner) -> None:
    job = runner.run(raising(RetryJob), retry=Retry(base=50, factor=1, jitter=0))
    assert delay(job) == pytest.approx(50, abs=0.01)


def test_retry_job_counts_as_an_attempt(runner: Runner) -> None:
    assert runner.run(raising(lambda: RetryJob(0)), max_attempts=1).status == DEAD


def test_snooze_job_is_not_counted(runner: Runner) -> None:
    job = runner.run(raising(lambda: SnoozeJob(60)), max_attempts=1)
    assert (job.status, job.attempts, job.snoozes, job.errors) == (PENDING, 0, 1, [])
    assert delay(job) == pytest.approx(60, abs=0.01)


def test_snoozes_are_bounded(runner: Runner, settings: Settings) -> None:
    settings.JOBQUEUE = {"MAX_SNOOZES": 2}
    job = runner.run(raising(lambda: SnoozeJob(0)))
    job = runner.attempt(runner.attempt(job))
    assert (job.status, job.snoozes) == (DEAD, 2)
    assert exceptions(job) == ["django_jobqueue.exceptions.TooManySnoozes"]


def test_dead_job_is_dead_whatever_attempts_are_left(runner: Runner) -> None:
    job = runner.run(raising(lambda: DeadJob("no such account")), max_attempts=10)
    assert (job.status, job.attempts) == (DEAD, 1)
    assert job.last_error == "django_jobqueue.exceptions.DeadJob: no such account"


def test_an_exception_that_the_type_never_retries_is_the_last(runner: Runner) -> None:
    options: dict[str, Any] = {"never_retry": (LookupError, SystemExit)}
    assert runner.run(raising(lambda: KeyError("x")), **options).status == DEAD
    assert runner.run(raising(lambda: SystemExit(1)), **options).status == DEAD
    assert runner.run(raising(lambda: ValueError("x")), **options).status == PENDING


@pytest.mark.parametrize("answer", [0, 1.5, 86_400, timedelta(seconds=1.5)])
def test_a_retry_function_says_after_how_many_seconds(runner: Runner, answer: Any) -> None:
    asked = []

    def rule(exception: BaseException, job: Any) -> Any:
        asked.append((type(exception), job.attempts, job.payload))
        return answer

    job = runner.run(raising(ValueError), retry=rule)
    seconds = answer.total_seconds() if isinstance(answer, timedelta) else answer
    assert delay(job) == pytest.approx(seconds, abs=0.01)
    assert asked == [(ValueError, 1, {})]


def test_a_retry_function_that_returns_none_means_never(runner: Runner) -> None:
    assert runner.run(raising(ValueError), retry=lambda exception, job: None).status == DEAD


def raises(exception: BaseException, job: Any) -> float:
    raise RuntimeError("the rule is broken")


@pytest.mark.parametrize(
    "rule",
    [
        raises,
        *((lambda exception, job, bad=bad: bad) for bad in (-1, math.nan, math.inf, 1e300, "soon", True, [])),
    ],
)
def test_a_broken_retry_rule_costs_nothing_the_default_is_used(
    runner: Runner, caplog: pytest.LogCaptureFixture, rule: Any
) -> None:
    job = runner.run(raising(ValueError), retry=rule)
    assert job.status == PENDING
    assert delay(job) == pytest.approx(2, abs=0.21)
    assert exceptions(job) == ["ValueError"]
    assert f"failed for job {job.pk}; the default delay is used" in caplog.text


def test_a_retry_rule_that_leaves_is_a_broken_rule_too(runner: Runner) -> None:
    def leaves(exception: BaseException, job: Any) -> float:
        raise SystemExit(3)

    assert runner.run(raising(ValueError), retry=leaves).status == PENDING


def test_the_delay_is_bounded_after_any_number_of_attempts(runner: Runner) -> None:
    job = Job.objects.enqueue(runner.handle(raising(ValueError)), max_attempts=10_000)
    Job.objects.filter(pk=job.pk).update(attempts=9_000)
    assert delay(runner.attempt(job)) <= 60.01


def test_a_job_that_was_asked_to_stop_and_raises_is_cancelled(runner: Runner) -> None:
    name = runner.handle(raising(ValueError))
    job = Job.objects.enqueue(name)
    job = runner.attempt(job, before_settling=lambda attempt: Job.objects.filter(pk=job.pk).cancel())
    assert (job.status, job.attempts) == (CANCELLED, 1)
    assert job.finished_at is not None


def test_a_job_that_was_asked_to_stop_and_returns_is_done(runner: Runner) -> None:
    job = Job.objects.enqueue(runner.handle(lambda: "all of it"))
    job = runner.attempt(job, before_settling=lambda attempt: Job.objects.filter(pk=job.pk).cancel())
    assert (job.status, job.result) == (DONE, "all of it")
