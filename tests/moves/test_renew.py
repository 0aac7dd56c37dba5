"""What keeps claims alive: renewal, recorded starts, progress."""

import pytest
from django.db import transaction

from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    LATE,
    WORKER,
    claim_again,
    claimed,
    enqueue,
    lose_lease,
    row,
    seconds_from_now,
    selected,
    statements,
    stored,
)
from tests.moves.threads import PATIENCE, in_thread

pytestmark = pytest.mark.django_db


def test_a_renewal_prolongs_every_claim_of_the_workers_named() -> None:
    mine, also_mine, others = claimed("a"), claimed("b"), claimed("c")
    before = row(others)
    renewal = Job.objects.renew_lease(worker_ids=["a", "b", "nobody"], lease=500)
    assert renewal.held == {"a": {mine.id: 1}, "b": {also_mine.id: 1}}
    assert not renewal.to_cancel
    for job in (mine, also_mine):
        assert 490 < seconds_from_now(stored(job).lease_until) <= 500
    assert row(others) == before


def test_an_expired_lease_is_renewed_as_long_as_nobody_took_the_job_back() -> None:
    job = claimed()
    lose_lease(job)
    assert Job.objects.renew_lease(worker_ids=[WORKER]).held[WORKER] == {job.id: 1}
    assert seconds_from_now(stored(job).lease_until) > 50
    assert Job.objects.reap() == 0


def test_a_job_that_was_taken_back_is_not_among_those_held() -> None:
    kept, lost = claimed(LATE), claimed(LATE)
    lose_lease(lost)
    Job.objects.reap()
    assert Job.objects.renew_lease(worker_ids=[LATE]).held[LATE] == {kept.id: 1}
    claim_again(lost, WORKER)
    assert Job.objects.renew_lease(worker_ids=[LATE]).held[LATE] == {kept.id: 1}


def test_the_fence_tells_a_worker_that_its_own_earlier_claim_is_over() -> None:
    job = claimed()
    lose_lease(job)
    Job.objects.reap()
    claim_again(job)
    assert Job.objects.renew_lease(worker_ids=[WORKER]).held[WORKER] == {job.id: 2}


def test_a_renewal_says_which_jobs_were_asked_to_stop() -> None:
    asked, other = claimed(), claimed()
    selected(asked).cancel()
    renewal = Job.objects.renew_lease(worker_ids=[WORKER])
    assert renewal.to_cancel == {WORKER: {asked.id}}
    assert renewal.held[WORKER].keys() == {asked.id, other.id}
    assert Job.objects.held_by(WORKER) == {asked.id: (1, True), other.id: (1, False)}


def test_a_renewal_records_which_jobs_have_started_once() -> None:
    started, waiting = claimed(), claimed()
    Job.objects.renew_lease(worker_ids=[WORKER], started=[(started.id, 30.0)])
    first = stored(started).run_started_at
    assert -35 < seconds_from_now(first) < -29
    assert stored(waiting).run_started_at is None
    Job.objects.renew_lease(worker_ids=[WORKER], started=[(started.id, 5.0), (waiting.id, 1.0)])
    assert stored(started).run_started_at == first
    assert -6 < seconds_from_now(stored(waiting).run_started_at) < 0


def test_a_renewal_of_all_workers_is_one_statement() -> None:
    jobs = [claimed(f"w{n % 5}") for n in range(20)]
    with statements() as made:
        renewal = Job.objects.renew_lease(
            worker_ids=[f"w{n}" for n in range(5)], started=[(job.id, 1.0) for job in jobs]
        )
    assert len(made) == 1
    assert sum(map(len, renewal.held.values())) == 20


def test_nobody_renews_nothing() -> None:
    job = claimed()
    before = row(job)
    assert not Job.objects.renew_lease(worker_ids=[]).held
    assert row(job) == before


def test_a_recorded_start_is_only_the_first_one() -> None:
    job = claimed()
    Job.objects.record_started(WORKER, [(job.id, 10.0)])
    first = stored(job).run_started_at
    assert -12 < seconds_from_now(first) < -9
    Job.objects.record_started(WORKER, [(job.id, 1.0)])
    Job.objects.record_started(WORKER, [])
    assert stored(job).run_started_at == first


def test_a_very_short_age_is_a_start_of_just_now() -> None:
    job = claimed()
    Job.objects.record_started(WORKER, [(job.id, 0.000_01)])
    assert -1 < seconds_from_now(stored(job).run_started_at) < 0.01


def test_progress_is_stored_for_jobs_that_are_held() -> None:
    first, second = claimed(), claimed()
    Job.objects.report_progress(
        WORKER, [(first.id, 1, 0.25, "a quarter €"), (second.id, 1, None, "somewhere")]
    )
    Job.objects.report_progress(WORKER, [])
    assert (stored(first).progress, stored(first).progress_note) == (0.25, "a quarter €")
    assert (stored(second).progress, stored(second).progress_note) == (None, "somewhere")


def test_progress_does_not_stay_in_the_way_of_the_end() -> None:
    job = claimed()
    Job.objects.report_progress(WORKER, [(job.id, 1, 1.0, "all")])
    assert Job.objects.complete(job)
    assert (stored(job).status, stored(job).progress) == (JobStatus.DONE, 1.0)


def test_what_a_worker_holds_is_what_runs_under_its_name() -> None:
    job = claimed()
    claimed("other")
    enqueue()
    Job.objects.complete(claimed())
    assert Job.objects.held_by(WORKER) == {job.id: (1, False)}
    assert Job.objects.held_by("nobody") == {}


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_row_that_another_statement_has_locked_is_neither_waited_for_nor_lost() -> None:
    locked, free = claimed(), claimed()
    lose_lease(locked, free)
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=locked.pk)
        with in_thread(lambda: Job.objects.renew_lease(worker_ids=[WORKER])) as renewed:
            renewal = renewed.result(PATIENCE)
    assert renewal.held[WORKER] == {locked.id: 1, free.id: 1}
    assert seconds_from_now(stored(free).lease_until) > 0
    assert seconds_from_now(stored(locked).lease_until) < 0
