"""One dedupe key, two transactions: whatever the order, exactly one active job."""

from functools import partial
from threading import Barrier, Event
from typing import Any

import pytest
from django.db import transaction

from django_jobqueue.exceptions import EnqueueContended
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import TYPE, claimed, enqueue, ids
from tests.moves.threads import (
    PATIENCE,
    before_each,
    in_thread,
    together,
    wait_for,
    wait_until_somebody_waits,
)

pytestmark = pytest.mark.django_db(transaction=True)

MANY = {"job_type": TYPE, "dedupe_key": "k"}
HOW = {
    "one": lambda: enqueue(dedupe_key="k"),
    "many": lambda: Job.objects.enqueue_many([MANY, {"job_type": TYPE}])[0],
}
every_way = pytest.mark.parametrize("make", HOW.values(), ids=HOW)


def keyed() -> list[Any]:
    return list(Job.objects.filter(dedupe_key="k").values_list("id", flat=True))


@every_way
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
@pytest.mark.postgresql
def test_the_second_waits_for_the_first_transaction_to_end(make: Any, commits: bool) -> None:
    inside = Event()

    def comes_second() -> Job:
        wait_for(inside)
        return make()

    with in_thread(comes_second) as second:
        with transaction.atomic():
            first = make()
            inside.set()
            wait_until_somebody_waits()
            assert not second.done()
            transaction.set_rollback(not commits)
        made = second.result(PATIENCE)
    assert made.created is not commits
    assert keyed() == [made.id]
    assert (made.id == first.id) is commits


@every_way
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
def test_two_transactions_at_once_leave_exactly_one(make: Any, commits: bool) -> None:
    inside = Event()

    def holds_and_ends() -> Job:
        with transaction.atomic():
            job = make()
            inside.set()
            transaction.set_rollback(not commits)
        return job

    def comes_second() -> Job:
        wait_for(inside)
        return make()

    first, second = together(holds_and_ends, comes_second)
    assert keyed() == [second.id]
    assert second.created is not commits
    assert (first.id == second.id) is commits


def test_eight_at_once_make_one_job_and_all_know_it() -> None:
    start = Barrier(8)

    def race() -> Job:
        start.wait(PATIENCE)
        return enqueue(dedupe_key="k")

    jobs = together(*[race] * 8)
    assert keyed() == [jobs[0].id]
    assert len(set(ids(jobs))) == 1
    assert [job.created for job in jobs].count(True) == 1


def complete_elsewhere(job: Job) -> None:
    with in_thread(Job.objects.complete, job) as done:
        assert done.result(PATIENCE)


# On SQLite many jobs are made in a transaction that has the write lock, so that no holder can end in between.
@pytest.mark.parametrize("make", ["one", pytest.param("many", marks=pytest.mark.postgresql)])
def test_a_holder_that_ends_between_insert_and_look_up_is_not_returned(make: str) -> None:
    holders = [claimed(dedupe_key="k")]
    with before_each("SELECT", lambda: complete_elsewhere(holders.pop()) if holders else None):
        made = HOW[make]()
    assert made.created is True
    assert Job.objects.get(dedupe_key="k", status=JobStatus.PENDING) == made
    assert Job.objects.get(dedupe_key="k", status=JobStatus.DONE) != made


def test_a_key_that_changes_hands_at_every_try_is_an_error_that_stores_nothing() -> None:
    holders: list[Job] = []

    def hold() -> None:
        with in_thread(lambda: holders.append(claimed(dedupe_key="k"))):
            pass

    with (
        before_each("INSERT", hold),
        before_each("SELECT", lambda: complete_elsewhere(holders[-1])),
        pytest.raises(EnqueueContended, match=r"'k'.*Nothing was stored: enqueue again"),
    ):
        enqueue({"mine": True}, dedupe_key="k")
    assert len(holders) == 3
    assert not Job.objects.filter(payload={"mine": True}).exists()


def test_lists_of_the_same_keys_in_other_orders_do_not_deadlock() -> None:
    keys = [f"k{n}" for n in range(300)]
    start = Barrier(4)

    def race(order: list[str]) -> list[Job]:
        start.wait(PATIENCE)
        return Job.objects.enqueue_many([{"job_type": TYPE, "dedupe_key": key} for key in order])

    orders = [keys, keys[::-1], keys[150:] + keys[:150], keys[::-1]]
    answers = together(*[partial(race, order) for order in orders])
    assert Job.objects.count() == 300
    for order, jobs in zip(orders, answers, strict=True):
        assert [job.dedupe_key for job in jobs] == order
    assert sum(job.created is True for jobs in answers for job in jobs) == 300
