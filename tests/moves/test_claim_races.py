"""Many workers at once, each in a thread with a connection of its own."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
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


class Crew:
    """Eight workers that start at once and claim and complete until nothing is left."""

    def __init__(
        self, running: Callable[[list[ClaimedJob]], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self.running = running
        self.start = Barrier(WORKERS)
        self.failed = Event()

    def drain(self) -> list[UUID]:
        """The jobs that were done, each as often as somebody did it."""
        answers = together(*[partial(self.work, f"worker-{n}") for n in range(WORKERS)])
        return [one for answer in answers for one in answer]

    def work(self, worker_id: str) -> list[UUID]:
        done: list[UUID] = []
        self.start.wait(PATIENCE)
        try:
            while not self.failed.is_set() and Job.objects.filter(status=JobStatus.PENDING).exists():
                done += self.turn(worker_id)
        except BaseException:
            self.failed.set()  # the others could wait for ever for a key that this worker holds
            raise
        return done

    def turn(self, worker_id: str) -> Iterable[UUID]:
        held = Job.objects.claim_for_worker(ClaimRequest(worker_id=worker_id, limit=10, lease=60))
        with self.running(held):
            assert Job.objects.held_by(worker_id).keys() == {job.id for job in held}
        settled = Job.objects.settle(worker_id, [Done(job) for job in held])
        assert not settled.lost
        return settled.written


def test_eight_workers_assign_four_thousand_jobs_once_each() -> None:
    jobs = Job.objects.enqueue_many(
        [{"job_type": TYPE, "queue": f"q{n % 3}", "priority": n % 4} for n in range(4_000)]
    )
    done = Crew().drain()
    assert len(done) == 4_000
    assert set(done) == set(ids(jobs))
    assert set(Job.objects.values_list("attempts", "fence", "status")) == {(1, 1, JobStatus.DONE)}


@pytest.mark.parametrize("turn", range(3))
def test_eight_workers_on_five_keys_never_run_two_of_a_key_at_once(turn: int) -> None:
    """Several turns: a claim and the batch that frees its key may collide in more than one way."""
    Job.objects.enqueue_many(
        [
            {"job_type": TYPE, "lock_key": f"k{n % 5}" if n % 4 else None, "priority": n % 2}
            for n in range(200)
        ]
    )
    now: set[str] = set()
    overlaps: list[str] = []

    @contextmanager
    def running(held: list[ClaimedJob]) -> Iterator[None]:
        keys = {job.lock_key for job in held if job.lock_key}
        overlaps.extend(now & keys)
        now.update(keys)
        yield
        now.difference_update(keys)

    done = Crew(running).drain()
    assert not overlaps
    assert len(done) == len(set(done)) == 200
    assert set(Job.objects.values_list("attempts", "status")) == {(1, JobStatus.DONE)}


@pytest.mark.postgresql
def test_workers_that_share_keys_write_no_error_to_the_servers_log(postgres_log: Path) -> None:
    """A collision is a normal event: no unique index and no deadlock has to settle it."""
    before = len(postgres_log.read_text())
    for _ in range(3):
        Job.objects.enqueue_many([{"job_type": TYPE, "lock_key": f"k{n % 5}"} for n in range(200)])
        Crew().drain()
    assert "ERROR:" not in postgres_log.read_text()[before:]


def test_claims_at_the_same_instant_share_the_keys_without_an_error() -> None:
    """All hold what they claimed until all have claimed: every key is given out exactly once."""
    for turn in range(5):
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
