"""What is different on SQLite, each with its reason."""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .base import ERRORS_KEPT, ERRORS_KEPT_FROM_START, JOB_TABLE, Columns, Row
from .clock import UTC, as_text, from_database, process_now_text
from .controlling import FACTS
from .database import Database
from .holding import STARTED
from .inserting import ON_CONFLICT, PLAIN, RECENT, TARGET, NewJob
from .observing import OpenTransaction
from .settling import COMPLETE
from .sqlite_claim import PlainClaiming

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from .clock import Instant


class SQLite(PlainClaiming, Database):
    """No row locks: one writer at a time, so a guarded UPDATE is all it takes. Batches travel as JSON."""

    # The database's clock is this process's clock; as a parameter it has microseconds.
    now = "%(now)s"

    def params(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"now": process_now_text(), **params}

    def prepare(self, connection: BaseDatabaseWrapper) -> None:
        pass  # the tables are all it takes

    def is_idle(self, connection: BaseDatabaseWrapper) -> bool:
        try:
            return connection.connection.total_changes >= 0 and not connection.connection.in_transaction
        except sqlite3.ProgrammingError:  # closed
            return False

    def to_id(self, value: Any) -> UUID:
        return UUID(int=int(value, 16))  # twice as fast as from text

    def from_id(self, value: UUID) -> Any:
        return value.hex

    def from_time(self, value: Any) -> Any:
        return None if value is None else as_text(value)

    def time_param(self, name: str, delay: str) -> str:
        return f"COALESCE(%({name})s, {self.shifted(self.now, f'%({delay})s')})"

    def shifted(self, time: str, seconds: str) -> str:
        # strftime knows milliseconds, and rounds: by nothing it must not move at all. The zeros keep one
        # width, since instants are compared as text.
        moved = f"strftime('%%Y-%%m-%%d %%H:%%M:%%f000', {time}, ({seconds}) || ' seconds')"
        return f"CASE ({seconds}) WHEN 0 THEN {time} ELSE {moved} END"

    def at_most(self, time: str, bound: str) -> str:
        return f"min({time}, {bound})"  # works ``time`` out once

    def seconds_until(self, time: str) -> str:
        return f"(julianday({time}) - julianday({self.now})) * 86400.0"

    @property
    def waited(self) -> str:
        return "(julianday(claimed_at) - julianday(run_after)) * 86400.0"

    def time_text(self, time: str) -> str:
        return f"replace({time}, ' ', 'T') || 'Z'"

    def with_keys(self, document: str, pairs: Mapping[str, str]) -> str:
        inner = ", ".join(f"'$.{key}', {value}" for key, value in pairs.items())
        return f"json_set({document}, {inner})"

    def with_first(self, document: str, key: str, value: str) -> str:
        return f"json_insert({document}, '$.{key}', json({value}))"

    def appended(self, errors: str, entry: str) -> str:
        kept = (
            f"CASE WHEN json_array_length({errors}) < {ERRORS_KEPT} THEN {errors} "
            f"ELSE json_remove({errors}, '$[{ERRORS_KEPT_FROM_START}]') END"
        )
        return f"json_insert({kept}, '$[#]', json({entry}))"

    def json_param(self, name: str) -> str:
        return f"%({name})s"

    def among(self, column: str, name: str, kind: str = "text") -> str:
        return f"{column} IN (SELECT value FROM json_each(%({name})s))"

    def values(self, values: Iterable[Any]) -> Any:
        return json.dumps(list(values))

    def source(self, columns: Columns) -> str:
        picked = ", ".join(f"json_extract(value, '$[{i}]') AS {name}" for i, name in enumerate(columns))
        return f"SELECT {picked} FROM json_each(%(given)s)"

    def batch(self, columns: Columns, rows: Sequence[Row]) -> dict[str, Any]:
        ids = [i for i, kind in enumerate(columns.values()) if kind == "id"]
        plain = [[value.hex if i in ids else value for i, value in enumerate(row)] for row in rows]
        return {"given": json.dumps(plain)}

    def update_given(
        self, columns: Columns, *, guard: str, assign: str, returning: str, wait: bool = True
    ) -> str:
        return f"""
            WITH given AS MATERIALIZED ({self.source(columns)})
            UPDATE {JOB_TABLE} AS job SET {assign}
            FROM given WHERE job.id = given.job_id AND {guard}
            {f"RETURNING {returning}" if returning else ""}"""

    def complete(
        self, connection: BaseDatabaseWrapper, worker_id: str, rows: Sequence[Row], wait: bool
    ) -> list[Row]:
        # As a claim: a row of RETURNING each would hold up the other writers. Mostly all are written.
        given = self.batch(COMPLETE, rows)
        params = self.params({"worker_id": worker_id, **given})
        with connection.cursor() as cursor:
            before = connection.connection.total_changes
            cursor.execute(self.complete_sql("", wait), params)
            if connection.connection.total_changes - before == len(rows):
                return [(self.from_id(row[0]), False) for row in rows]
            cursor.execute(
                f"""
                WITH given AS MATERIALIZED ({self.source(COMPLETE)})
                SELECT job.id, FALSE FROM given CROSS JOIN {JOB_TABLE} AS job
                WHERE job.id = given.job_id AND job.status = 3 AND job.worker_id = %(worker_id)s
                  AND job.fence = given.held_fence AND job.finished_at = %(now)s""",
                params,
            )
            written: list[Row] = cursor.fetchall()
            return written

    def update_where(
        self, where: str, *, assign: str, returning: str, limit: bool = False, skip_locked: bool = False
    ) -> str:
        if limit:
            where = f"""job.id IN (
                SELECT job.id FROM {JOB_TABLE} AS job WHERE {where} ORDER BY job.id LIMIT %(size)s)"""
        return f"UPDATE {JOB_TABLE} AS job SET {assign} WHERE {where} RETURNING {returning}"

    def select_free(self, where: str) -> str:
        return f"SELECT job.id FROM {JOB_TABLE} AS job WHERE {where} LIMIT %(size)s"

    def insert(self, connection: BaseDatabaseWrapper, job: NewJob) -> Row | None:
        # Without RETURNING: it takes half as long, and every value is known here.
        now = datetime.datetime.now(UTC)
        row = self._insert_params(job, now)
        with connection.cursor() as cursor:
            skips = job.dedupe.policy == "skip_for"
            if skips:
                row["since"] = as_text(now - datetime.timedelta(seconds=job.dedupe.seconds))
            cursor.execute(self._insert_sql(job.dedupe_key is not None, skips), row)
            return _times(row, from_database(as_text(now))) if cursor.rowcount else None

    def insert_many(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> dict[int, Row]:
        # executemany is the fastest way in and has no RETURNING, so keyed jobs are left to the look-up.
        keyed = any(job.dedupe_key is not None for job in jobs)
        now = datetime.datetime.now(UTC)
        rows = [self._insert_params(job, now) for job in jobs]
        with connection.cursor() as cursor:
            cursor.executemany(self._insert_sql(keyed), rows)
        made_at = from_database(as_text(now))
        return {
            job.id.int: _times(row, made_at)
            for job, row in zip(jobs, rows, strict=True)
            if job.dedupe_key is None
        }

    def _insert_sql(self, keyed: bool, skips: bool = False) -> str:
        # Times are worked out here, not by strftime, which would cut them to milliseconds.
        values = ", ".join(f"%({name})s" for name in (*PLAIN, "status", "run_at", "expires_at", "now", "now"))
        row = f"VALUES ({values})"
        if skips:
            row = f"""
                SELECT {values} WHERE NOT EXISTS (
                    SELECT 1 FROM {JOB_TABLE}
                    WHERE dedupe_key = %(dedupe_key)s AND {RECENT} AND created_at > %(since)s)"""
        return f"INSERT INTO {JOB_TABLE} ({TARGET}) {row} {ON_CONFLICT if keyed else ''}"

    def _insert_params(self, job: NewJob, now: Instant) -> dict[str, Any]:
        def time(at: Instant | None, delay: float | None) -> str | None:
            if at is None and delay is not None:
                at = now + datetime.timedelta(seconds=delay)
            return None if at is None else as_text(at)

        row = {name: getattr(job, name) for name in PLAIN}
        row["id"] = job.id.hex
        row["status"] = 1
        row["run_at"] = time(job.run_at, job.run_delay)
        row["expires_at"] = time(job.expires_at, job.expires_delay)
        row["now"] = as_text(now)
        return row

    def renew(
        self, connection: BaseDatabaseWrapper, worker_ids: Sequence[str], lease: float, started: Sequence[Row]
    ) -> list[Row]:
        age = "(SELECT -given.age FROM given WHERE given.job_id = job.id)"
        sql = f"""
            WITH given AS MATERIALIZED ({self.source(STARTED)})
            UPDATE {JOB_TABLE} AS job
            SET lease_until = {self.shifted(self.now, "%(lease)s")},
                run_started_at = COALESCE(job.run_started_at, {self.shifted(self.now, age)})
            WHERE job.status = 2 AND {self.among("job.worker_id", "workers")}
            RETURNING worker_id, id, fence, cancel_requested_at"""
        params = {"workers": self.values(worker_ids), "lease": lease, **self.batch(STARTED, started)}
        return self.run(connection, sql, params)

    def open_transactions(self, connection: BaseDatabaseWrapper, older_than: float) -> list[OpenTransaction]:
        return []  # a reader keeps the log from being cut, and no row

    def slow_journal(self, connection: BaseDatabaseWrapper) -> str:
        [[mode]] = self.run(connection, "PRAGMA journal_mode")
        return "" if mode in {"wal", "memory"} else str(mode)

    def start_of(self, span: str) -> str:
        begun = f"CAST(strftime('%%s', {self.now}) AS INTEGER) / {span} * {span}"
        return f"strftime('%%Y-%%m-%%d %%H:%%M:%%S.000000', {begun}, 'unixepoch')"

    def added(self, one: str, other: str) -> str:
        return f"""(
            SELECT json_group_array(n) FROM (
                SELECT a.value + b.value AS n FROM json_each({one}) AS a JOIN json_each({other}) AS b
                ON a.key = b.key ORDER BY a.key))"""

    def delete(self, connection: BaseDatabaseWrapper, ids: Sequence[UUID]) -> list[Row]:
        sql = f"""
            DELETE FROM {JOB_TABLE} WHERE {self.among("id", "ids", "id")} AND status IN (3, 4, 5)
            RETURNING {FACTS}"""
        return self.run(connection, sql, {"ids": self.ids(ids)})


def _times(row: Mapping[str, Any], made_at: Instant | None) -> Row:
    """(run_after, expires_at, created_at) of a row that was just inserted."""
    run_after = made_at if row["run_at"] == row["now"] else from_database(row["run_at"])
    return run_after, from_database(row["expires_at"]), made_at
