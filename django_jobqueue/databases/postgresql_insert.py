"""New jobs on PostgreSQL: one by VALUES, many by arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .base import JOB_TABLE, Row
from .clock import from_database
from .inserting import COLUMNS, ON_CONFLICT, PLAIN, RECENT, TARGET, Inserting, NewJob
from .postgresql_arrays import ARRAYS

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

#: By which an enqueue that skips for a time makes sure that nobody has just made a job of its key. Whoever
#: comes second waits for the first one's transaction; the look that follows has to see its job even if that
#: was committed, run and done meanwhile, for which a VOLATILE function has a snapshot of its own.
IS_RECENT = f"""
    CREATE OR REPLACE FUNCTION django_jobqueue_is_recent(key text, since timestamptz) RETURNS boolean
    LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(27250, hashtext(key));
        RETURN EXISTS (
            SELECT 1 FROM {JOB_TABLE}
            WHERE dedupe_key = key AND {RECENT} AND created_at > since);
    END $$"""


class ArrayInserting(Inserting):
    """No more is sent, and no more asked back, than is needed."""

    def insert(self, connection: BaseDatabaseWrapper, job: NewJob) -> Row | None:
        # No more than is needed: each value costs on both sides, and a time that comes back 10 µs.
        given = {name: value for name, value in zip(PLAIN, job, strict=False) if value is not None}
        stored = {name: f"%({name})s" for name in given}
        stored |= {"status": "1", "created_at": self.now, "updated_at": self.now, "run_after": self.now}
        answered = ["created_at"]
        if job.run_at is not None or job.run_delay > 0:
            stored["run_after"] = self.time_param("run_at", "run_delay")
            answered.append("run_after")
        if job.expires_at is not None or job.expires_delay is not None:
            stored["expires_at"] = self.time_param("expires_at", "expires_delay")
            answered.append("expires_at")
        values = ", ".join(stored.values())
        sql = f"""
            INSERT INTO {JOB_TABLE} ({", ".join(stored)})
            {f"VALUES ({values})" if job.dedupe.is_plain else self._unless_recent(values, job)}
            {ON_CONFLICT if job.dedupe_key is not None else ""} RETURNING {", ".join(answered)}"""
        rows = self.run(connection, sql, job._asdict())
        if not rows:
            return None
        times = dict(zip(answered, map(from_database, rows[0]), strict=True))
        return times.get("run_after", times["created_at"]), times.get("expires_at"), times["created_at"]

    def _unless_recent(self, row: str, job: NewJob) -> str:
        since = self.shifted(self.now, f"-{job.dedupe.seconds!r}")
        skips = job.dedupe.policy == "skip_for" and job.dedupe_key is not None
        return (
            f"SELECT {row} {f'WHERE NOT django_jobqueue_is_recent(%(dedupe_key)s, {since})' if skips else ''}"
        )

    def insert_many(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> dict[int, Row]:
        conflict = ON_CONFLICT if any(job.dedupe_key is not None for job in jobs) else ""
        given, params = self._given(jobs)
        # All have one created_at, and most the same run_after: sent once, read once.
        sql = f"""
            WITH made AS (
                INSERT INTO {JOB_TABLE} ({TARGET})
                SELECT {", ".join(PLAIN)}, 1,
                       COALESCE(run_at, {self.shifted(self.now, "run_delay")}),
                       COALESCE(expires_at, {self.shifted(self.now, "expires_delay")}),
                       {self.now}, {self.now}
                FROM ({given}) AS given
                {conflict}
                RETURNING id, run_after, expires_at, created_at
            )
            SELECT id, NULLIF(run_after, created_at), expires_at,
                   CASE row_number() OVER () WHEN 1 THEN created_at END
            FROM made"""
        made = self.run(connection, sql, params)
        now = from_database(made[0][3]) if made else None
        return {
            row[0].int: (now if row[1] is None else from_database(row[1]), from_database(row[2]), now)
            for row in made
        }

    def _given(self, jobs: Sequence[NewJob]) -> tuple[str, dict[str, Any]]:
        """SQL and parameters of the jobs as rows; what is the same in all of them is sent once."""
        values = dict(zip(COLUMNS, zip(*jobs, strict=True), strict=False))
        varying = [
            name for name, column in values.items() if name == "id" or column.count(column[0]) < len(jobs)
        ]
        arrays = {name: COLUMNS[name] for name in varying}
        params = self.batch(arrays, list(zip(*map(values.__getitem__, varying), strict=True)))
        common = "".join(
            f", %({name})s::{ARRAYS[kind].removesuffix('[]')} AS {name}"
            for name, kind in COLUMNS.items()
            if name not in arrays
        )
        params |= {name: column[0] for name, column in values.items() if name not in arrays}
        return f"SELECT given.*{common} FROM ({self.source(arrays)}) AS given", params
