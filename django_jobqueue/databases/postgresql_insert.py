"""New jobs on PostgreSQL: one by VALUES, many by arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dedupe import RETURN, Dedupe
from .base import JOB_TABLE, Row
from .clock import from_database
from .inserting import COLUMNS, ON_CONFLICT, PLAIN, RECENT, TARGET, Inserting, NewJob
from .postgresql_arrays import ARRAYS

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

#: Columns of few values, which are written into the statement.
NUMBERS = frozenset({"priority", "max_attempts"})

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
        sql, answered = _insert(self, _shape(job))
        rows = self.run(connection, sql, job._asdict())
        if not rows:
            return None
        times = dict(zip(answered, map(from_database, rows[0]), strict=True))
        return times.get("run_after", times["created_at"]), times.get("expires_at"), times["created_at"]

    def insert_many(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> dict[int, Row]:
        conflict = ON_CONFLICT if any(job.dedupe_key is not None for job in jobs) else ""
        given, params = self._given(jobs)
        insert = f"""
            INSERT INTO {JOB_TABLE} ({TARGET})
            SELECT {", ".join(PLAIN)}, 1,
                   COALESCE(run_at, {self.shifted(self.now, "run_delay")}),
                   COALESCE(expires_at, {self.shifted(self.now, "expires_delay")}),
                   {self.now}, {self.now}
            FROM ({given}) AS given {conflict}"""
        if not conflict and all(map(_is_for_now, jobs)):  # all are made, with the same times
            [[now]] = self.run(
                connection,
                f"WITH made AS ({insert} RETURNING created_at) SELECT created_at FROM made LIMIT 1",
                params,
            )
            return dict.fromkeys([job.id.int for job in jobs], (from_database(now), None, from_database(now)))
        # All have one created_at, and most the same run_after: sent once, read once.
        sql = f"""
            WITH made AS ({insert} RETURNING id, run_after, expires_at, created_at)
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


class _Shape(NamedTuple):
    """All of a new job that its statement depends on."""

    given: frozenset[str]  # columns that are sent, with a parameter each
    numbers: tuple[tuple[str, int], ...]  # columns whose number is written out
    is_delayed: bool
    expires: bool
    dedupe: Dedupe


def _is_for_now(job: NewJob) -> bool:
    return (job.run_at, job.expires_at, job.expires_delay) == (None, None, None) and not job.run_delay


def _shape(job: NewJob) -> _Shape:
    # No more than is needed: each value costs on both sides, and a time that comes back 10 µs.
    given = {name for name, value in zip(PLAIN, job, strict=False) if value is not None} - NUMBERS
    if job.context == "{}":
        given.remove("context")
    return _Shape(
        frozenset(given),
        (("priority", job.priority), ("max_attempts", job.max_attempts)),
        job.run_at is not None or job.run_delay > 0,
        job.expires_at is not None or job.expires_delay is not None,
        job.dedupe if job.dedupe_key is not None else RETURN,
    )


@functools.lru_cache(maxsize=256)
def _insert(dialect: ArrayInserting, shape: _Shape) -> tuple[str, tuple[str, ...]]:
    """The statement, and what it answers with."""
    stored = {name: f"%({name})s" for name in PLAIN if name in shape.given}
    stored |= {name: str(number) for name, number in shape.numbers}
    stored |= {"status": "1", "created_at": dialect.now, "updated_at": dialect.now, "run_after": dialect.now}
    stored.setdefault("context", "'{}'")
    answered = ["created_at"]
    if shape.is_delayed:
        stored["run_after"] = dialect.time_param("run_at", "run_delay")
        answered.append("run_after")
    if shape.expires:
        stored["expires_at"] = dialect.time_param("expires_at", "expires_delay")
        answered.append("expires_at")
    values = ", ".join(stored.values())
    sql = f"""
        INSERT INTO {JOB_TABLE} ({", ".join(stored)})
        {f"VALUES ({values})" if shape.dedupe.is_plain else _unless_recent(dialect, values, shape.dedupe)}
        {ON_CONFLICT if "dedupe_key" in shape.given else ""} RETURNING {", ".join(answered)}"""
    return sql, tuple(answered)


def _unless_recent(dialect: ArrayInserting, row: str, dedupe: Dedupe) -> str:
    since = dialect.shifted(dialect.now, f"-{dedupe.seconds!r}")
    skips = dedupe.policy == "skip_for"
    return f"SELECT {row} {f'WHERE NOT django_jobqueue_is_recent(%(dedupe_key)s, {since})' if skips else ''}"
