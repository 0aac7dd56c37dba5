"""``enqueue_many``: one insert a chunk, in order, all or none."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.exceptions import InvalidOption, InvalidPayload, UnknownJobType
from django_jobqueue.managers import enqueue as enqueue_module
from django_jobqueue.models import Job
from tests.moves.factories import TYPE, enqueue, ids, statements, stored

pytestmark = pytest.mark.django_db


def test_jobs_come_back_in_the_order_given() -> None:
    jobs = Job.objects.enqueue_many((TYPE, {"n": n}) for n in range(20))
    assert [job.payload["n"] for job in jobs] == list(range(20))
    assert ids(jobs) == sorted(ids(jobs))
    assert [stored(job).payload["n"] for job in jobs] == list(range(20))


def test_no_jobs_are_an_empty_list() -> None:
    with statements() as made:
        assert Job.objects.enqueue_many([]) == []
    assert not made


def test_options_for_all_give_way_to_those_of_one() -> None:
    plain, own = Job.objects.enqueue_many(
        [(TYPE, {"a": 1}), {"job_type": TYPE, "payload": {"a": 2}, "priority": 9, "queue": "own"}],
        priority=4,
        max_attempts=8,
    )
    assert (plain.priority, plain.queue, plain.max_attempts) == (4, "default", 8)
    assert (own.priority, own.queue, own.max_attempts) == (9, "own", 8)


def test_each_job_may_have_its_own_times() -> None:
    now, later = Job.objects.enqueue_many(
        [
            {"job_type": TYPE},
            {"job_type": TYPE, "run_after": timedelta(hours=1), "expires_at": timedelta(hours=2)},
        ]
    )
    assert (now.payload, now.expires_at) == ({}, None)
    assert later.run_after - now.run_after == timedelta(hours=1)
    assert later.expires_at is not None
    assert later.expires_at - now.run_after == timedelta(hours=2)
    assert (stored(later).run_after, stored(later).expires_at) == (later.run_after, later.expires_at)


def test_jobs_without_keys_are_one_statement_a_chunk() -> None:
    with statements() as made:
        jobs = Job.objects.enqueue_many([(TYPE, {"n": n}) for n in range(2_500)])
    assert len(made) == 3
    assert [job.payload["n"] for job in jobs] == list(range(2_500))
    assert Job.objects.count() == 2_500


@pytest.mark.postgresql
def test_keys_that_collide_with_none_cost_no_look_up() -> None:
    with statements() as made:
        Job.objects.enqueue_many([{"job_type": TYPE, "dedupe_key": f"k{n}"} for n in range(2_500)])
    assert len(made) == 3


def test_keys_that_collide_cost_one_look_up_a_chunk() -> None:
    enqueue(dedupe_key="k7")
    with statements() as made:
        jobs = Job.objects.enqueue_many([{"job_type": TYPE, "dedupe_key": f"k{n}"} for n in range(10)])
    insert, look_up = made
    assert "INSERT" in insert
    assert look_up.startswith("SELECT")
    assert [job.created for job in jobs].count(False) == 1


def test_one_key_over_several_chunks_is_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueue_module, "CHUNK", 3)
    keys = ["a", "b", "a", "b", "a", "a", None, "a", "b", "a"]
    jobs = Job.objects.enqueue_many([{"job_type": TYPE, "dedupe_key": key} for key in keys])
    assert [job.created for job in jobs] == [
        True,
        True,
        False,
        False,
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    assert [job.dedupe_key for job in jobs] == keys
    assert Job.objects.count() == 3


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ((TYPE, {"a": {1}}), InvalidPayload),
        (("tests-unknown", {}), UnknownJobType),
        ({"job_type": TYPE, "priority": 101}, InvalidOption),
        ({"job_type": TYPE, "prio": 5}, InvalidOption),
        ({"payload": {}}, InvalidOption),
        (TYPE, InvalidOption),
        ((TYPE,), InvalidOption),
        ([TYPE, {}], InvalidOption),
        (None, InvalidOption),
    ],
    ids=str,
)
def test_one_bad_job_stores_none(bad: Any, error: type[Exception]) -> None:
    good: list[Any] = [(TYPE, {"n": n}) for n in range(3)]
    with pytest.raises(error):
        Job.objects.enqueue_many([*good, bad, *good])
    assert not Job.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_all_or_none_are_stored_though_they_are_several_statements() -> None:
    def fail_at_the_third(execute: Any, sql: str, *rest: Any) -> Any:
        if "INSERT INTO" in sql:
            inserts.append(sql)
        if len(inserts) == 3:
            raise ConnectionError("the network is gone")
        return execute(sql, *rest)

    inserts: list[str] = []
    with connection.execute_wrapper(fail_at_the_third), pytest.raises(ConnectionError):
        Job.objects.enqueue_many([(TYPE, {})] * 2_500)
    assert not Job.objects.exists()


def test_the_callers_list_is_not_changed() -> None:
    given = [{"job_type": TYPE, "payload": {"a": 1}, "priority": 3}]
    Job.objects.enqueue_many(given)
    assert given == [{"job_type": TYPE, "payload": {"a": 1}, "priority": 3}]


AWKWARD = [
    "NULL",
    "null",
    '"',
    "\\",
    '\\"',
    "{a,b}",
    "a,b",
    "'",
    "''",
    "%s",
    "%(x)s",
    "\n\t",
    " ",
    "ü 日本 🙂",
    "{}",
    "E'x'",
]


def test_no_text_is_taken_for_the_way_in_which_batches_travel() -> None:
    jobs = Job.objects.enqueue_many(
        {"job_type": TYPE, "payload": {"n": text, text: [text]}, "dedupe_key": text, "lock_key": text}
        for text in AWKWARD
    )
    for job, text in zip(jobs, AWKWARD, strict=True):
        stored = Job.objects.get(pk=job.pk)
        assert (stored.payload, stored.dedupe_key, stored.lock_key) == ({"n": text, text: [text]}, text, text)
        assert (job.payload, job.run_after, job.created_at) == (
            stored.payload,
            stored.run_after,
            stored.created_at,
        )
