"""Workers are woken at commit, seldom, and nothing depends on it."""

from collections.abc import Callable, Iterator

import pytest
from django.db import connection, transaction

from django_jobqueue.databases import waking
from django_jobqueue.models import Job, Queue
from tests.moves.factories import TYPE, dead, enqueue, selected, statements

pytestmark = pytest.mark.django_db(transaction=True)

Heard = Callable[[], list[str]]


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing had been sent yet, and within one interval."""
    monkeypatch.setattr(waking, "_last_sent", {})
    monkeypatch.setattr(waking, "NOTIFY_INTERVAL", 600.0)


@pytest.fixture
def heard(seldom: None) -> Iterator[Heard]:
    """What a listener was told since the last look."""
    listener = connection.copy()
    with listener.cursor() as cursor:
        cursor.execute(waking.CHANNEL)
        [[channel]] = cursor.fetchall()
        cursor.execute(f'LISTEN "{channel}"')

    def look() -> list[str]:
        with listener.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, 'end')", [channel])
        told: list[str] = []
        for notice in listener.connection.notifies(timeout=30):
            if notice.payload == "end":
                return told
            told.append(notice.payload)
        raise AssertionError("the end was not told")

    yield look
    listener.close()


@pytest.mark.postgresql
def test_workers_are_woken_at_commit_with_the_queues_name(heard: Heard) -> None:
    with transaction.atomic():
        enqueue(queue="mail")
        Job.objects.enqueue_many([{"job_type": TYPE, "queue": name} for name in ("a", "b", "a")])
        assert heard() == []
    assert sorted(heard()) == ["a", "b", "mail"]


@pytest.mark.postgresql
def test_nobody_is_woken_by_a_rollback_or_for_a_job_that_was_there(heard: Heard) -> None:
    with transaction.atomic():
        enqueue(queue="mail")
        transaction.set_rollback(True)
    assert heard() == []
    enqueue(dedupe_key="k", queue="first")
    enqueue(dedupe_key="k", queue="second")
    assert heard() == ["first"]


@pytest.mark.postgresql
def test_a_queue_is_named_once_in_an_interval(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(20):
        enqueue(queue="a")
    enqueue(queue="b")
    assert heard() == ["a", "b"]
    monkeypatch.setattr(waking, "NOTIFY_INTERVAL", 0.0)
    enqueue(queue="a")
    assert heard() == ["a"]


@pytest.mark.postgresql
def test_whatever_makes_a_job_due_wakes_its_queue(heard: Heard) -> None:
    again, sooner = dead(queue="again"), enqueue(queue="sooner")
    heard()
    waking._last_sent.clear()
    selected(again).retry()
    assert heard() == ["again"]
    waking._last_sent.clear()
    selected(sooner).reschedule(priority=5)
    assert heard() == ["sooner"]
    Queue.objects.resume("resumed")
    assert heard() == ["resumed"]


@pytest.mark.postgresql
@pytest.mark.usefixtures("seldom")
def test_a_job_is_stored_though_nobody_could_be_woken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waking, "CHANNEL", "SELECT 'x' || 'no_such_table'::regclass::oid")
    enqueue(queue="mail")
    assert Job.objects.count() == 1
    assert "Could not notify the workers of queue 'mail'" in caplog.text


@pytest.mark.sqlite
@pytest.mark.usefixtures("seldom")
def test_sqlite_has_nobody_to_tell() -> None:
    with statements() as made:
        enqueue()
    assert len(made) == 1
