"""``reap``: jobs of lost workers run elsewhere, or are dead with the reason. ``expire``: too late."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    LATE,
    WORKER,
    ago,
    claim,
    claim_again,
    claimed,
    enqueue,
    ids,
    lose_lease,
    row,
    selected,
    statements,
    statuses,
    stored,
    write,
)
from tests.moves.threads import PATIENCE, in_thread

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def start(*jobs: Job) -> None:
    for job in jobs:
        assert job.worker_id
        Job.objects.record_started(job.worker_id, [(job.id, 5.0)])


def test_only_jobs_whose_lease_is_over_are_taken_back() -> None:
    lost, alive = claimed(), claimed()
    lose_lease(lost)
    before = row(alive)
    assert Job.objects.reap() == 1
    assert statuses(lost, alive) == [PENDING, RUNNING]
    assert row(alive) == before
    assert Job.objects.reap() == 0


def test_a_job_that_had_started_loses_the_attempt_and_keeps_the_reason() -> None:
    job = claimed(LATE)
    start(job)
    lose_lease(job)
    Job.objects.reap()
    fresh = stored(job)
    assert (fresh.status, fresh.attempts, fresh.crashes, fresh.fence) == (PENDING, 1, 1, 1)
    assert fresh.lease_until is fresh.finished_at is None
    [error] = fresh.errors
    assert error["exception"] == "django_jobqueue.exceptions.WorkerLost"
    assert (error["attempt"], error["worker"]) == (1, LATE)
    started, ended = (datetime.fromisoformat(error[name]) for name in ("started_at", "ended_at"))
    assert 4 < (ended - started).total_seconds() < 60
    assert "WorkerLost" in fresh.last_error
    assert fresh.error_fingerprint == "django_jobqueue.exceptions.WorkerLost"
    assert (fresh.releases, fresh.snoozes) == (0, 0)


def test_a_job_that_never_started_gets_its_attempt_back() -> None:
    job = claimed(max_attempts=1)
    lose_lease(job)
    Job.objects.reap()
    fresh = stored(job)
    assert (fresh.status, fresh.attempts, fresh.crashes) == (PENDING, 0, 1)
    assert (fresh.errors, fresh.last_error) == ([], "")


def test_a_started_job_without_an_attempt_left_is_dead_with_the_reason() -> None:
    job = claimed(max_attempts=1)
    start(job)
    lose_lease(job)
    Job.objects.reap()
    fresh = stored(job)
    assert (fresh.status, fresh.attempts, fresh.crashes) == (DEAD, 1, 1)
    assert fresh.finished_at is not None
    assert "WorkerLost" in fresh.last_error
    assert len(fresh.errors) == 1


def lose(job: Job, times: int, *, started: bool = True) -> Job:
    """The job after so many workers were lost with it."""
    for _ in range(times):
        claimed_now = claim_again(job)
        if started:
            start(claimed_now)
        lose_lease(claimed_now)
        Job.objects.reap()
    return stored(job)


def test_a_job_whose_worker_died_three_times_is_dead_whatever_attempts_it_has() -> None:
    job = enqueue(max_attempts=100)

    assert lose(job, 2).status == PENDING
    fresh = lose(job, 1)

    assert (fresh.status, fresh.attempts, fresh.crashes) == (DEAD, 3, 3)
    exceptions = "django_jobqueue.exceptions"
    assert [error["exception"] for error in fresh.errors] == [
        f"{exceptions}.WorkerLost",
        f"{exceptions}.WorkerLost",
        f"{exceptions}.TooManyCrashes",
    ]
    assert fresh.last_error == (
        f"{exceptions}.TooManyCrashes: 3 workers died or stopped renewing while the job ran"
    )
    assert fresh.error_fingerprint == f"{exceptions}.TooManyCrashes"


def test_how_many_workers_may_die_is_a_setting(settings: Any) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "MAX_CRASHES": 1}

    fresh = lose(enqueue(max_attempts=100), 1)

    assert (fresh.status, fresh.attempts) == (DEAD, 1)
    assert "TooManyCrashes: 1 workers" in fresh.last_error


def test_a_poisonous_job_that_a_person_retries_may_run_again() -> None:
    job = enqueue(max_attempts=100)
    lose(job, 3)
    selected(job).retry()

    fresh = lose(job, 1)

    assert (fresh.status, fresh.crashes) == (PENDING, 1)


@pytest.mark.parametrize("started", [True, False])
def test_a_lost_job_that_was_asked_to_stop_is_cancelled(started: bool) -> None:
    job = claimed(max_attempts=1)
    if started:
        start(job)
    selected(job).cancel()
    lose_lease(job)
    assert Job.objects.reap() == 1
    assert stored(job).status == CANCELLED
    assert stored(job).finished_at is not None


def test_all_jobs_of_a_worker_that_is_known_dead_are_taken_back_at_once() -> None:
    started, waiting = claimed(LATE), claimed(LATE)
    other = claimed(WORKER)
    lose_lease(other)
    start(started)
    assert Job.objects.reap(worker_id=LATE) == 2
    assert [(stored(job).status, stored(job).attempts) for job in (started, waiting)] == [
        (PENDING, 1),
        (PENDING, 0),
    ]
    assert stored(other).status == RUNNING


def test_where_the_record_is_exact_a_job_not_in_it_is_no_suspect() -> None:
    started, waiting = claimed(LATE), claimed(LATE)
    start(started)
    assert Job.objects.reap(worker_id=LATE, exact=True) == 2
    assert [stored(job).crashes for job in (started, waiting)] == [1, 0]


def test_neighbours_in_the_prefetch_are_not_punished() -> None:
    """100 jobs with one attempt each are held, the worker dies during the first: the other 99 go on."""
    for _ in range(100):
        enqueue(max_attempts=1)
    held = claim(100, worker_id=LATE)
    start(held[0])
    Job.objects.reap(worker_id=LATE, exact=True)
    counts = Job.objects.counts()
    assert (counts[DEAD], counts[PENDING]) == (1, 99)
    assert len(claim(100)) == 99


def test_the_oldest_are_taken_back_first_and_no_more_than_asked() -> None:
    jobs = [claimed() for _ in range(5)]
    lose_lease(*jobs)
    assert Job.objects.reap(size=2) == 2
    assert statuses(*jobs) == [PENDING, PENDING, RUNNING, RUNNING, RUNNING]
    assert Job.objects.reap(size=10) == 3


def test_max_attempts_bounds_the_starts_through_failures_and_lost_workers() -> None:
    job = claimed(max_attempts=3)
    start(job)
    Job.objects.reap(worker_id=WORKER)
    job = claim_again(job)
    Job.objects.fail(job, "no")
    job = claim_again(job)
    Job.objects.release(job)
    job = claim_again(job)
    start(job)
    Job.objects.reap(worker_id=WORKER)
    fresh = stored(job)
    assert (fresh.status, fresh.attempts, fresh.fence) == (DEAD, 3, 4)
    assert [error["attempt"] for error in fresh.errors] == [1, 2, 3]


def test_a_sweep_is_one_statement() -> None:
    lose_lease(*[claimed() for _ in range(20)])
    with statements() as made:
        assert Job.objects.reap() == 20
    assert len(made) == 1


def test_of_those_overdue_only_those_asked_for_are_taken_back() -> None:
    lost, other, living = claimed(), claimed(), claimed()
    lose_lease(lost, other)
    assert Job.objects.overdue() == {lost.pk, other.pk}
    assert len(Job.objects.overdue(1)) == 1
    assert Job.objects.reap(only={lost.pk, living.pk}) == 1
    assert statuses(lost, other, living) == [JobStatus.PENDING, JobStatus.RUNNING, JobStatus.RUNNING]
    assert Job.objects.reap(only=set()) == 0


def test_a_job_past_its_expires_at_is_cancelled_with_the_reason() -> None:
    late, fine, never = (
        enqueue(expires_at=timedelta(hours=1)),
        enqueue(expires_at=timedelta(hours=1)),
        enqueue(),
    )
    write(late, expires_at=ago(1))
    assert Job.objects.expire() == 1
    fresh = stored(late)
    assert fresh.status == CANCELLED
    assert fresh.finished_at is not None
    assert fresh.last_error == "JobExpired: not started by its expires_at"
    assert statuses(fine, never) == [PENDING, PENDING]
    assert Job.objects.expire() == 0


def test_a_job_that_started_in_time_does_not_expire() -> None:
    job = claimed(expires_at=timedelta(hours=1))
    write(job, expires_at=ago(1))
    assert Job.objects.expire() == 0
    assert Job.objects.complete(job)


def test_a_job_that_failed_and_could_not_start_again_in_time_expires() -> None:
    job = claimed(expires_at=timedelta(hours=1))
    Job.objects.fail(job, "no")
    write(job, expires_at=ago(1))
    assert Job.objects.expire() == 1
    assert stored(job).attempts == 1


def test_no_more_than_asked_expire_the_oldest_first() -> None:
    jobs = [enqueue(expires_at=timedelta(hours=1)) for _ in range(5)]
    selected(*jobs).update(expires_at=ago(1))
    assert Job.objects.expire(2) == 2
    assert statuses(*jobs) == [CANCELLED, CANCELLED, PENDING, PENDING, PENDING]
    assert Job.objects.expire() == 3


def test_an_expired_job_frees_its_dedupe_key() -> None:
    job = enqueue(dedupe_key="k", expires_at=timedelta(0))
    assert Job.objects.expire() == 1
    assert enqueue(dedupe_key="k").created is True
    assert not set(ids([job])) & set(ids(claim(10)))


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_taking_over_from_a_worker_passes_over_rows_that_others_have_locked() -> None:
    locked, free = claimed(), claimed()

    def take_over() -> tuple[int, int]:
        Job.objects.record_started(WORKER, [(locked.pk, 1.0), (free.pk, 1.0)])
        Job.objects.fail_stuck(WORKER, [locked.pk])
        released = Job.objects.release_held(WORKER, only=[(locked.pk, 1)])
        return released, Job.objects.reap(worker_id=WORKER, exact=True)

    with transaction.atomic():
        list(Job.objects.select_for_update().filter(pk=locked.pk))
        with in_thread(take_over) as taken:
            assert taken.result(PATIENCE) == (0, 1)
    assert statuses(locked, free) == [RUNNING, PENDING]
    assert (row(free)["attempts"], row(free)["crashes"]) == (1, 1)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_sweeps_pass_over_rows_that_others_have_locked() -> None:
    locked, free = claimed(), claimed()
    lose_lease(locked, free)
    waits, also_waits = enqueue(expires_at=timedelta(0)), enqueue(expires_at=timedelta(0))
    with transaction.atomic():
        list(Job.objects.select_for_update().filter(pk__in=[locked.pk, waits.pk]))
        with in_thread(lambda: (Job.objects.reap(), Job.objects.expire())) as swept:
            assert swept.result(PATIENCE) == (1, 1)
    assert statuses(locked, free, waits, also_waits) == [RUNNING, PENDING, PENDING, CANCELLED]
