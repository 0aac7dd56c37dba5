"""Of all jobs with one lock key at most one runs at a time; the others wait and block nobody."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from django_jobqueue.databases import database_for
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    TYPE,
    claim,
    claimed,
    enqueue,
    ids,
    lose_lease,
    statements,
    statuses,
    stored,
)

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def test_of_two_jobs_with_a_key_one_batch_takes_only_the_first() -> None:
    first, second, other = enqueue(lock_key="k"), enqueue(lock_key="k"), enqueue()
    assert ids(claim(10)) == [first.id, other.id]
    assert stored(second).status == PENDING


def test_while_one_runs_the_next_is_not_taken() -> None:
    first, second = enqueue(lock_key="k"), enqueue(lock_key="k", priority=-1)
    [held] = claim(1)
    assert held.id == first.id
    assert not claim(10)
    Job.objects.complete(held)
    assert ids(claim(10)) == [second.id]


@pytest.mark.parametrize("how", ["complete", "fail", "dead", "snooze", "release", "reap"])
def test_every_end_of_an_attempt_frees_the_key(how: str) -> None:
    job = claimed(lock_key="k")
    waiting = enqueue(lock_key="k")
    assert not claim(10)
    match how:
        case "complete":
            Job.objects.complete(job)
        case "fail":
            Job.objects.fail(job, "no", delay=60)
        case "dead":
            Job.objects.fail(job, "no", delay=None)
        case "snooze":
            Job.objects.snooze(job, 60)
        case "release":
            Job.objects.release(job)
        case "reap":
            lose_lease(job)
            Job.objects.reap(exact=True)
    assert waiting.id in ids(claim(1, queues=["default"]))


def test_the_first_of_a_key_is_the_first_in_claim_order() -> None:
    enqueue(lock_key="k", queue="b")
    urgent = enqueue(lock_key="k", queue="a", priority=50)
    enqueue(lock_key="k", queue="c")
    assert ids(claim(10)) == [urgent.id]


def test_each_key_has_its_own_turn() -> None:
    jobs = [enqueue(lock_key=f"k{n % 3}") for n in range(9)]
    assert ids(claim(10)) == ids(jobs[:3])
    assert not claim(10)


def test_a_thousand_jobs_that_wait_for_one_key_do_not_hide_the_job_behind_them() -> None:
    Job.objects.enqueue_many([{"job_type": TYPE, "lock_key": "k"}] * 1_000)
    behind = enqueue(job_type="tests:behind")
    [first] = claim(10)
    assert first.lock_key == "k"
    assert ids(claim(10)) == [behind.id]


def test_a_running_key_of_another_queue_blocks_too() -> None:
    claimed(lock_key="k", queue="a")
    blocked, free = enqueue(lock_key="k", queue="b"), enqueue(lock_key="other", queue="b")
    assert ids(claim(10)) == [free.id]
    assert stored(blocked).status == PENDING


def test_a_job_may_have_both_keys() -> None:
    first = enqueue(lock_key="k", dedupe_key="k")
    second = enqueue(lock_key="k", dedupe_key="other")
    assert ids(claim(10)) == [first.id]
    assert stored(second).status == PENDING


@pytest.fixture
def unblind(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[Callable[[], None]]:
    """No look at the running keys until it is called: the write meets the unique index, as in a race."""
    database = type(database_for("default"))
    due = database.due

    def blind(self: Any, request: Any, job: str) -> str:
        return due(self, request, job).replace("r.status = 2", "r.status = 9")

    def end() -> None:
        monkeypatch.undo()
        database_for("default").prepare(connection)

    monkeypatch.setattr(database, "due", blind)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE OR REPLACE FUNCTION django_jobqueue_lock_is_free(key text) RETURNS boolean "
                "LANGUAGE sql AS 'SELECT TRUE'"
            )
    yield end
    end()


@pytest.mark.django_db(transaction=True)
def test_a_key_that_starts_elsewhere_after_our_look_is_a_normal_event(unblind: Callable[[], None]) -> None:
    claimed(lock_key="k")
    keyed = [enqueue(lock_key=key, priority=5) for key in ("k", "m", "k")]
    plain = [enqueue() for _ in range(3)]
    taken = ids(claim(10))
    assert set(taken) >= set(ids(plain))
    assert len(taken) == len(set(taken))
    assert statuses(keyed[0], keyed[2]) == [PENDING, PENDING]
    unblind()
    rest = ids(claim(10))
    assert sorted([*taken, *rest]) == sorted([keyed[1].id, *ids(plain)])


@pytest.mark.django_db(transaction=True)
def test_a_collision_in_the_callers_transaction_leaves_it_usable(unblind: Callable[[], None]) -> None:
    claimed(lock_key="k")
    enqueue(lock_key="k")
    with transaction.atomic():
        assert not claim(10)
        plain = enqueue()
        assert ids(claim(10)) == [plain.id]
    assert statuses(plain) == [RUNNING]


@pytest.mark.django_db(transaction=True)
def test_a_collision_costs_a_few_statements_and_no_more(unblind: Callable[[], None]) -> None:
    claimed(lock_key="k")
    Job.objects.enqueue_many([{"job_type": TYPE, "lock_key": "k"}] * 50)
    plain = [enqueue(priority=-1) for _ in range(3)]
    with statements() as made:
        claim(10)
    assert len(made) <= 3
    unblind()
    claim(10)
    assert statuses(*plain) == [RUNNING] * 3
