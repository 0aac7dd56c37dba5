"""Workers are woken at commit, seldom, and nothing depends on it."""

from collections.abc import Callable, Iterator

import pytest
from django.db import connection, transaction

from django_jobqueue.databases import waking
from django_jobqueue.databases.waking import BURST, EVERYBODY, Notice
from django_jobqueue.models import Job, Queue
from tests.moves.factories import TYPE, claim, dead, enqueue, selected, statements

pytestmark = pytest.mark.django_db(transaction=True)

Heard = Callable[[], list[Notice]]


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing had been sent yet, and within one interval."""
    monkeypatch.setattr(waking, "_limiters", {})
    monkeypatch.setattr(waking, "NOTIFY_INTERVAL", 600.0)


@pytest.fixture
def heard(seldom: None) -> Iterator[Heard]:
    """What a listener was told since the last look."""
    listener = connection.copy()
    with listener.cursor() as cursor:
        cursor.execute(waking.CHANNEL)
        [[channel]] = cursor.fetchall()
        for slot in (None, *range(waking.SLOTS)):
            cursor.execute(f'LISTEN "{channel}{waking.channel_suffix(slot)}"')

    def look() -> list[Notice]:
        with listener.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, 'end')", [channel])
        told: list[Notice] = []
        for notice in listener.connection.notifies(timeout=30):
            if notice.payload == "end":
                return told
            word = waking.read_notice(notice.payload)
            assert word
            told.append(word)
        raise AssertionError("the end was not told")

    yield look
    listener.close()


def queues(told: list[Notice]) -> list[str]:
    return [one.queue for one in told]


@pytest.mark.postgresql
def test_workers_are_woken_at_commit_by_one_word_for_jobs_made_in_a_row(heard: Heard) -> None:
    with transaction.atomic():
        enqueue(queue="mail")
        Job.objects.enqueue_many([{"job_type": TYPE, "queue": name} for name in ("a", "b", "a")])
        for _ in range(20):
            enqueue(queue="mail")
        assert heard() == []
    told = heard()
    assert sorted((one.queue, one.jobs) for one in told) == [("a", 2), ("b", 1), ("mail", 21)]


@pytest.mark.postgresql
def test_nobody_is_woken_by_a_rollback_or_for_a_job_that_was_there(heard: Heard) -> None:
    with transaction.atomic():
        enqueue(queue="mail")
        transaction.set_rollback(True)
    assert heard() == []
    enqueue(dedupe_key="k", queue="first")
    enqueue(dedupe_key="k", queue="second")
    assert queues(heard()) == ["first"]


@pytest.mark.postgresql
def test_jobs_of_a_savepoint_that_was_undone_are_not_counted(heard: Heard) -> None:
    with transaction.atomic():
        enqueue(queue="mail")
        with transaction.atomic():
            enqueue(queue="mail")
            transaction.set_rollback(True)
        enqueue(queue="mail")
        with transaction.atomic():
            enqueue(queue="mail")
    assert sum(one.jobs for one in heard()) == 3


@pytest.mark.postgresql
def test_a_queue_is_named_seldom_and_the_next_word_tells_of_what_was_swallowed(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        enqueue(queue="a")
    enqueue(queue="b")
    told = heard()
    assert queues(told) == ["a"] * BURST + ["b"]
    assert [one.last for one in told] == [False] * (BURST - 1) + [True, False]
    monkeypatch.setattr(waking, "NOTIFY_INTERVAL", 1e-9)
    enqueue(queue="a")
    assert [one.jobs for one in heard()] == [20 - BURST + 1]


@pytest.mark.postgresql
def test_whatever_makes_a_job_due_wakes_its_queue(heard: Heard) -> None:
    again, sooner = dead(queue="again"), enqueue(queue="sooner")
    heard()
    selected(again).retry()
    assert queues(heard()) == ["again"]
    selected(sooner).reschedule(priority=5)
    assert queues(heard()) == ["sooner"]
    Queue.objects.resume("resumed")
    assert [(one.queue, one.jobs) for one in heard()] == [("resumed", EVERYBODY)]


@pytest.mark.postgresql
def test_a_job_that_was_taken_back_wakes_its_queue(heard: Heard) -> None:
    enqueue(queue="lost")
    claim(worker_id="dead")
    heard()
    assert Job.objects.reap(worker_id="dead") == 1
    assert queues(heard()) == ["lost"]


@pytest.mark.postgresql
@pytest.mark.usefixtures("seldom")
def test_a_job_is_stored_though_nobody_could_be_woken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waking, "_NOTIFY", "SELECT pg_notify('no_such_table'::regclass::text || %s, %s)")
    enqueue(queue="mail")
    assert Job.objects.count() == 1
    assert "Could not notify the workers of queue 'mail'" in caplog.text


@pytest.mark.sqlite
@pytest.mark.usefixtures("seldom")
def test_sqlite_has_nobody_to_tell() -> None:
    with statements() as made:
        enqueue()
    assert len(made) == 1
