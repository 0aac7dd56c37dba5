"""What dashboards ask goes by an index too, and stops at its bound, among many jobs."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from django_jobqueue.databases import database_for
from django_jobqueue.managers import Tally, WorkerFacts
from django_jobqueue.models import Job, Queue, Statistic, Worker
from django_jobqueue.statistics import PERIODS, alerts_of, look, look_back, present
from tests.databases.test_plans import big_table, plan, used_by
from tests.moves.factories import statements

pytestmark = pytest.mark.django_db

__all__ = ["big_table"]


def database() -> Any:
    return database_for("default")


def test_lanes_are_counted_by_the_claim_index() -> None:
    assert used_by(lambda: database().pending_lanes(connection, 10_001, 1_000)) == {"claim"}


def test_running_jobs_are_found_by_their_index() -> None:
    assert used_by(lambda: database().running_jobs(connection, 10_001, 3)) == {"worker"}


def test_dead_letters_are_counted_by_an_index_of_theirs() -> None:
    """Newest first of those that ended; where they are few, PostgreSQL may take all of them and sort."""
    used = used_by(lambda: database().dead_letters(connection, 10_001, 3_600.0))
    assert used in ({"finished"}, {"dead"})


def test_no_statement_of_the_dashboard_reads_the_whole_table(admin_client: Client) -> None:
    Worker.objects.beat([WorkerFacts("w", "box", 1, None, 8, "1")])
    with statements() as made:
        assert admin_client.get("/admin/django_jobqueue/dashboard/").status_code == 200
    of_jobs = [sql for sql in made if "django_jobqueue_job" in sql]
    assert len(of_jobs) == 3
    for sql in of_jobs:
        assert plan(sql) <= {"claim", "worker", "finished", "dead"}, sql


def test_no_alert_and_no_command_reads_the_whole_table() -> None:
    with statements() as made:
        alerts_of(look(look_back(PERIODS["week"], "default"), "default"), "default")
    assert not [sql for sql in made if "django_jobqueue_job" in sql and "everything" in plan(sql)]


def test_a_period_is_read_by_the_key_of_the_figures() -> None:
    tally = Tally(done=1)
    for number in range(20):
        Statistic.objects.add([(f"q{number}", tally)])
    with statements() as made:
        look_back(PERIODS["hour"], "default")
    [sql] = made
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            details = [row[-1] for row in cursor.fetchall()]
        assert any("(span=? AND start>?)" in one for one in details), details
    else:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
            [[answer]] = cursor.fetchall()
        assert '"Index Name": "django_jobqueue_statistic_pkey"' in (
            answer if isinstance(answer, str) else json.dumps(answer)
        )


def test_counting_stops_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present, "CAP", 10)
    figures = look(look_back(PERIODS["hour"], "default"), "default")
    pending = [str(queue.pending) for queue in figures.queues if queue.name.startswith("q")]
    assert pending == ["10+"] * 4
    assert figures.total.dead.is_capped


def test_retention_of_queues_is_walked_along_the_finish_times() -> None:
    from datetime import timedelta

    from django_jobqueue.managers import prune

    Queue.objects.keep_for("q1", timedelta(hours=1))
    marks: prune.PruneMarks = {}
    with statements() as made:
        Job.objects.prune(marks=marks)
    looks = [sql for sql in made if "finished_at" in sql and sql.startswith("SELECT")]
    assert looks
    assert {frozenset(plan(sql)) for sql in looks} == {frozenset({"finished"})}
