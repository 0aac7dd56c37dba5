"""A claim that goes on from marks keeps every rule of one that looks at everything, but sees less."""

import random
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.db import transaction

from django_jobqueue.databases.claiming import ClaimRequest, Mark
from django_jobqueue.databases.clock import from_database
from django_jobqueue.managers import ClaimedJob
from django_jobqueue.models import Job, JobStatus, Queue
from tests.moves.factories import (
    TYPE,
    WORKER,
    ago,
    claim,
    claimed,
    enqueue,
    heads,
    ids,
    in_order,
    selected,
    stored,
    write,
)
from tests.moves.threads import in_thread

pytestmark = pytest.mark.django_db

SPREAD = random.Random(11)  # noqa: S311 - the same jobs in every run


def take(limit: int, marks: list[Mark], **options: Any) -> list[ClaimedJob]:
    request = ClaimRequest(worker_id=WORKER, limit=limit, lease=60, marks=marks, **options)
    return Job.objects.claim_for_worker(request)


def mark_of(job: Job) -> Mark:
    return Mark(job.queue, job.priority, job.run_after, job.id)


def filled(lanes: int, jobs: int) -> list[Job]:
    """Due jobs in many lanes, most of them in a few; many of one due time."""
    numbers = count()
    made = Job.objects.enqueue_many(
        [
            {"job_type": TYPE, "queue": f"q{next(numbers) % lanes if n % 3 else n % 2}", "priority": n % 2}
            for n in range(jobs)
        ]
    )
    for n in range(5):
        selected(*SPREAD.sample(made, jobs // 6)).update(run_after=ago(10 + n))
    return list(Job.objects.filter(pk__in=ids(made)))


@pytest.mark.parametrize("limit", [1, 16, 17, 20, 40, 100, 250])
@pytest.mark.parametrize("lanes", [1, 3, 40])
def test_a_claim_from_any_number_of_lanes_is_the_first_of_all(lanes: int, limit: int) -> None:
    jobs = in_order(filled(lanes, 300))
    assert ids(claim(limit)) == ids(jobs[:limit])


@pytest.mark.parametrize("limit", [17, 50, 400])
def test_a_lane_that_has_nearly_all_gives_nearly_all(limit: int) -> None:
    few = [enqueue(queue=f"q{n}") for n in range(30)]
    many = Job.objects.enqueue_many([{"job_type": TYPE, "queue": "many"}] * 300)
    selected(*many).update(run_after=ago(9))
    jobs = [*in_order(many), *in_order(few)]
    assert ids(claim(limit)) == ids(jobs[:limit])


@pytest.mark.postgresql
@pytest.mark.parametrize("limit", [1, 17, 100])
@pytest.mark.parametrize("lanes", [1, 3, 40])
def test_from_the_head_of_every_lane_the_same_are_taken(lanes: int, limit: int) -> None:
    jobs = in_order(filled(lanes, 200))
    assert [job.id for job in take(limit, heads())] == ids(jobs[:limit])


@pytest.mark.postgresql
def test_claims_from_mark_to_mark_take_every_job_once_and_in_order() -> None:
    jobs = [enqueue() for _ in range(60)]
    for n in range(4):
        selected(*jobs[n::5]).update(run_after=ago(60 + n))
    wanted = ids(in_order(list(Job.objects.all())))
    taken: list[Any] = []
    marks: list[Mark] = []
    while len(taken) < 60:
        request = ClaimRequest(worker_id=WORKER, limit=7, lease=60, marks=marks)
        held, marks = Job.objects.claim_and_mark(request)
        assert held
        taken += [job.id for job in held]
    assert taken == wanted
    assert not take(7, marks)


@pytest.mark.postgresql
def test_a_claim_says_how_far_it_got_in_each_lane() -> None:
    a = [enqueue(queue="a") for _ in range(3)]
    b = enqueue(queue="b", priority=1)
    enqueue(queue="c")
    _, marks = Job.objects.claim_and_mark(ClaimRequest(worker_id=WORKER, limit=3, lease=60))
    read = {mark._replace(run_after=from_database(datetime.fromisoformat(mark.run_after))) for mark in marks}
    assert read == {mark_of(stored(a[1])), mark_of(stored(b))}


@pytest.mark.sqlite
def test_sqlite_has_no_use_for_marks() -> None:
    enqueue()
    jobs, marks = Job.objects.claim_and_mark(ClaimRequest(worker_id=WORKER, limit=3, lease=60))
    assert (len(jobs), marks) == (1, [])


@pytest.mark.postgresql
def test_before_a_mark_and_beside_the_lanes_nothing_is_seen_and_a_whole_claim_finds_it() -> None:
    known = [enqueue() for _ in range(3)]
    [first] = claim(1)
    earlier, urgent, elsewhere = enqueue(), enqueue(priority=50), enqueue(queue="new")
    write(earlier, run_after=ago(600))
    assert [job.id for job in take(10, [mark_of(first)])] == ids(known[1:])
    assert ids(claim(10)) == ids([urgent, earlier, elsewhere])


@pytest.mark.postgresql
def test_filters_hold_behind_marks() -> None:
    jobs = {name: enqueue(queue=name) for name in ("a", "b", "paused")}
    strange = enqueue(queue="a", job_type="tests:strange")
    later, gone = (
        enqueue(queue="a", run_after=timedelta(hours=1)),
        enqueue(queue="a", expires_at=timedelta(1)),
    )
    write(gone, expires_at=ago(1))
    Queue.objects.pause("paused")
    marks = [mark._replace(run_after=ago(60)) for mark in heads()]
    assert not take(10, marks, queues=[])
    assert not take(10, marks, queues=["a"], exclude_queues=["a"])
    held = take(10, marks, exclude_types=["tests:strange"], exclude_queues=["b"])
    assert [job.id for job in held] == [jobs["a"].id]
    assert [job.id for job in take(10, marks, queues=["a", "paused"])] == [strange.id]
    assert [job.id for job in take(10, marks)] == [jobs["b"].id]
    assert {stored(job).status for job in (later, gone, jobs["paused"])} == {JobStatus.PENDING}


@pytest.mark.postgresql
def test_behind_marks_no_lock_key_is_taken_for_the_first_of_it_may_stand_before_them() -> None:
    first, second, plain = enqueue(lock_key="k"), enqueue(lock_key="k"), enqueue()
    assert [job.id for job in take(10, [mark_of(second)])] == [plain.id]
    _, marks = Job.objects.claim_and_mark(ClaimRequest(worker_id=WORKER, limit=3, lease=60))
    assert stored(first).status == JobStatus.RUNNING
    assert marks == []


@pytest.mark.postgresql
def test_behind_marks_a_suspect_is_taken_alone() -> None:
    suspect, plain = enqueue(), enqueue()
    selected(suspect, plain).update(run_after=ago(60))
    write(suspect, crashes=1)
    marks = heads()
    assert not take(10, marks, suspects=False)
    assert [job.id for job in take(10, marks)] == [suspect.id]
    assert [job.id for job in take(10, marks)] == [plain.id]


@pytest.mark.postgresql
def test_a_job_that_comes_back_to_its_mark_is_seen_from_there() -> None:
    job = claimed()
    mark = mark_of(stored(job))
    Job.objects.release(job)
    assert [held.id for held in take(10, [mark])] == [job.id]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_behind_marks_what_another_claim_holds_is_passed_over() -> None:
    jobs = [enqueue(queue=f"q{n % 2}") for n in range(8)]
    marks = heads()
    with transaction.atomic():
        mine = take(4, marks)
        with in_thread(take, 4, marks) as answer:
            theirs = answer.result(timeout=10)
    assert sorted(job.id for job in [*mine, *theirs]) == sorted(ids(jobs))
