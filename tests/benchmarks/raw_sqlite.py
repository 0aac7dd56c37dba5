"""What SQLite itself can do: bare loops over the queue's own table, with its indexes and checks."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django_jobqueue.managers.ids import new_job_id

Row = tuple[str, str, str, str, str]

COLUMNS = "id, job_type, queue, payload, context, max_attempts, run_after, created_at, updated_at"
INSERT = f"""
    INSERT INTO django_jobqueue_job ({COLUMNS})
    VALUES (?, 'bench:nothing', 'default', ?, '{{}}', 3, ?, ?, ?)"""
CLAIM = """
    UPDATE django_jobqueue_job SET status = 2, attempts = attempts + 1, fence = fence + 1, worker_id = 'raw',
        claimed_at = :now, lease_until = :lease, updated_at = :now
    WHERE status = 1 AND id IN (
        SELECT id FROM django_jobqueue_job WHERE status = 1 AND queue = 'default' AND priority = 0
        AND run_after <= :now ORDER BY run_after, id LIMIT :size)
    RETURNING id, payload"""
COMPLETE = """
    UPDATE django_jobqueue_job SET status = 3, finished_at = ?, lease_until = NULL, updated_at = ?
    WHERE id = ? AND worker_id = 'raw' AND status = 2"""
CHUNK = 1_000


def connect(path: Path) -> sqlite3.Connection:
    """WAL, synchronous NORMAL, as the queue's documentation says; transactions begin when asked to."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=20)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def instant(seconds: float = 0) -> str:
    """As the queue writes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S.%f")


def row(n: int) -> Row:
    """The values of INSERT."""
    now = instant()
    return (new_job_id().hex, f'{{"n": {n}}}', now, now, now)


def empty(connection: sqlite3.Connection) -> None:
    """No job, and nothing of the last loop left to write."""
    connection.execute("DELETE FROM django_jobqueue_job")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def insert_single(path: Path, jobs: int) -> float:
    """One committed row a statement; rows a second."""
    with closing(connect(path)) as connection:
        empty(connection)
        begun = time.perf_counter()
        for n in range(jobs):
            connection.execute(INSERT, row(n))
        return jobs / (time.perf_counter() - begun)


def insert_many(path: Path, jobs: int) -> float:
    """A thousand rows a transaction; rows a second."""
    with closing(connect(path)) as connection:
        empty(connection)
        begun = time.perf_counter()
        for start in range(0, jobs, CHUNK):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT, [row(n) for n in range(start, min(start + CHUNK, jobs))])
            connection.execute("COMMIT")
        return jobs / (time.perf_counter() - begun)


def fill(path: Path, jobs: int) -> None:
    """So many jobs and no other."""
    insert_many(path, jobs)
    with closing(connect(path)) as connection:
        connection.execute("ANALYZE")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def drain(path: Path, batch: int) -> float:
    """Claim and complete in turn, so many a statement or transaction; jobs a second."""
    complete: Callable[..., None] = complete_one if batch == 1 else complete_batch
    with closing(connect(path)) as connection:
        done, begun = 0, time.perf_counter()
        while claimed := claim(connection, batch):
            complete(connection, [one[0] for one in claimed])
            done += len(claimed)
        return done / (time.perf_counter() - begun)


def claim(connection: sqlite3.Connection, batch: int) -> list[tuple[str, str]]:
    """Ids and payloads."""
    values = {"now": instant(), "lease": instant(60), "size": batch}
    return connection.execute(CLAIM, values).fetchall()


def complete_one(connection: sqlite3.Connection, ids: list[str]) -> None:
    """A statement is a transaction."""
    now = instant()
    connection.execute(COMPLETE, (now, now, ids[0]))


def complete_batch(connection: sqlite3.Connection, ids: list[str]) -> None:
    """One transaction for all."""
    now = instant()
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(COMPLETE, [(now, now, one) for one in ids])
    connection.execute("COMMIT")
