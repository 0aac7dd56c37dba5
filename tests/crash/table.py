"""What the table says, read with plain SQL; and every change of a job's status, written down by a trigger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

#: Written in the same transaction as the change, so it has no gap and nothing that did not happen.
POSTGRESQL_HISTORY = """
    CREATE TABLE crash_history (seq bigserial PRIMARY KEY, job uuid, was int, became int, fence int);
    CREATE FUNCTION crash_note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO crash_history (job, was, became, fence)
            VALUES (NEW.id, OLD.status, NEW.status, NEW.fence);
            RETURN NULL;
        END $$;
    CREATE TRIGGER crash_history AFTER UPDATE ON django_jobqueue_job FOR EACH ROW
    WHEN ((OLD.status, OLD.fence, OLD.finished_at) IS DISTINCT FROM (NEW.status, NEW.fence, NEW.finished_at))
    EXECUTE FUNCTION crash_note()"""
SQLITE_HISTORY = """
    CREATE TABLE crash_history (seq INTEGER PRIMARY KEY, job text, was int, became int, fence int);
    CREATE TRIGGER crash_history AFTER UPDATE ON django_jobqueue_job
    WHEN OLD.status IS NOT NEW.status OR OLD.fence IS NOT NEW.fence
        OR OLD.finished_at IS NOT NEW.finished_at
    BEGIN
        INSERT INTO crash_history (job, was, became, fence)
        VALUES (NEW.id, OLD.status, NEW.status, NEW.fence);
    END"""

STATUS = {1: "pending", 2: "running", 3: "done", 4: "dead", 5: "cancelled"}
COLUMNS = (
    "id, payload, status, attempts, max_attempts, fence, crashes, snoozes, releases, errors, result, "
    "finished_at IS NOT NULL, lease_until IS NOT NULL"
)


@dataclass(frozen=True)
class Row:
    """A job as it stands in the table."""

    id: str
    n: int
    status: str
    attempts: int
    max_attempts: int
    fence: int
    crashes: int
    snoozes: int
    releases: int
    errors: int
    result: Any
    finished: bool
    leased: bool


@dataclass(frozen=True)
class Change:
    """A job's status changed, or its claim."""

    job: str
    was: str
    became: str
    fence: int


@dataclass(frozen=True)
class Table:
    """What there is at the end."""

    rows: list[Row]
    changes: list[Change]  # in the order in which they were made, for each job
    effects: list[tuple[int, int]]  # (n, fence)


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A bare connection, each statement its own transaction."""
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20, isolation_level=None)) as it:
            yield it
    else:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as it:
            yield it


def note_history(url: str) -> None:
    """Make the trigger."""
    with connected(url) as connection:
        if isinstance(connection, sqlite3.Connection):
            connection.executescript(SQLITE_HISTORY)
        else:
            connection.execute(POSTGRESQL_HISTORY)


def unfinished(url: str) -> int:
    """How many jobs are pending or running."""
    with connected(url) as connection:
        count: int = connection.execute(
            "SELECT count(*) FROM django_jobqueue_job WHERE status IN (1, 2)"
        ).fetchone()[0]
        return count


def read(url: str) -> Table:
    """Everything."""
    with connected(url) as connection:
        rows = connection.execute(f"SELECT {COLUMNS} FROM django_jobqueue_job").fetchall()
        changes = connection.execute(
            "SELECT job, was, became, fence FROM crash_history ORDER BY job, seq"
        ).fetchall()
        effects = connection.execute("SELECT n, fence FROM app_effect WHERE n >= 0").fetchall()
    return Table([_row(row) for row in rows], list(_changes(changes)), [(n, fence) for n, fence in effects])


def _row(values: Iterable[Any]) -> Row:
    job_id, payload, status, *counts, errors, result, finished, leased = values
    return Row(
        str(UUID(str(job_id))),
        _json(payload)["n"],
        STATUS[status],
        *counts,
        len(_json(errors)),
        _json(result),
        bool(finished),
        bool(leased),
    )


def _changes(rows: Iterable[Any]) -> Iterator[Change]:
    for job, was, became, fence in rows:
        yield Change(str(UUID(str(job))), STATUS[was], STATUS[became], fence)


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
