"""Many workers at once, each in a thread with a connection of its own."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import Barrier, Event
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.managers import ClaimedJob
from django_jobqueue.managers.outcomes import Done
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import TYPE, claim, enqueue, ids
from tests.moves.threads import PATIENCE, in_thread, together, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = 8


def drain(worker_id: str, limit: int, running: Any = nullcontext) -> list[UUID]:
    """Claim, run and complete until nothing is left that anybody could still give back."""
    done: list[UUID] = []
    while Job.objects.filter(status=JobStatus.PENDING).exists():
        held = Job.objects.claim_for_worker(ClaimRequest(worker_id=worker_id, limit=limit, lease=60))
        with running(held):
            assert Job.objects.held_by(worker_id).keys() == {job.id for job in held}
        settled = Job.objects.settle(worker_id, [Done(job) for job in held])
        assert not settled.lost
        done += settled.written
    return done


def test_eight_workers_assign_four_thousand_jobs_once_each() -> None:
    jobs = Job.objects.enqueue_many(
        [{"job_type": TYPE, "queue": f"q{n % 3}", "priority": n % 4} for n in range(4_000)]
    )
    start = Barrier(WORKERS)

    def work(worker_id: str) -> list[UUID]:
        start.wait(PATIENCE)
        return drain(worker_id, 10)

    answers = together(*[partial(work, f"worker-{n}") for n in range(WORKERS)])
    done = [one for answer in answers for one in answer]
    assert len(done) == 4_000
    assert set(done) == set(ids(jobs))
    assert set(Job.objects.values_list("attempts", "fence", "status")) == {(1, 1, JobStatus.DONE)}


def test_eight_workers_on_five_keys_never_run_two_of_a_key_at_once() -> None:
    Job.objects.enqueue_many(
        [
            {"job_type": TYPE, "lock_key": f"k{n % 5}" if n % 4 else None, "priority": n % 2}
            for n in range(400)
        ]
    )
    start = Barrier(WORKERS)
    now: set[str] = set()
    overlaps: list[str] = []

    @contextmanager
    def running(held: list[ClaimedJob]) -> Iterator[None]:
        keys = {job.lock_key for job in held if job.lock_key}
        overlaps.extend(now & keys)
        now.update(keys)
        yield
        now.difference_update(keys)

    def work(worker_id: str) -> list[UUID]:
        start.wait(PATIENCE)
        return drain(worker_id, 10, running)

    answers = together(*[partial(work, f"worker-{n}") for n in range(WORKERS)])
    assert not overlaps
    assert sum(map(len, answers)) == 400
    assert set(Job.objects.values_list("attempts", "status")) == {(1, JobStatus.DONE)}


def test_claims_at_the_same_instant_share_the_keys_without_an_error() -> None:
    """All hold what they claimed until all have claimed: every key is given out exactly once."""
    for turn in range(10):
        Job.objects.enqueue_many([{"job_type": TYPE, "lock_key": f"{turn}-{n % 5}"} for n in range(40)])
        start = Barrier(WORKERS)

        def work(worker_id: str, start: Barrier = start) -> list[str | None]:
            start.wait(PATIENCE)
            return [job.lock_key for job in claim(10, worker_id=worker_id)]

        answers = together(*[partial(work, f"worker-{n}") for n in range(WORKERS)])
        keys = Counter(key for answer in answers for key in answer)
        assert keys.total() == len(keys) <= 5
        held = Counter(Job.objects.filter(status=JobStatus.RUNNING).values_list("lock_key", flat=True))
        assert held == keys
        Job.objects.all().delete()


@pytest.mark.postgresql
def test_a_claim_passes_over_what_another_transaction_holds() -> None:
    jobs = [enqueue() for _ in range(6)]
    with transaction.atomic():
        first = claim(3)
        with in_thread(lambda: claim(10, worker_id="other")) as other:
            second = other.result(PATIENCE)
    assert ids(first) == ids(jobs[:3])
    assert ids(second) == ids(jobs[3:])


@pytest.mark.postgresql
def test_a_claim_locks_no_more_rows_than_it_takes() -> None:
    jobs = [enqueue(queue=f"q{n % 3}", priority=n % 2) for n in range(30)]
    with transaction.atomic():
        first = claim(3)
        with in_thread(lambda: claim(100, worker_id="other")) as other:
            second = other.result(PATIENCE)
    assert len(first) == 3
    assert sorted([*ids(first), *ids(second)]) == ids(jobs)


@pytest.mark.postgresql
def test_a_claim_neither_waits_for_a_key_in_another_transaction_nor_takes_it() -> None:
    first, second, plain = enqueue(lock_key="k"), enqueue(lock_key="k"), enqueue()
    with transaction.atomic():
        assert ids(claim(1)) == [first.id]
        with in_thread(lambda: claim(10, worker_id="other")) as other:
            taken = other.result(PATIENCE)
    assert ids(taken) == [plain.id]
    assert Job.objects.get(pk=second.pk).status == JobStatus.PENDING


@pytest.mark.postgresql
def test_a_claim_waits_for_nobody_who_is_enqueueing() -> None:
    job = enqueue()
    with transaction.atomic():
        enqueue(dedupe_key="k")
        with in_thread(lambda: claim(10, worker_id="other")) as other:
            assert ids(other.result(PATIENCE)) == [job.id]


@pytest.mark.sqlite
def test_a_claim_waits_for_the_one_writer_and_then_goes_on() -> None:
    job = enqueue()
    writing = Event()

    def other() -> list[Any]:
        wait_for(writing)
        return ids(claim(10, worker_id="other"))

    with in_thread(other) as later:
        with transaction.atomic():
            new = enqueue()
            writing.set()
        assert later.result(PATIENCE) == [job.id, new.id]
