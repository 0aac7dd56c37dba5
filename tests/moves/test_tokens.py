"""Guarantee 1: a late worker can write nothing."""

from collections.abc import Callable

import pytest

from django_jobqueue.exceptions import InvalidOption
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    LATE,
    WORKER,
    claim_again,
    claimed,
    enqueue,
    lose_lease,
    row,
    selected,
    stored,
)

pytestmark = pytest.mark.django_db

WRITES: dict[str, Callable[[Job], bool]] = {
    "complete": lambda job: Job.objects.complete(job, "late"),
    "fail": lambda job: Job.objects.fail(job, "late"),
    "snooze": lambda job: Job.objects.snooze(job, 60),
    "release": Job.objects.release,
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())


@every_write
def test_a_worker_that_never_had_the_job_writes_nothing(write: Callable[[Job], bool]) -> None:
    job = claimed(WORKER)
    before = row(job)
    job.worker_id = LATE
    assert write(job) is False
    assert row(job) == before


@every_write
def test_a_late_worker_writes_nothing_over_the_next_ones_claim(write: Callable[[Job], bool]) -> None:
    late = claimed(LATE)
    lose_lease(late)
    assert Job.objects.reap() == 1
    claim_again(late, WORKER)
    before = row(late)
    assert write(late) is False
    assert row(late) == before


@every_write
def test_an_earlier_claim_by_the_same_worker_writes_nothing(write: Callable[[Job], bool]) -> None:
    earlier = claimed(WORKER)
    assert Job.objects.release(earlier)
    again = claim_again(earlier, WORKER)
    assert (again.attempts, again.fence) == (earlier.attempts, earlier.fence + 1)
    before = row(earlier)
    assert write(earlier) is False
    assert row(earlier) == before


@every_write
def test_a_job_that_was_taken_back_takes_no_late_outcome(write: Callable[[Job], bool]) -> None:
    late = claimed(LATE)
    lose_lease(late)
    assert Job.objects.reap() == 1
    before = row(late)
    assert write(late) is False
    assert row(late) == before


@every_write
@pytest.mark.parametrize("first", WRITES.values(), ids=WRITES.keys())
def test_only_the_first_outcome_of_an_attempt_is_written(
    first: Callable[[Job], bool], write: Callable[[Job], bool]
) -> None:
    job = claimed()
    assert first(job) is True
    before = row(job)
    assert write(job) is False
    assert row(job) == before


@every_write
def test_an_expired_lease_that_nobody_took_back_still_holds(write: Callable[[Job], bool]) -> None:
    job = claimed()
    lose_lease(job)
    assert write(job) is True
    assert stored(job).status != JobStatus.RUNNING


@every_write
def test_a_job_that_is_gone_takes_no_outcome(write: Callable[[Job], bool]) -> None:
    job = claimed()
    selected(job).delete()
    assert write(job) is False


@every_write
def test_a_job_that_was_never_claimed_has_no_attempt_to_end(write: Callable[[Job], bool]) -> None:
    job = enqueue()
    before = row(job)
    with pytest.raises(InvalidOption, match="never claimed"):
        write(job)
    assert row(job) == before


def test_progress_and_start_of_an_earlier_claim_are_not_written() -> None:
    earlier = claimed(WORKER)
    assert Job.objects.release(earlier)
    claim_again(earlier, WORKER)
    before = row(earlier)
    Job.objects.report_progress(WORKER, [(earlier.id, earlier.fence, 0.5, "late")])
    Job.objects.report_progress(LATE, [(earlier.id, earlier.fence + 1, 0.5, "a stranger")])
    Job.objects.record_started(LATE, [(earlier.id, 1.0)])
    assert row(earlier) == before


def test_the_token_is_id_worker_and_fence() -> None:
    job = claimed(WORKER)
    assert job.token == (job.id, WORKER, 1)
    assert enqueue().token.worker_id == ""
