"""What PostgreSQL itself can do: bare psycopg loops over a plain table with the queue's columns.

No check constraint, and of the indexes one for claims, one for leases and one unique: what a loop written
by hand would have.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import psycopg

from django_jobqueue.managers.ids import new_job_id

Connection = psycopg.Connection[tuple[object, ...]]

TABLE = """
    DROP TABLE IF EXISTS raw_job;
    CREATE TABLE raw_job (
        id uuid PRIMARY KEY, job_type varchar(200) NOT NULL, queue varchar(100) NOT NULL DEFAULT 'default',
        status smallint NOT NULL DEFAULT 1, priority smallint NOT NULL DEFAULT 0, payload jsonb NOT NULL,
        result jsonb, context jsonb NOT NULL DEFAULT '{}', dedupe_key varchar(200), lock_key varchar(200),
        attempts smallint NOT NULL DEFAULT 0, max_attempts smallint NOT NULL DEFAULT 3,
        fence int NOT NULL DEFAULT 0, crashes smallint NOT NULL DEFAULT 0,
        run_after timestamptz NOT NULL DEFAULT now(), expires_at timestamptz, lease_until timestamptz,
        worker_id varchar(64), claimed_at timestamptz, run_started_at timestamptz, finished_at timestamptz,
        cancel_requested_at timestamptz, progress float8, progress_note text NOT NULL DEFAULT '',
        last_error text NOT NULL DEFAULT '', error_fingerprint text NOT NULL DEFAULT '',
        errors jsonb NOT NULL DEFAULT '[]', created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now());
    CREATE INDEX raw_claim ON raw_job (priority DESC, run_after, id) WHERE status = 1;
    CREATE INDEX raw_lease ON raw_job (lease_until) WHERE status = 2;
    CREATE UNIQUE INDEX raw_dedupe ON raw_job (dedupe_key) WHERE status IN (1, 2) AND dedupe_key IS NOT NULL;
"""
CLAIM = """
    WITH c AS MATERIALIZED (
        SELECT id FROM raw_job WHERE status = 1 AND run_after <= now()
        ORDER BY priority DESC, run_after, id LIMIT %s FOR UPDATE SKIP LOCKED)
    UPDATE raw_job j SET status = 2, attempts = attempts + 1, worker_id = 'raw', claimed_at = now(),
        lease_until = now() + interval '60 s', updated_at = now()
    FROM c WHERE j.id = c.id RETURNING j.id, j.payload"""
COMPLETE = """
    UPDATE raw_job SET status = 3, finished_at = now(), lease_until = NULL, updated_at = now()
    WHERE id = ANY(%s) AND worker_id = 'raw'"""
INSERT = "INSERT INTO raw_job (id, job_type, payload) VALUES (%s, 'noop', %s)"
UNNEST = """
    INSERT INTO raw_job (id, job_type, payload)
    SELECT i, 'noop', p::jsonb FROM unnest(%s::uuid[], %s::text[]) AS u(i, p)"""
CHUNK = 1_000
#: Rows in one completion of the overlapped form, at most.
COMPLETED_AT_ONCE = 500
#: "Handlers" between the two connections of the overlapped form; as many as a worker has threads.
THREADS = 8


def connect(dsn: str) -> Connection:
    """As a loop written by hand would use it: autocommit, prepared statements."""
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=0)


def make_table(connection: Connection) -> None:
    """An empty one, with nothing of the last loop left to write."""
    connection.execute(TABLE, prepare=False)  # several statements
    connection.execute("CHECKPOINT")


def rows(jobs: int) -> Iterator[list[tuple[uuid.UUID, str]]]:
    """Ids and payloads in chunks."""
    for start in range(0, jobs, CHUNK):
        yield [(new_job_id(), f'{{"n": {n}}}') for n in range(start, min(start + CHUNK, jobs))]


def insert_single(dsn: str, jobs: int) -> float:
    """One committed row a statement; rows a second."""
    with connect(dsn) as connection:
        make_table(connection)
        connection.execute(INSERT, [new_job_id(), "{}"])
        begun = time.perf_counter()
        for n in range(jobs):
            connection.execute(INSERT, [new_job_id(), f'{{"n": {n}}}'])
        return jobs / (time.perf_counter() - begun)


def insert_unnest(dsn: str, jobs: int) -> float:
    """A thousand rows a statement, given as arrays; rows a second."""

    def insert(connection: Connection, chunk: list[tuple[uuid.UUID, str]]) -> None:
        connection.execute(UNNEST, [[one[0] for one in chunk], [one[1] for one in chunk]])

    return insert_chunks(dsn, jobs, insert)


def insert_values(dsn: str, jobs: int) -> float:
    """A thousand rows a statement, written out; rows a second."""

    def insert(connection: Connection, chunk: list[tuple[uuid.UUID, str]]) -> None:
        values = ", ".join(["(%s, 'noop', %s)"] * len(chunk))
        sql = f"INSERT INTO raw_job (id, job_type, payload) VALUES {values}"
        connection.execute(sql, [value for one in chunk for value in one])  # type: ignore[arg-type]

    return insert_chunks(dsn, jobs, insert)


def insert_chunks(
    dsn: str, jobs: int, insert: Callable[[Connection, list[tuple[uuid.UUID, str]]], None]
) -> float:
    """Rows a second."""
    with connect(dsn) as connection:
        make_table(connection)
        begun = time.perf_counter()
        for chunk in rows(jobs):
            insert(connection, chunk)
        return jobs / (time.perf_counter() - begun)


def fill(dsn: str, jobs: int) -> None:
    """A fresh table with so many jobs, and statistics."""
    insert_unnest(dsn, jobs)
    with connect(dsn) as connection:
        connection.execute("VACUUM ANALYZE raw_job")
        connection.execute("CHECKPOINT")


def drain(dsn: str, batch: int) -> float:
    """Claim and complete in turn, so many a statement; jobs a second."""
    with connect(dsn) as connection:
        done, begun = 0, time.perf_counter()
        while claimed := connection.execute(CLAIM, [batch]).fetchall():
            connection.execute(COMPLETE, [[row[0] for row in claimed]])
            done += len(claimed)
        return done / (time.perf_counter() - begun)


class Overlapped:
    """Claims on one connection, completions on another, "handlers" in threads between."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._claimed: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._done = 0

    def drain(self, batch: int) -> float:
        """Jobs a second."""
        threads = [threading.Thread(target=target) for target in [self._complete, *[self._handle] * THREADS]]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        try:
            self._claim(batch)
        finally:
            for _ in range(THREADS):
                self._claimed.put(None)
            for thread in threads:
                thread.join()
        return self._done / (time.perf_counter() - begun)

    def _claim(self, batch: int) -> None:
        with connect(self._dsn) as connection:
            while claimed := connection.execute(CLAIM, [batch]).fetchall():
                for row in claimed:
                    self._claimed.put(row[0])

    def _handle(self) -> None:
        while (job := self._claimed.get()) is not None:
            self._ended.put(job)
        self._ended.put(None)

    def _complete(self) -> None:
        running = THREADS
        with connect(self._dsn) as connection:
            while running:
                ended = [self._ended.get()]
                while len(ended) < COMPLETED_AT_ONCE and not self._ended.empty():
                    ended.append(self._ended.get())
                running -= ended.count(None)
                if ids := [one for one in ended if one is not None]:
                    connection.execute(COMPLETE, [ids])
                    self._done += len(ids)
