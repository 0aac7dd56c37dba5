"""``snooze`` and ``release``: back to PENDING without counting, bounded by settings."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from django_jobqueue.exceptions import InvalidOption
from django_jobqueue.managers.outcomes import Released, UnknownHere
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    WORKER,
    ago,
    claim_again,
    claimed,
    row,
    seconds_from_now,
    selected,
    stored,
    write,
)

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def counters(job: Job) -> dict[str, Any]:
    names = ("status", "attempts", "fence", "snoozes", "releases", "crashes")
    return {name: getattr(stored(job), name) for name in names}


def counted(status: JobStatus, **others: int) -> dict[str, Any]:
    return {"status": status, "attempts": 0, "fence": 1, "snoozes": 0, "releases": 0, "crashes": 0} | others


@pytest.mark.parametrize("delay", [0, 90, 90.5, timedelta(seconds=90)], ids=str)
def test_a_snoozed_job_runs_later_and_no_attempt_is_counted(delay: Any) -> None:
    job = claimed()
    assert Job.objects.snooze(job, delay)
    assert counters(job) == counted(PENDING, snoozes=1)
    wanted = delay.total_seconds() if isinstance(delay, timedelta) else delay
    assert wanted - 5 < seconds_from_now(stored(job).run_after) <= wanted
    assert stored(job).lease_until is stored(job).finished_at is None
    assert stored(job).errors == []


def test_a_released_job_is_as_due_as_before() -> None:
    job = claimed()
    assert Job.objects.release(job)
    assert counters(job) == counted(PENDING, releases=1)
    assert stored(job).run_after == job.run_after
    assert stored(job).lease_until is stored(job).finished_at is None


def test_the_fence_grows_with_every_claim_though_attempts_go_back() -> None:
    job = claimed()
    for fence in range(2, 6):
        assert Job.objects.release(job) if fence % 2 else Job.objects.snooze(job, 0)
        job = claim_again(job)
        assert (job.attempts, job.fence) == (1, fence)


def test_snoozing_is_bounded_and_the_reason_is_stored(settings: Settings) -> None:
    settings.JOBQUEUE |= {"MAX_SNOOZES": 2}
    job = claimed(max_attempts=9)
    for _ in range(2):
        assert Job.objects.snooze(job, 0)
        job = claim_again(job)
    assert Job.objects.snooze(job, 0)
    fresh = stored(job)
    assert counters(job) == counted(DEAD, snoozes=2, attempts=1, fence=3)
    assert "TooManySnoozes: snoozed more than 2 times" in fresh.last_error
    assert [error["attempt"] for error in fresh.errors] == [1]
    assert fresh.finished_at is not None


def test_past_the_bound_a_release_counts_as_an_attempt(settings: Settings) -> None:
    settings.JOBQUEUE |= {"MAX_RELEASES": 1}
    job = claimed(max_attempts=2)
    assert Job.objects.release(job)
    assert counters(job) == counted(PENDING, releases=1)
    job = claim_again(job)
    assert Job.objects.release(job)
    assert counters(job) == counted(PENDING, releases=1, attempts=1, fence=2)
    assert stored(job).errors == []
    job = claim_again(job)
    assert Job.objects.release(job)
    assert counters(job) == counted(DEAD, releases=1, attempts=2, fence=3)
    assert "TooManyReleases: given back more than 1 times" in stored(job).last_error
    assert len(stored(job).errors) == 1


@pytest.mark.parametrize("how", ["snooze", "release"])
def test_a_job_that_was_asked_to_stop_is_cancelled_instead(how: str) -> None:
    job = claimed()
    selected(job).cancel()
    assert Job.objects.snooze(job, 60) if how == "snooze" else Job.objects.release(job)
    fresh = stored(job)
    assert fresh.status == CANCELLED
    assert fresh.finished_at is not None
    assert fresh.run_after == job.run_after


@pytest.mark.parametrize("delay", [-1, float("nan"), "5", None, True, timedelta(days=-1), 10**10], ids=str)
def test_a_bad_delay_is_refused_and_the_job_still_runs(delay: Any) -> None:
    job = claimed()
    before = row(job)
    with pytest.raises(InvalidOption, match="delay="):
        Job.objects.snooze(job, delay)
    assert row(job) == before


def test_an_unknown_type_is_given_back_unchanged_but_for_the_time_of_the_first() -> None:
    job = claimed()
    assert Job.objects.settle(WORKER, [UnknownHere(job)]).written == {job.id: PENDING}
    assert counters(job) == counted(PENDING)
    since = stored(job).unknown_since
    assert since is not None
    assert -5 < seconds_from_now(since) <= 0
    assert Job.objects.settle(WORKER, [UnknownHere(claim_again(job))]).written
    assert stored(job).unknown_since == since
    assert stored(job).errors == []


def test_a_type_that_nobody_knew_for_a_day_is_dead_with_the_reason() -> None:
    job = claimed()
    Job.objects.settle(WORKER, [UnknownHere(job)])
    write(job, unknown_since=ago(86_400 - 60))
    again = claim_again(job)
    assert Job.objects.settle(WORKER, [UnknownHere(again)]).written == {job.id: PENDING}
    write(job, unknown_since=ago(86_400 + 60))
    again = claim_again(job)
    assert Job.objects.settle(WORKER, [UnknownHere(again)]).written == {job.id: DEAD}
    assert "UnknownTypeHere: no worker that took the job in 1 day" in stored(job).last_error
    assert selected(job).retry().done == 1
    assert stored(job).unknown_since is None


def test_how_long_a_type_may_stay_unknown_is_a_setting(settings: Settings) -> None:
    settings.JOBQUEUE |= {"UNKNOWN_TYPE_GRACE": timedelta(seconds=10)}
    job = claimed()
    Job.objects.settle(WORKER, [UnknownHere(job)])
    write(job, unknown_since=ago(11))
    assert Job.objects.settle(WORKER, [UnknownHere(claim_again(job))]).written == {job.id: DEAD}


@pytest.mark.parametrize("how", ["fail", "snooze"])
def test_a_worker_that_ran_the_job_knew_its_type(how: str) -> None:
    """So the day without anybody who knows it starts anew."""
    job = claimed(max_attempts=9)
    Job.objects.settle(WORKER, [UnknownHere(job)])
    write(job, unknown_since=ago(2 * 86_400))
    again = claim_again(job)
    assert Job.objects.fail(again, "no") if how == "fail" else Job.objects.snooze(again, 0)
    assert Job.objects.settle(WORKER, [UnknownHere(claim_again(job))]).written == {job.id: PENDING}


def test_an_unknown_job_that_was_asked_to_stop_is_cancelled() -> None:
    job = claimed()
    selected(job).cancel()
    assert Job.objects.settle(WORKER, [UnknownHere(job)]).written == {job.id: CANCELLED}


def test_what_a_worker_holds_by_the_table_is_released() -> None:
    started, waiting, ended = claimed(), claimed(), claimed()
    other = claimed("other")
    Job.objects.complete(ended)
    assert Job.objects.release_held(WORKER, started={started.id}) == 2
    assert counters(started) == counted(PENDING, releases=1)
    assert counters(waiting) == counted(PENDING, releases=0)  # what had not started is nobody's fault
    assert [stored(job).status for job in (ended, other)] == [DONE, RUNNING]
    assert Job.objects.release_held("nobody") == 0


def test_giving_back_what_had_not_started_is_never_counted(settings: Settings) -> None:
    settings.JOBQUEUE |= {"MAX_RELEASES": 0}
    job = claimed(max_attempts=1)
    for _ in range(3):
        assert Job.objects.settle(WORKER, [Released(job)]).written == {job.id: PENDING}
        job = claim_again(job)
    assert counters(job) == counted(RUNNING, attempts=1, fence=4)
    assert Job.objects.settle(WORKER, [Released(job, 0.5)]).written == {job.id: DEAD}


def test_only_those_claims_are_released_that_were_named() -> None:
    kept, lost, earlier = claimed(), claimed(), claimed()
    Job.objects.release(earlier)
    again = claim_again(earlier)
    named = [(lost.id, lost.fence), (earlier.id, earlier.fence)]
    assert Job.objects.release_held(WORKER, named) == 1
    assert [stored(job).status for job in (kept, lost, again)] == [RUNNING, PENDING, RUNNING]
    assert Job.objects.release_held(WORKER, []) == 0
    assert stored(kept).status == RUNNING
