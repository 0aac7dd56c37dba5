"""Guarantee 2: a job exists exactly if the transaction that enqueued it commits."""

import pytest
from django.db import transaction

from django_jobqueue.models import Job
from tests.moves.factories import TYPE, claim, enqueue, ids, selected
from tests.moves.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)


def seen_elsewhere() -> int:
    with in_thread(Job.objects.count) as counted:
        return int(counted.result())


def test_a_job_is_seen_by_others_from_the_commit_on() -> None:
    with transaction.atomic():
        job = enqueue()
        assert Job.objects.get() == job
        assert seen_elsewhere() == 0
    assert seen_elsewhere() == 1


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_job_is_gone_with_the_rollback(many: bool) -> None:
    with transaction.atomic():
        if many:
            Job.objects.enqueue_many([(TYPE, {}), (TYPE, {})])
        else:
            enqueue()
        transaction.set_rollback(True)
    assert not Job.objects.exists()


def test_an_inner_rollback_takes_only_what_was_enqueued_inside() -> None:
    with transaction.atomic():
        outer = enqueue()
        with transaction.atomic():
            enqueue()
            Job.objects.enqueue_many([(TYPE, {}), (TYPE, {})])
            transaction.set_rollback(True)
        last = enqueue()
    assert ids(list(Job.objects.order_by("id"))) == [outer.id, last.id]


def test_a_key_of_a_rolled_back_job_is_free() -> None:
    with transaction.atomic():
        enqueue(dedupe_key="k")
        transaction.set_rollback(True)
    assert enqueue(dedupe_key="k").created is True


def test_a_bad_payload_inside_a_transaction_lets_the_caller_go_on() -> None:
    with transaction.atomic():
        with pytest.raises(ValueError, match="payload"):
            enqueue({"a": object()})
        job = enqueue()
    assert Job.objects.get() == job


def test_a_claim_that_is_rolled_back_did_not_happen() -> None:
    job = enqueue()
    with transaction.atomic():
        [held] = claim()
        transaction.set_rollback(True)
    assert held.id == job.id
    [again] = claim()
    assert (again.attempts, again.fence) == (1, 1)


def test_a_completion_that_is_rolled_back_did_not_happen() -> None:
    enqueue()
    [held] = claim()
    with transaction.atomic():
        assert Job.objects.complete(held, 1)
        transaction.set_rollback(True)
    assert Job.objects.complete(held, 2)
    assert selected(held).get().result == 2
