"""What the tables say now, by queue and by worker; and what somebody should look at."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from django_jobqueue.managers import Tally, WorkerFacts
from django_jobqueue.models import Job, JobStatus, Queue, Statistic, Worker
from django_jobqueue.statistics import (
    CODES,
    PERIODS,
    Alert,
    Count,
    Overview,
    QueueFigures,
    WorkerFigures,
    alerts_of,
    look,
    look_back,
    present,
)
from tests.moves.factories import WORKER, ago, claimed, dead, enqueue, selected, statements

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def overview() -> Overview:
    return look(look_back(PERIODS["hour"], "default"), "default")


def queue(name: str) -> QueueFigures:
    [found] = [one for one in overview().queues if one.name == name]
    return found


def told() -> list[Alert]:
    return alerts_of(overview(), "default")


def codes() -> list[str]:
    return [one.code for one in told()]


def beat(name: str = WORKER, **given: Any) -> None:
    facts = {"host": "box", "pid": 7, "queues": None, "capacity": 8, "version": "1", **given}
    Worker.objects.beat([WorkerFacts(name, **facts)])


def test_a_queue_is_told_by_where_its_jobs_stand() -> None:
    for number in range(3):
        selected(enqueue(queue="mail", priority=number)).update(run_after=ago(100 + number))
    enqueue(queue="mail", run_after=timedelta(hours=1))
    enqueue(queue="mail", priority=50, run_after=timedelta(hours=2))
    claimed(queue="mail-2")
    for _ in range(2):
        dead(queue="mail-3")
    mail = queue("mail")
    assert (mail.pending, mail.due, mail.scheduled) == (Count(5), Count(3), Count(2))
    assert mail.oldest == pytest.approx(102, abs=5)
    assert (queue("mail-2").running, queue("mail-2").oldest) == (Count(1), None)
    assert (queue("mail-3").dead, queue("mail-3").dead_lately) == (Count(2), 2)
    total = overview().total
    assert (total.due, total.running, total.dead) == (Count(3), Count(1), Count(2))
    assert total.oldest == pytest.approx(102, abs=5)


def test_counts_stop_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present, "CAP", 3)
    Job.objects.enqueue_many(
        [{"job_type": "tests:any", "queue": "mail", "priority": n % 2} for n in range(9)]
    )
    for _ in range(4):
        dead(queue="bad")
    assert str(queue("mail").due) == "3+"
    assert (queue("mail").pending, queue("mail").scheduled) == (Count(3, True), Count(0, True))
    assert queue("bad").dead == Count(3, True)


def test_what_workers_counted_is_in_the_figures_of_its_queue() -> None:
    tally = Tally(done=120, failed=3)
    tally.took(2.0, 1.0)
    Statistic.objects.add([("mail", tally)])
    mail = queue("mail")
    assert (mail.done_per_minute, mail.failed) == (pytest.approx(120, rel=0.5), 3)
    assert (mail.waiting.mean, mail.taking.mean) == (2.0, 1.0)
    assert 1 <= (mail.taking.p95 or 0) <= 2


def test_declared_and_paused_queues_and_those_that_a_worker_names_are_there_without_jobs(
    settings: Settings,
) -> None:
    settings.JOBQUEUE |= {"QUEUES": ["mail", "paused"]}
    Queue.objects.pause("paused")
    beat(queues=["served"])
    assert [one.name for one in overview().queues] == ["mail", "paused", "served"]
    assert queue("paused").paused


def test_a_worker_is_told_with_what_it_runs_now() -> None:
    beat()
    jobs = [claimed(queue="one") for _ in range(4)]
    selected(jobs[2]).update(claimed_at=ago(50))
    [worker] = overview().workers
    assert (worker.held, worker.capacity, worker.is_living, len(worker.jobs)) == (4, 8, True, present.SHOWN)
    assert worker.jobs[0].id == jobs[2].id
    assert worker.jobs[0].seconds == pytest.approx(50, abs=5)


@pytest.mark.parametrize(
    ("given", "serves"),
    [
        ({}, True),
        ({"queues": ["mail"]}, True),
        ({"queues": ["other"]}, False),
        ({"exclude_queues": ["mail"]}, False),
    ],
    ids=str,
)
def test_who_serves_a_queue_follows_from_what_the_worker_was_told(given: Any, serves: bool) -> None:
    enqueue(queue="mail")
    beat(**given)
    assert queue("mail").workers == serves
    assert ("no-worker" in codes()) is not serves


def test_nobody_serves_who_was_asked_to_stop_or_stands_still_or_is_silent() -> None:
    enqueue(queue="mail")
    beat()
    assert queue("mail").workers == 1
    Worker.objects.ask_to_stop(WORKER)
    assert queue("mail").workers == 0
    Worker.objects.update(stop_requested_at=None)
    Worker.objects.beat_again({WORKER: -31.0})
    assert queue("mail").workers == 0
    assert codes() == ["no-worker", "worker-stands-still"]
    Worker.objects.beat_again({WORKER: 0.0})
    Worker.objects.update(last_beat=ago(61))
    assert codes() == ["no-worker", "worker-silent"]


def test_a_loop_that_is_late_at_the_last_beat_and_no_more_since_does_not_stand_still() -> None:
    """Between two beats everybody's loop looks late."""
    beat()
    Worker.objects.update(last_beat=ago(40), loop_due_at=ago(39))
    assert codes() == []


def test_a_paused_queue_is_neither_late_nor_without_a_worker() -> None:
    selected(enqueue(queue="mail")).update(run_after=ago(10_000))
    assert codes() == ["no-worker", "late"]
    Queue.objects.pause("mail")
    assert codes() == []


def test_a_job_is_late_when_the_setting_says_so(settings: Settings) -> None:
    beat()
    selected(enqueue(queue="mail")).update(run_after=ago(120))
    assert codes() == []
    settings.JOBQUEUE |= {"LATE_AFTER": timedelta(seconds=60)}
    [alert] = told()
    assert (alert.code, alert.subject) == ("late", "mail")
    assert "waiting for 2 min" in alert.text
    assert "longer than 1 min" in alert.text


def test_dead_letters_that_grow_are_told_and_old_ones_are_not() -> None:
    jobs = [dead(queue="mail") for _ in range(10)]
    assert codes() == ["dead-letters-grow"]
    selected(*jobs).update(finished_at=ago(3_700))
    assert codes() == []
    for _ in range(9):
        dead(queue="mail")
    assert codes() == []


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_is_left_open_is_told_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_jobqueue.statistics.alerts.LONG_OPEN", 0.0)
    with psycopg.connect(**_parameters(), application_name="a dump") as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1 FROM django_jobqueue_job")
        [alert] = [one for one in told() if "a dump" in one.text]
        assert (alert.code, alert.subject) == ("open-transaction", str(other.info.backend_pid))
        other.rollback()
    assert not [one for one in told() if "a dump" in one.text]


def _parameters() -> dict[str, Any]:
    keys = ("dbname", "host", "port", "user", "password")
    given = connection.get_connection_params()
    return {key: given[key] for key in keys if key in given}


@pytest.mark.sqlite
@pytest.mark.parametrize(("mode", "told_of"), [("delete", ["journal-mode"]), ("wal", []), ("memory", [])])
def test_a_journal_mode_that_makes_people_wait_is_told(mode: str, told_of: list[str]) -> None:
    from django_jobqueue.databases import database_for

    class Answers(type(database_for("default"))):  # type: ignore[misc]
        def run(self, *args: Any) -> list[Any]:
            return [(mode,)]

    assert Answers().slow_journal(connection) == ("delete" if told_of else "")


def test_the_gravest_alert_comes_first() -> None:
    selected(enqueue(queue="mail")).update(run_after=ago(10_000))
    beat("gone")
    Worker.objects.update(last_beat=ago(500))
    found = codes()
    assert found == ["no-worker", "worker-silent", "late"]
    assert found == sorted(found, key=CODES.index)


def test_all_is_read_in_seven_statements_however_many_queues_there_are() -> None:
    for number in range(30):
        enqueue(queue=f"q{number}", priority=number)
    with statements() as made:
        told()
    assert len(made) <= 8


def test_no_more_queues_are_shown_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present, "QUEUES", 2)
    for number in range(5):
        enqueue(queue=f"q{number}")
    found = overview()
    assert (len(found.queues), found.more_queues) == (2, 3)
    assert isinstance(found.queues[0], QueueFigures)


def test_a_worker_that_serves_knows_what_it_leaves_out() -> None:
    worker = WorkerFigures("w", "h", 1, None, ["slow"], 8, "1", 1.0, 1.0, None, False, 60.0)
    assert worker.serves("mail")
    assert not worker.serves("slow")
