"""``settle``: many outcomes of one worker at once, as its process hands them in."""

import pytest
from django.db import transaction

from django_jobqueue.managers.failures import describe
from django_jobqueue.managers.outcomes import Done, Failed, Outcome, Released, Snoozed
from django_jobqueue.models import Job, JobStatus
from django_jobqueue.payloads import encode_result
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
)
from tests.moves.threads import PATIENCE, in_thread

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def failed(job: Job, delay: float | None = 60, *, unsure: bool = False) -> Failed:
    return Failed(job, failure=describe(ValueError("no")), delay=delay, unsure=unsure)


def test_outcomes_of_every_kind_are_written_and_told() -> None:
    jobs = [claimed() for _ in range(6)]
    settled = Job.objects.settle(
        WORKER,
        [
            Done(jobs[0], 0.5, '{"a": 1}'),
            failed(jobs[1]),
            Snoozed(jobs[2], delay=5),
            Released(jobs[3]),
            failed(jobs[4], None),
            Done(jobs[5]),
        ],
    )
    assert settled.lost == []
    assert settled.written == dict(zip(ids(jobs), [DONE, PENDING, PENDING, PENDING, DEAD, DONE], strict=True))
    assert statuses(*jobs) == [settled.written[job.id] for job in jobs]
    assert stored(jobs[0]).result == {"a": 1}
    assert stored(jobs[5]).result is None


def test_each_kind_is_one_statement_for_a_whole_batch() -> None:
    for _ in range(100):
        enqueue()
    held = claim(100)
    outcomes: list[Outcome] = [Done(job) if n % 2 else failed(job) for n, job in enumerate(held)]
    with statements() as made:
        settled = Job.objects.settle(WORKER, outcomes)
    assert len(made) == 2
    assert len(settled.written) == 100


def test_nothing_to_settle_is_no_statement() -> None:
    with statements() as made:
        assert not Job.objects.settle(WORKER, []).written
    assert not made


def test_each_job_gets_its_own_result_and_its_own_error() -> None:
    jobs = [claimed() for _ in range(10)]
    outcomes: list[Outcome] = [Done(job, 0.1, str(n)) for n, job in enumerate(jobs[:5])]
    outcomes += [
        Failed(job, failure=describe(ValueError(f"error {n}")), delay=100 * n)
        for n, job in enumerate(jobs[5:])
    ]
    Job.objects.settle(WORKER, outcomes)
    assert [stored(job).result for job in jobs[:5]] == [0, 1, 2, 3, 4]
    assert [stored(job).last_error for job in jobs[5:]] == [f"ValueError: error {n}" for n in range(5)]
    due = [stored(job).run_after for job in jobs[5:]]
    assert [round((later - due[0]).total_seconds()) for later in due] == [0, 100, 200, 300, 400]


def test_one_lost_job_does_not_stop_its_neighbours() -> None:
    mine, lost, also_mine = claimed(), claimed(), claimed()
    lose_lease(lost)
    Job.objects.reap()
    before = row(lost)
    outcome = Done(lost)
    settled = Job.objects.settle(WORKER, [Done(mine), outcome, Done(also_mine)])
    assert settled.lost == [outcome]
    assert settled.written == {mine.id: DONE, also_mine.id: DONE}
    assert row(lost) == before


def test_the_start_is_the_claim_plus_what_the_worker_measured() -> None:
    done, fails = claimed(), claimed()
    selected(done, fails).update(claimed_at=ago(10))
    Job.objects.settle(WORKER, [Done(done, 1.5), Failed(fails, 2.5, failure=describe(ValueError()), delay=0)])
    for job, seconds in ((stored(done), 1.5), (stored(fails), 2.5)):
        assert job.run_started_at is not None
        assert job.claimed_at is not None
        assert abs((job.run_started_at - job.claimed_at).total_seconds() - seconds) < 0.01


def test_a_start_is_never_later_than_the_end() -> None:
    done = claimed()
    Job.objects.settle(WORKER, [Done(done, 5.0)])  # the claim was a while on its way

    job = stored(done)
    assert job.run_started_at is not None
    assert job.finished_at is not None
    assert job.claimed_at <= job.run_started_at <= job.finished_at


def test_a_start_that_the_worker_did_not_measure_stays_as_recorded() -> None:
    job = claimed()
    Job.objects.record_started(WORKER, [(job.id, 1.0)])
    started = stored(job).run_started_at
    Job.objects.complete(job)
    assert started is not None
    assert stored(job).run_started_at == started


def test_an_outcome_whose_answer_was_lost_counts_as_written_and_is_not_written_twice() -> None:
    done, fails, snoozed = claimed(), claimed(), claimed()
    outcomes: list[Outcome] = [Done(done, 0.1, "1"), failed(fails), Snoozed(snoozed, delay=60)]
    assert len(Job.objects.settle(WORKER, outcomes).written) == 3
    before = [row(job) for job in (done, fails, snoozed)]
    for outcome in outcomes:
        outcome.unsure = True
    again = Job.objects.settle(WORKER, outcomes)
    assert again.lost == []
    assert again.written == {done.id: DONE, fails.id: PENDING, snoozed.id: PENDING}
    assert [row(job) for job in (done, fails, snoozed)] == before


def test_an_outcome_that_was_not_written_the_first_time_is_written_now() -> None:
    job = claimed()
    assert Job.objects.settle(WORKER, [Done(job, unsure=True)]).written == {job.id: DONE}
    assert stored(job).status == DONE


def test_a_sure_outcome_that_is_not_accepted_is_lost() -> None:
    job = claimed()
    Job.objects.complete(job)
    outcome = Done(job)
    assert Job.objects.settle(WORKER, [outcome]).lost == [outcome]


def test_an_unsure_outcome_of_a_job_that_the_next_worker_has_is_lost() -> None:
    late = claimed(LATE)
    lose_lease(late)
    Job.objects.reap()
    claim_again(late, WORKER)
    outcome = Done(late, unsure=True)
    assert Job.objects.settle(LATE, [outcome]).lost == [outcome]
    assert stored(late).status == RUNNING


def test_an_unsure_completion_of_a_job_that_was_taken_back_is_lost() -> None:
    """It is not DONE, so the completion was never written: the job will run again."""
    late = claimed(LATE)
    lose_lease(late)
    Job.objects.reap()
    outcome = Done(late, unsure=True)
    settled = Job.objects.settle(LATE, [outcome])
    assert settled.lost == [outcome]
    assert not settled.written


def test_an_unsure_outcome_of_a_job_that_is_gone_is_lost() -> None:
    job = claimed()
    selected(job).delete()
    outcome = failed(job, unsure=True)
    assert Job.objects.settle(WORKER, [outcome]).lost == [outcome]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_rows_that_another_transaction_has_locked_are_held_up_and_their_neighbours_written() -> None:
    locked, free = claimed(), claimed()
    outcomes: list[Outcome] = [Done(locked), Done(free)]
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=locked.pk)
        with in_thread(lambda: Job.objects.settle(WORKER, outcomes, wait=False)) as answer:
            settled = answer.result(PATIENCE)
    assert (settled.written, settled.lost, settled.held_up) == ({free.id: DONE}, [], [outcomes[0]])
    assert statuses(locked, free) == [RUNNING, DONE]
    assert Job.objects.settle(WORKER, outcomes[:1], wait=False).written == {locked.id: DONE}


def test_two_outcomes_of_one_job_in_a_batch_are_settled_one_after_the_other() -> None:
    """The worker lost the first claim, got the job again, and both ended at once."""
    earlier, other = claimed(), claimed()
    Job.objects.release(earlier)
    again = claim_again(earlier)
    lost, kept = Done(earlier, result="1"), Done(again, result="2")
    settled = Job.objects.settle(WORKER, [lost, kept, Done(other)])
    assert settled.lost == [lost]
    assert settled.written == {again.id: DONE, other.id: DONE}
    assert stored(again).result == 2


def test_no_text_is_taken_for_the_way_in_which_batches_travel() -> None:
    texts = ["NULL", '"', "\\", '\\"', "{a,b}", "a,b", "'", "%s", "\n\t", " ", "ü 日本 🙂"]
    jobs = [claimed() for _ in texts]
    Job.objects.settle(
        WORKER, [Done(job, 0.1, encode_result(text, 99)) for job, text in zip(jobs, texts, strict=True)]
    )
    assert [stored(job).result for job in jobs] == texts

    jobs = [claimed() for _ in texts]
    Job.objects.settle(
        WORKER,
        [
            Failed(job, failure=describe(ValueError(text)), delay=None)
            for job, text in zip(jobs, texts, strict=True)
        ],
    )
    assert [stored(job).errors[0]["message"] for job in jobs] == texts
