"""The dedupe policies, while others do something to the same key at the same time."""

from datetime import timedelta
from threading import Barrier, Event
from typing import Any

import pytest
from django.db import transaction

from django_jobqueue import Dedupe
from django_jobqueue.exceptions import DuplicateJob, EnqueueContended
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import TYPE, claim_again, claimed, enqueue, ids, stored
from tests.moves.threads import (
    PATIENCE,
    before_each,
    in_thread,
    together,
    wait_for,
    wait_until_somebody_waits,
)

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
SKIP, DEBOUNCE = Dedupe.skip_for(HOUR), Dedupe.debounce(HOUR)
every_policy = pytest.mark.parametrize(
    "dedupe", ["raise", "replace", SKIP, DEBOUNCE], ids=["raise", "replace", "skip_for", "debounce"]
)
replacing = pytest.mark.parametrize("dedupe", ["replace", DEBOUNCE], ids=["replace", "debounce"])


def elsewhere(act: Any, *args: Any) -> Any:
    """Do it in another thread, and be done with it."""
    with in_thread(act, *args) as done:
        return done.result(PATIENCE)


def end(job: Job) -> None:
    Job.objects.complete(claim_again(job))


@pytest.mark.parametrize(
    "dedupe", ["raise", "replace", SKIP, DEBOUNCE], ids=["raise", "replace", "skip", "wait"]
)
def test_eight_at_once_make_one_job(dedupe: Any) -> None:
    start = Barrier(8)

    def race(n: int) -> Job:
        start.wait(PATIENCE)
        try:
            return enqueue({"n": n}, dedupe_key="k", dedupe=dedupe)
        except DuplicateJob as error:
            return error.job

    jobs = together(*[lambda n=n: race(n) for n in range(8)])
    assert len(set(ids(jobs))) == Job.objects.count() == 1
    assert [job.created for job in jobs].count(True) == 1


@replacing
def test_of_two_transactions_the_later_arguments_stay(dedupe: Any) -> None:
    inside = Event()

    def comes_second() -> Job:
        wait_for(inside)
        return enqueue({"n": 2}, dedupe_key="k", dedupe=dedupe)

    with in_thread(comes_second) as second:
        with transaction.atomic():
            first = enqueue({"n": 1}, dedupe_key="k", dedupe=dedupe)
            inside.set()
        assert second.result(PATIENCE).id == first.id
    assert stored(first).payload == {"n": 2}
    assert Job.objects.count() == 1


@replacing
def test_a_job_that_is_claimed_meanwhile_keeps_its_arguments(dedupe: Any) -> None:
    holders = [enqueue({"n": 1}, dedupe_key="k")]
    # The statement that replaces; a worker's claim is no statement of this thread.
    word = "WITH" if Job.objects._connection.vendor == "postgresql" else "UPDATE"
    with before_each(word, lambda: elsewhere(claim_again, holders.pop()) if holders else None):
        found = enqueue({"n": 2}, dedupe_key="k", dedupe=dedupe)
    assert (found.created, found.status, found.payload) == (False, JobStatus.RUNNING, {"n": 1})


@pytest.mark.parametrize("dedupe", ["raise", "replace", DEBOUNCE], ids=["raise", "replace", "debounce"])
def test_a_holder_that_ends_meanwhile_makes_way_for_a_new_job(dedupe: Any) -> None:
    holders = [claimed(dedupe_key="k")]
    with before_each("SELECT", lambda: elsewhere(Job.objects.complete, holders.pop()) if holders else None):
        made = enqueue({"n": 2}, dedupe_key="k", dedupe=dedupe)
    assert made.created is True
    assert Job.objects.get(dedupe_key="k", status=JobStatus.PENDING) == made


def test_a_holder_that_ends_meanwhile_counts_for_a_policy_that_skips() -> None:
    first = claimed(dedupe_key="k")
    holders = [first]
    # The look for active and for recent jobs at once, a union: PostgreSQL has it in brackets.
    word = "(SELECT" if Job.objects._connection.vendor == "postgresql" else "SELECT"
    with before_each(word, lambda: elsewhere(Job.objects.complete, holders.pop()) if holders else None):
        found = enqueue(dedupe_key="k", dedupe=SKIP)
    assert (found.id, found.created, found.status) == (first.id, False, JobStatus.DONE)


@pytest.mark.postgresql
def test_who_skips_sees_a_job_that_was_made_and_done_while_it_waited() -> None:
    inside = Event()

    def comes_second() -> Job:
        wait_for(inside)
        return enqueue({"n": 2}, dedupe_key="k", dedupe=SKIP)

    with in_thread(comes_second) as second:
        with transaction.atomic():
            first = enqueue({"n": 1}, dedupe_key="k", dedupe=SKIP)
            inside.set()
            wait_until_somebody_waits()
            # As if a worker had been so fast between the commit and the moment in which the other wakes up.
            end(first)
        found = second.result(PATIENCE)
    assert (found.id, found.created) == (first.id, False)
    assert Job.objects.count() == 1


@pytest.mark.postgresql
@pytest.mark.parametrize(
    "dedupe", ["raise", "replace", SKIP, DEBOUNCE], ids=["raise", "replace", "skip", "wait"]
)
def test_the_second_makes_the_job_if_the_first_is_rolled_back(dedupe: Any) -> None:
    inside = Event()

    def comes_second() -> Job:
        wait_for(inside)
        return enqueue({"n": 2}, dedupe_key="k", dedupe=dedupe)

    with in_thread(comes_second) as second:
        with transaction.atomic():
            enqueue({"n": 1}, dedupe_key="k", dedupe=dedupe)
            inside.set()
            wait_until_somebody_waits()
            transaction.set_rollback(True)
        assert second.result(PATIENCE).created is True
    assert Job.objects.get().payload == {"n": 2}


@replacing
def test_a_key_that_changes_hands_at_every_try_is_an_error_that_stores_nothing(dedupe: Any) -> None:
    holders: list[Job] = []

    def hold() -> None:
        elsewhere(lambda: holders.append(claimed(dedupe_key="k")))

    with (
        before_each("INSERT", hold),
        before_each("SELECT", lambda: elsewhere(Job.objects.complete, holders[-1])),
        pytest.raises(EnqueueContended),
    ):
        enqueue({"mine": True}, dedupe_key="k", dedupe=dedupe)
    assert not Job.objects.filter(payload={"mine": True}).exists()


@pytest.mark.parametrize("dedupe", ["replace", SKIP], ids=["replace", "skip"])
def test_lists_of_the_same_keys_in_other_orders_do_not_deadlock(dedupe: Any) -> None:
    keys = [f"k{n}" for n in range(40)]
    start = Barrier(3)

    def race(order: list[str]) -> list[Job]:
        start.wait(PATIENCE)
        return Job.objects.enqueue_many(
            [{"job_type": TYPE, "dedupe_key": key, "dedupe": dedupe} for key in order]
        )

    orders = [keys, keys[::-1], keys[20:] + keys[:20]]
    answers = together(*[lambda order=order: race(order) for order in orders])
    assert Job.objects.count() == 40
    for order, jobs in zip(orders, answers, strict=True):
        assert [job.dedupe_key for job in jobs] == order
