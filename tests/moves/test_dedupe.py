"""At most one active job has a dedupe key; a second is not made, and nothing breaks."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    TYPE,
    ago,
    claim_again,
    claimed,
    enqueue,
    ids,
    in_status,
    lose_lease,
    row,
    selected,
    statements,
    stored,
    write,
)

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


@pytest.mark.parametrize("status", [PENDING, RUNNING], ids=lambda one: one.name)
def test_a_second_active_job_of_a_key_is_not_made(status: JobStatus) -> None:
    first = in_status(status, dedupe_key="k", payload={"n": 1})
    before = row(first)
    second = enqueue({"n": 2}, dedupe_key="k", priority=50)
    assert second.created is False
    assert (second.id, second.status, second.payload, second.priority) == (first.id, status, {"n": 1}, 0)
    assert row(first) == before
    assert Job.objects.count() == 1


@pytest.mark.parametrize("status", [DONE, DEAD, CANCELLED], ids=lambda one: one.name)
def test_a_key_is_free_again_once_its_job_has_ended(status: JobStatus) -> None:
    first = in_status(status, dedupe_key="k")
    second = enqueue(dedupe_key="k")
    assert second.created is True
    assert second.id != first.id


@pytest.mark.parametrize("move", ["fail", "snooze", "release", "reap"])
def test_a_job_that_will_run_again_keeps_its_key(move: str) -> None:
    job = claimed(dedupe_key="k")
    match move:
        case "fail":
            Job.objects.fail(job, "no")
        case "snooze":
            Job.objects.snooze(job, 60)
        case "release":
            Job.objects.release(job)
        case "reap":
            lose_lease(job)
            Job.objects.reap()
    assert stored(job).status == PENDING
    assert enqueue(dedupe_key="k").id == job.id


def test_the_key_counts_over_all_types_and_queues() -> None:
    first = enqueue(dedupe_key="k")
    assert enqueue(dedupe_key="k", job_type="tests:other", queue="other").id == first.id


def test_jobs_of_other_keys_and_of_none_are_made() -> None:
    jobs = [enqueue(dedupe_key=key) for key in ("k", "K", "k ", "kk", None, None)]
    assert all(job.created for job in jobs)
    assert len(set(ids(jobs))) == 6


def test_a_collision_leaves_the_callers_transaction_usable() -> None:
    enqueue(dedupe_key="k")
    with transaction.atomic():
        assert enqueue(dedupe_key="k").created is False
        assert connection.needs_rollback is False
        other = enqueue()
    assert Job.objects.count() == 2
    assert stored(other) == other


def test_the_job_found_is_the_whole_row() -> None:
    first = claim_again(enqueue({"a": 1}, dedupe_key="k", lock_key="l"))
    found = enqueue(dedupe_key="k")
    assert found.token == first.token
    assert (found.payload, found.lock_key, found.lease_until) == ({"a": 1}, "l", first.lease_until)


def test_no_collision_costs_no_second_statement() -> None:
    with statements() as made:
        enqueue(dedupe_key="k")
    assert len(made) == 1
    with statements() as found:
        enqueue(dedupe_key="k")
    assert len(found) == 2


def test_many_jobs_keep_their_order_and_honour_keys_row_by_row() -> None:
    running = claimed(dedupe_key="b")
    keys = ["c", None, "a", "b", "a", None, "c", "z"]
    jobs = Job.objects.enqueue_many(
        [{"job_type": TYPE, "payload": {"n": n}, "dedupe_key": key} for n, key in enumerate(keys)]
    )
    assert [job.created for job in jobs] == [True, True, True, False, False, True, False, True]
    assert [job.dedupe_key for job in jobs] == keys
    assert [job.payload.get("n") for job in jobs] == [0, 1, 2, None, 2, 5, 0, 7]
    assert jobs[3].id == running.id
    assert (jobs[4].id, jobs[6].id) == (jobs[2].id, jobs[0].id)
    assert Job.objects.count() == 6


def test_a_job_found_for_two_of_a_list_is_two_objects() -> None:
    first, second = Job.objects.enqueue_many([(TYPE, {}), (TYPE, {})], dedupe_key="k")
    assert first == second
    assert (first.created, second.created) == (True, False)


def test_a_collision_within_many_leaves_the_callers_transaction_usable() -> None:
    enqueue(dedupe_key="k")
    with transaction.atomic():
        jobs = Job.objects.enqueue_many([(TYPE, {}), (TYPE, {})], dedupe_key="k")
        assert [job.created for job in jobs] == [False, False]
        enqueue()
    assert Job.objects.count() == 2


def test_a_key_is_free_again_after_its_job_is_removed() -> None:
    first = enqueue(dedupe_key="k")
    selected(first).delete()
    assert enqueue(dedupe_key="k").created is True


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_holder_that_expired_and_was_not_swept_yet_does_not_swallow_the_new_job(many: bool) -> None:
    expired = enqueue(dedupe_key="k", expires_at=timedelta(0))
    if many:
        made, other = Job.objects.enqueue_many([{"job_type": TYPE, "dedupe_key": key} for key in "kl"])
        assert other.created is True
    else:
        made = enqueue(dedupe_key="k")
    assert made.created is True
    assert made.id != expired.id
    assert stored(expired).status == CANCELLED
    assert "expires_at" in stored(expired).last_error


def test_a_running_holder_past_its_expires_at_keeps_the_key() -> None:
    running = claimed(dedupe_key="k", expires_at=timedelta(hours=1))
    write(running, expires_at=ago(1))
    assert enqueue(dedupe_key="k").id == running.id
