"""What the benchmark takes for granted about the queue: its table, its claim, its own rows."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from django_jobqueue.databases import database_for
from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.models import Job, JobStatus, Queue
from tests.benchmarks import raw_sqlite, site
from tests.benchmarks.app.apps import counted
from tests.benchmarks.filling import KINDS, fill_with


@pytest.mark.django_db
def test_filled_rows_are_done_scheduled_and_due() -> None:
    for number, holds in enumerate(KINDS.values()):
        fill_with(holds, 20, number)

    assert Counter(Job.objects.values_list("status", flat=True)) == {
        JobStatus.DONE: 20,
        JobStatus.PENDING: 40,
    }
    claimed = Job.objects.claim(worker_id="w", limit=100)
    assert len(claimed) == 20
    assert {job.priority for job in claimed} == {0}
    assert Job.objects.filter(status=JobStatus.PENDING, priority__gt=0).count() == 10


@pytest.mark.django_db
def test_a_filled_site_has_each_kind_by_its_share_and_dead_letters_of_forty_kinds() -> None:
    site.fill_site(4_000)

    assert Counter(Job.objects.values_list("status", flat=True)) == {
        JobStatus.DONE: 3_600,
        JobStatus.PENDING: 360,
        JobStatus.DEAD: 40,
    }
    kinds = Job.objects.filter(status=JobStatus.DEAD).values_list("job_type", "error_fingerprint").distinct()
    assert kinds.count() == 40
    assert len(Job.objects.claim(worker_id="w", limit=1_000)) == 120


@pytest.mark.django_db
@pytest.mark.parametrize("page", site.PAGES)
def test_each_page_that_is_timed_answers(page: str) -> None:
    site.fill_site(1_000)

    assert len(site.page_cost(1, page)) == 1


@pytest.mark.django_db
def test_claims_are_counted_with_what_was_left(tmp_path: Path) -> None:
    fill_with(KINDS["pending"], 3, 0)
    database, path = database_for("default"), tmp_path / "claims"
    claim = counted(type(database).claim, str(path))

    def take(limit: int, **options: object) -> int:
        request = ClaimRequest(worker_id="w", limit=limit, lease=60, **options)  # type: ignore[arg-type]
        return len(claim(database, connection, request, ["id"]))

    assert take(1) == 1
    assert take(1, queues=["elsewhere"]) == 0
    assert take(5, exclude_types=["bench:nothing"]) == 0
    Queue.objects.pause("default")
    assert take(5) == 0
    Queue.objects.resume("default")
    assert take(5) == 2
    assert path.read_text().splitlines() == ["1 1 0", "1 0 1", "5 0 0", "5 0 0", "5 2 0"]


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
def test_the_bare_loops_of_sqlite_run_on_the_queues_table(transactional_db: None, tmp_path: Path) -> None:
    path = tmp_path / "raw.sqlite3"
    with closing(sqlite3.connect(path)) as copy, connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE sql LIKE '%django_jobqueue_job%'")
        for (sql,) in cursor.fetchall():
            copy.execute(sql)
        copy.commit()

    assert raw_sqlite.insert_single(path, 3) > 0
    for batch in (1, 4):
        raw_sqlite.fill(path, 10)
        assert raw_sqlite.drain(path, batch) > 0
        with closing(sqlite3.connect(path)) as file:
            states = file.execute("SELECT status, attempts, count(*) FROM django_jobqueue_job GROUP BY 1, 2")
            assert states.fetchall() == [(3, 1, 10)]
