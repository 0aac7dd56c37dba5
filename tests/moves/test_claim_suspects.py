"""A job whose worker was lost is a suspect: it is claimed alone, and its start is recorded before it runs."""

import pytest

from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import ago, claim, claim_again, claimed, enqueue, ids, lose_lease, stored, write

pytestmark = pytest.mark.django_db


def suspect(age: float = 60, **options: object) -> Job:
    """A job that was lost once, due for ``age`` seconds."""
    job = claimed(**options)
    lose_lease(job)
    assert Job.objects.reap() == 1
    write(job, run_after=ago(age))
    assert stored(job).crashes == 1
    return stored(job)


def plain(age: float, **options: object) -> Job:
    job = enqueue(**options)
    write(job, run_after=ago(age))
    return job


def test_a_suspect_is_claimed_alone() -> None:
    first, second = suspect(50), suspect(40)
    neighbour = plain(30)
    assert ids(claim(10)) == [first.id]
    assert ids(claim(10)) == [second.id]
    assert ids(claim(10)) == [neighbour.id]


def test_a_suspect_ends_a_batch_and_comes_next() -> None:
    before, one, behind = plain(50), suspect(40), plain(30)
    assert ids(claim(10)) == [before.id]
    assert ids(claim(10)) == [one.id]
    assert ids(claim(10)) == [behind.id]


def test_a_batch_keeps_the_order_of_queues_and_priorities_around_a_suspect() -> None:
    low = suspect(90, priority=-1)
    jobs = [plain(10 * n, priority=n % 2, queue=f"q{n % 3}") for n in range(8)]
    assert set(ids(claim(10))) == set(ids(jobs))
    assert ids(claim(10)) == [low.id]


def test_a_worker_that_holds_other_jobs_leaves_suspects_and_what_is_behind_them() -> None:
    before, one, behind = plain(50), suspect(40), plain(30)
    assert ids(claim(10, suspects=False)) == [before.id]
    assert not claim(10, suspects=False)
    assert [stored(job).status for job in (one, behind)] == [JobStatus.PENDING, JobStatus.PENDING]
    assert ids(claim(10)) == [one.id]
    assert ids(claim(10, suspects=False)) == [behind.id]


def test_the_start_of_a_suspect_is_recorded_with_the_claim() -> None:
    one = suspect()
    [held] = claim()
    assert held.id == one.id
    assert stored(held).run_started_at == stored(held).claimed_at
    assert held.run_started_at is not None


def test_a_suspect_that_brings_down_its_worker_again_loses_the_attempt() -> None:
    one = suspect(max_attempts=2)
    for attempts, status in ((1, JobStatus.PENDING), (2, JobStatus.DEAD)):
        held = claim_again(one)
        assert held.attempts == attempts
        lose_lease(held)
        Job.objects.reap()
        assert (stored(one).status, stored(one).attempts) == (status, attempts)
    assert stored(one).crashes == 3


def test_an_ordinary_failure_makes_no_suspect() -> None:
    job, other = claimed(), enqueue()
    Job.objects.fail(job, "no", delay=0)
    write(job, run_after=ago(100))
    assert ids(claim(10)) == [job.id, other.id]


def test_a_retry_by_hand_clears_the_suspicion() -> None:
    one = suspect()
    Job.objects.fail(claim_again(one), "no", delay=None)
    assert Job.objects.filter(pk=one.pk).retry().done == 1
    other = plain(5)
    write(one, run_after=ago(50))
    assert ids(claim(10)) == [one.id, other.id]


def test_a_suspect_with_a_key_waits_for_its_key_and_hides_nobody() -> None:
    one = suspect(50, lock_key="k")
    claimed(lock_key="k")
    other = plain(30)
    assert ids(claim(10)) == [other.id]
    assert stored(one).status == JobStatus.PENDING


def test_a_job_behind_a_suspect_of_the_same_key_waits_for_it() -> None:
    one, same_key = suspect(50, lock_key="k"), plain(40, lock_key="k")
    assert ids(claim(10)) == [one.id]
    assert not claim(10)
    assert stored(same_key).status == JobStatus.PENDING
