"""``claim``: which due jobs, in what order, and what is written on them."""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.exceptions import InvalidOption
from django_jobqueue.managers import ClaimedJob
from django_jobqueue.models import Job, JobStatus, Queue
from tests.moves.factories import (
    TYPE,
    WORKER,
    ago,
    claim,
    dead,
    enqueue,
    ids,
    in_status,
    make_due,
    row,
    seconds_from_now,
    selected,
    statements,
    statuses,
    stored,
    write,
)

pytestmark = pytest.mark.django_db

SHUFFLED = random.Random(7)  # noqa: S311 - the same order in every run


def test_a_claim_makes_the_job_the_workers_for_the_lease() -> None:
    job = enqueue({"a": 1}, lock_key="l")
    [held] = claim(lease=90)
    assert held == job
    fresh = stored(job)
    assert (fresh.status, fresh.worker_id, fresh.attempts, fresh.fence) == (JobStatus.RUNNING, WORKER, 1, 1)
    assert fresh.lease_until is not None
    assert fresh.claimed_at is not None
    assert abs((fresh.lease_until - fresh.claimed_at).total_seconds() - 90) < 0.01
    assert -5 < seconds_from_now(fresh.claimed_at) <= 0
    assert fresh.run_started_at is fresh.finished_at is None


def test_the_job_returned_is_the_row_without_asking_again(django_assert_num_queries: Any) -> None:
    enqueue({"a": [1, {"b": None}]}, priority=3, dedupe_key="d", lock_key="l", expires_at=timedelta(hours=1))
    [held] = claim()
    names = [field.attname for field in Job._meta.concrete_fields]
    with django_assert_num_queries(0):
        given = {name: getattr(held, name) for name in names}
    assert given == row(held)


def test_a_second_claim_clears_what_the_last_attempt_left() -> None:
    enqueue()
    [job] = claim()
    Job.objects.report_progress(WORKER, [(job.id, job.fence, 0.5, "half")])
    Job.objects.record_started(WORKER, [(job.id, 1.0)])
    Job.objects.release(job)
    [again] = claim()
    assert (again.progress, again.progress_note, again.run_started_at) == (None, "", None)
    assert (again.attempts, again.fence) == (1, 2)


def test_the_order_is_priority_then_due_time_then_age() -> None:
    plan = [(priority, seconds) for priority in (5, 0, -5) for seconds in (30, 20, 20, 10)]
    jobs = []
    for priority, seconds in SHUFFLED.sample(plan, len(plan)):
        job = enqueue(priority=priority, queue=f"q{len(jobs) % 3}")
        write(job, run_after=ago(seconds).replace(microsecond=0))
        jobs.append(stored(job))
    wanted = sorted(jobs, key=lambda job: (-job.priority, job.run_after, job.id))
    assert ids(claim(5)) == ids(wanted[:5])
    assert [claim()[0].id for _ in range(3)] == ids(wanted[5:8])
    assert ids(claim(100)) == ids(wanted[8:])


def test_of_equals_the_older_goes_first() -> None:
    jobs = [enqueue() for _ in range(9)]
    selected(*jobs).update(run_after=ago(10))
    assert ids(claim(4)) + ids(claim(9)) == ids(jobs)


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_no_more_than_the_limit_are_taken(limit: int) -> None:
    for n in range(30):
        enqueue(queue=f"q{n % 4}", priority=n % 3)
    assert len(claim(limit)) == limit
    assert Job.objects.filter(status=JobStatus.RUNNING).count() == limit


def test_a_job_is_not_taken_before_it_is_due() -> None:
    now, later = enqueue(), enqueue(run_after=timedelta(minutes=1), priority=100)
    assert ids(claim(10)) == [now.id]
    assert not claim()
    make_due(later)
    assert ids(claim(10)) == [later.id]


def test_jobs_for_later_hide_no_due_one_behind_them() -> None:
    for n in range(20):
        enqueue(run_after=timedelta(hours=1), priority=n, queue=f"q{n % 3}")
    due = enqueue(priority=-50)
    assert ids(claim(10)) == [due.id]


def test_an_expired_job_is_not_taken() -> None:
    expired, fine = enqueue(expires_at=timedelta(hours=1)), enqueue(expires_at=timedelta(hours=1))
    write(expired, expires_at=ago(1))
    assert ids(claim(10)) == [fine.id]


def test_only_the_queues_named_are_served() -> None:
    a, b, c = (enqueue(queue=name) for name in "abc")
    assert ids(claim(10, queues=["c", "a", "nothing"])) == [a.id, c.id]
    assert not claim(10, queues=[])
    assert ids(claim(10)) == [b.id]


def test_excluded_queues_are_left_alone() -> None:
    a, b, c = (enqueue(queue=name) for name in "abc")
    assert ids(claim(10, exclude_queues=["a", "c"])) == [b.id]
    assert ids(claim(10, queues=["a", "c"], exclude_queues=["a"])) == [c.id]
    assert stored(a).status == JobStatus.PENDING


def test_excluded_types_are_left_alone_and_hide_nothing() -> None:
    for _ in range(20):
        enqueue(job_type="tests:unknown", priority=10)
    known = [enqueue(job_type="tests:known") for _ in range(3)]
    assert ids(claim(10, exclude_types=["tests:unknown"])) == ids(known)


def test_a_paused_queue_is_not_served_until_it_is_resumed() -> None:
    paused, other = enqueue(queue="paused"), enqueue(queue="other")
    Queue.objects.pause("paused")
    assert not claim(10, queues=["paused"])
    assert ids(claim(10)) == [other.id]
    Queue.objects.resume("paused")
    assert ids(claim(10)) == [paused.id]


@pytest.mark.parametrize("status", [one for one in JobStatus if one != JobStatus.PENDING], ids=str)
def test_only_pending_jobs_are_taken(status: JobStatus) -> None:
    make_due(in_status(status))
    assert not claim(10)


def test_the_last_attempt_may_be_claimed_and_no_further() -> None:
    job = enqueue(max_attempts=1)
    [held] = claim()
    assert held.attempts == 1
    Job.objects.fail(held, "no")
    make_due(job)
    assert not claim()
    assert stored(job).status == JobStatus.DEAD


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("worker_id", bad) for bad in ("", "w" * 65, None, 5, "a\x00")),
        *(("limit", bad) for bad in (0, -1, 10_001, True, 1.5, "3", None)),
        *(("lease", bad) for bad in (0, 0.5, -1, 86_401, True, "60", None, float("nan"), float("inf"))),
        *(
            (name, bad)
            for name in ("queues", "exclude_queues", "exclude_types")
            for bad in ("abc", [1], [None])
        ),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_bad_argument_is_refused_by_name_and_value(option: str, value: Any) -> None:
    job = enqueue()
    with pytest.raises(InvalidOption, match=f"^{option}="):
        Job.objects.claim(**{"worker_id": WORKER, option: value})
    assert stored(job).status == JobStatus.PENDING


def test_arguments_at_their_bounds_are_taken() -> None:
    enqueue()
    assert len(Job.objects.claim(worker_id="w" * 64, limit=10_000, lease=86_400)) == 1
    enqueue()
    assert len(Job.objects.claim(worker_id="w", limit=1, lease=1)) == 1


def test_an_empty_table_gives_nothing() -> None:
    assert claim(10) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("limit", [1, 10, 100])
def test_a_claim_writes_in_one_statement(limit: int) -> None:
    for n in range(50):
        enqueue(queue=f"q{n % 3}", priority=n % 5, lock_key=f"l{n}" if n % 7 == 0 else None)
    dead()
    with statements() as made:
        assert len(claim(limit)) == min(limit, 50)
    assert len(written(made)) == 1
    with statements() as made, transaction.atomic():
        claim(limit)
    assert len(written(made)) == 1


def written(made: list[str]) -> list[str]:
    """Those that are more than a SELECT: on SQLite one reads what was claimed."""
    return [sql for sql in made if not sql.lstrip().startswith("SELECT")]


def test_a_worker_gets_the_same_jobs_as_tuples() -> None:
    jobs = [enqueue({"n": n}, priority=-n) for n in range(3)]
    held = Job.objects.claim_for_worker(ClaimRequest(worker_id=WORKER, limit=2, lease=60))
    assert [type(one) for one in held] == [ClaimedJob, ClaimedJob]
    assert [(one.id, one.fence, one.attempts, one.crashes) for one in held] == [
        (job.id, 1, 1, 0) for job in jobs[:2]
    ]
    assert [one.payload for one in held] == [{"n": 0}, {"n": 1}]
    assert (held[0].job_type, held[0].queue, held[0].max_attempts, held[0].context_text) == (
        TYPE,
        "default",
        3,
        "{}",
    )
    assert statuses(*jobs) == [JobStatus.RUNNING, JobStatus.RUNNING, JobStatus.PENDING]


def test_names_of_queues_and_types_are_data_and_not_sql() -> None:
    odd = 'it\'s %s "quoted" 100% ; --'
    job = enqueue(queue=odd, job_type=f"tests:{odd}", lock_key=odd)
    assert not claim(10, exclude_queues=[odd])
    assert not claim(10, exclude_types=[f"tests:{odd}"])
    assert ids(claim(10, queues=[odd], worker_id=odd[:60])) == [job.id]
    assert connection.is_usable()


def test_a_claim_in_the_callers_transaction_sees_what_that_enqueued() -> None:
    with transaction.atomic():
        job = enqueue()
        assert ids(claim()) == [job.id]
