"""What is different on PostgreSQL, each with its reason."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .base import ERRORS_KEPT, ERRORS_KEPT_FROM_START, JOB_TABLE, Columns, Row
from .controlling import FACTS
from .database import Database
from .holding import STARTED
from .observing import OpenTransaction
from .postgresql_arrays import ARRAYS, array_text
from .postgresql_claim import LaneClaiming, by_key
from .postgresql_insert import IS_RECENT, ArrayInserting

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

#: Options of libpq: a server that vanished (no FIN, no RST) is noticed within half a minute. While nothing is
#: under way by keepalive (10 s idle, then 4 probes of 4 s), else by what it does not acknowledge.
TIMEOUTS = {
    "connect_timeout": 10,  # seconds, for each host
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 4,
    "keepalives_count": 4,
    "tcp_user_timeout": 25_000,  # milliseconds
}

_LOCKED = by_key("SELECT locked_id FROM locked")

#: By which a claim makes sure that a lock key is free. The advisory lock keeps two claims from taking one
#: key at the same instant. The look that follows must see what a rival has committed just before it let go
#: of that lock, which the claim's own snapshot need not show (then the unique index refuses the claim, and
#: the server logs an error): a VOLATILE function has a new snapshot for each of its statements.
LOCK_IS_FREE = f"""
    CREATE OR REPLACE FUNCTION django_jobqueue_lock_is_free(key text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
        IF NOT pg_try_advisory_xact_lock(27249, hashtext(key)) THEN
            RETURN FALSE;
        END IF;
        RETURN NOT EXISTS (SELECT 1 FROM {JOB_TABLE} WHERE lock_key = key AND status = 2);
    END $$"""

#: Times that a statement comes before the server is asked to keep its plan.
PREPARED_AFTER = 2
#: How plans are made that are kept: from no table's present size and no parameter, since both will be others.
#: Every statement here has an index to go by, in its order, and takes milliseconds; compiling takes seconds.
KEPT_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}


class PostgreSQL(LaneClaiming, ArrayInserting, Database):
    """Row locks, arrays as batches, advisory locks, NOTIFY."""

    # Not now(): in a long transaction that is the past. Not clock_timestamp(): it is volatile, so no index.
    now = "statement_timestamp()"
    notifies = True

    def prepare(self, connection: BaseDatabaseWrapper) -> None:
        self.run(connection, LOCK_IS_FREE)
        self.run(connection, IS_RECENT)

    def is_idle(self, connection: BaseDatabaseWrapper) -> bool:
        # 0 is IDLE; the others are a statement or transaction under way, or a connection that is closed.
        return bool(connection.connection.info.transaction_status == 0)

    def keep_plans(self, connection: BaseDatabaseWrapper) -> None:
        # Planning is two thirds of what a claim of one job takes. Django turns prepared statements off,
        # since behind a pooler in transaction mode a name may mean somebody else's statement. A pooler
        # makes up the process id that it tells at the start: so whether this is the server can be asked.
        from django.db.backends.postgresql.base import ServerBindingCursor

        raw = connection.connection
        [[process_id]] = self.run(connection, "SELECT pg_backend_pid()")
        if process_id != raw.info.backend_pid:
            return
        settings = ", ".join(f"set_config('{name}', '{value}', FALSE)" for name, value in KEPT_PLANS.items())
        self.run(connection, f"SELECT {settings}")
        if raw.prepare_threshold is None:
            raw.prepare_threshold = PREPARED_AFTER
        raw.cursor_factory = ServerBindingCursor

    def timeouts(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if "service" in options:  # its file may say
            return {}
        said = options.keys() | ({"connect_timeout"} if "PGCONNECT_TIMEOUT" in os.environ else set())
        return {name: value for name, value in TIMEOUTS.items() if name not in said}

    def to_id(self, value: Any) -> UUID:
        job_id: UUID = value
        return job_id

    def from_id(self, value: UUID) -> Any:
        return value

    def from_time(self, value: Any) -> Any:
        return value

    def time_param(self, name: str, delay: str) -> str:
        return f"COALESCE(%({name})s::timestamptz, {self.shifted(self.now, f'%({delay})s')})"

    def shifted(self, time: str, seconds: str) -> str:
        return f"({time} + ({seconds})::float8 * interval '1 second')"

    def seconds_until(self, time: str) -> str:
        return f"EXTRACT(EPOCH FROM {time} - {self.now})"

    @property
    def waited(self) -> str:
        return "date_part('epoch', claimed_at - run_after)"  # EXTRACT is a numeric, which takes longer

    def time_text(self, time: str) -> str:
        return f"""to_char({time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""

    def with_keys(self, document: str, pairs: Mapping[str, str]) -> str:
        inner = ", ".join(f"'{key}', {value}" for key, value in pairs.items())
        return f"({document} || jsonb_build_object({inner}))"

    def with_first(self, document: str, key: str, value: str) -> str:
        return f"(jsonb_build_object('{key}', {value}) || {document})"  # of two, the one on the right stays

    def appended(self, errors: str, entry: str) -> str:
        kept = (
            f"CASE WHEN jsonb_array_length({errors}) < {ERRORS_KEPT} THEN {errors} "
            f"ELSE {errors} - {ERRORS_KEPT_FROM_START} END"
        )
        return f"({kept}) || jsonb_build_array({entry})"

    def json_param(self, name: str) -> str:
        return f"%({name})s::jsonb"

    def among(self, column: str, name: str, kind: str = "text") -> str:
        if kind == "id":
            return f"{column} = {by_key(f'SELECT unnest(%({name})s::uuid[])')}"
        return f"{column} = ANY(%({name})s::{ARRAYS[kind]})"

    def values(self, values: Iterable[Any]) -> Any:
        return list(values)

    def source(self, columns: Columns) -> str:
        arrays = ", ".join(f"%({name})s::{ARRAYS[kind]}" for name, kind in columns.items())
        return f"SELECT * FROM unnest({arrays}) AS given({', '.join(columns)})"

    def batch(self, columns: Columns, rows: Sequence[Row]) -> dict[str, Any]:
        # As the text of arrays: psycopg looks at each element's type and quotes it in Python, which was
        # half of what completing a job cost.
        by_column = zip(*rows, strict=True) if rows else ([] for _ in columns)
        return {
            name: array_text(kind, values)
            for (name, kind), values in zip(columns.items(), by_column, strict=True)
        }

    def update_given(
        self, columns: Columns, *, guard: str, assign: str, returning: str, wait: bool = True
    ) -> str:
        # The guard is hidden from the planner by CASE. Statistics are always behind here (they know of no
        # worker that has just started), so it would expect one row of this worker and join batch and table
        # by nested loops (tried: 400 ms instead of 4 for 500 jobs); and a condition on status would send it
        # through the partial index of running jobs, with its dead entries, instead of the primary key.
        return f"""
            WITH given AS MATERIALIZED ({self.source(columns)}),
            locked AS MATERIALIZED (
                {self._locked(f"job.id = {by_key('SELECT job_id FROM given')}", False, not wait)}
            )
            UPDATE {JOB_TABLE} AS job SET {assign} FROM given
            WHERE job.id = {_LOCKED} AND job.id = given.job_id
              AND CASE WHEN {guard} THEN TRUE ELSE FALSE END
            RETURNING {returning}"""

    def update_where(
        self, where: str, *, assign: str, returning: str, limit: bool = False, skip_locked: bool = False
    ) -> str:
        return f"""
            WITH locked AS MATERIALIZED ({self._locked(where, limit, skip_locked)})
            UPDATE {JOB_TABLE} AS job SET {assign} WHERE job.id = {_LOCKED}
            RETURNING {returning}"""

    def _locked(self, where: str, limit: bool, skip_locked: bool, strength: str = "NO KEY UPDATE") -> str:
        return f"""
            SELECT job.id AS locked_id FROM {JOB_TABLE} AS job WHERE {where} ORDER BY job.id
            {"LIMIT %(size)s" if limit else ""} FOR {strength} {"SKIP LOCKED" if skip_locked else ""}"""

    def renew(
        self, connection: BaseDatabaseWrapper, worker_ids: Sequence[str], lease: float, started: Sequence[Row]
    ) -> list[Row]:
        sql = f"""
            WITH given AS MATERIALIZED ({self.source(STARTED)}),
            locked AS MATERIALIZED (
                {self._locked(f"job.status = 2 AND {self.among('job.worker_id', 'workers')}", False, True)}
            ),
            renewed AS (
                UPDATE {JOB_TABLE} AS job
                SET lease_until = {self.shifted(self.now, "%(lease)s")},
                    run_started_at = COALESCE(job.run_started_at, {self.shifted(self.now, "-given.age")})
                FROM locked LEFT JOIN given ON given.job_id = locked.locked_id
                WHERE job.id = locked.locked_id AND job.id = {_LOCKED}
            )
            SELECT worker_id, id, fence, cancel_requested_at FROM {JOB_TABLE} AS job
            WHERE job.status = 2 AND {self.among("job.worker_id", "workers")}"""
        params = {"workers": list(worker_ids), "lease": lease, **self.batch(STARTED, started)}
        return self.run(connection, sql, params)

    def select_free(self, where: str) -> str:
        return self._locked(where, True, True)

    def open_transactions(self, connection: BaseDatabaseWrapper, older_than: float) -> list[OpenTransaction]:
        # Those of other roles are seen by superusers and members of pg_read_all_stats only.
        sql = """
            SELECT pid, date_part('epoch', clock_timestamp() - xact_start), state, application_name, usename
            FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
              AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
              AND xact_start < clock_timestamp() - %(older_than)s * interval '1 second'
            ORDER BY xact_start LIMIT 5"""
        return list(map(OpenTransaction._make, self.run(connection, sql, {"older_than": older_than})))

    def slow_journal(self, connection: BaseDatabaseWrapper) -> str:
        return ""

    def start_of(self, span: str) -> str:
        return f"date_bin({span} * interval '1 second', {self.now}, TIMESTAMPTZ 'epoch')"

    def added(self, one: str, other: str) -> str:
        return f"""(
            SELECT jsonb_agg(a.n::bigint + b.n::bigint ORDER BY place)
            FROM jsonb_array_elements_text({one}) WITH ORDINALITY AS a(n, place)
            JOIN jsonb_array_elements_text({other}) WITH ORDINALITY AS b(n, place) USING (place))"""

    def delete(self, connection: BaseDatabaseWrapper, ids: Sequence[UUID]) -> list[Row]:
        where = f"{self.among('job.id', 'ids', 'id')} AND job.status IN (3, 4, 5)"
        sql = f"""
            WITH locked AS MATERIALIZED ({self._locked(where, False, True, "UPDATE")})
            DELETE FROM {JOB_TABLE} AS job WHERE job.id = {_LOCKED} RETURNING {FACTS}"""
        return self.run(connection, sql, {"ids": self.ids(ids)})


class ProcessClockPostgreSQL(PostgreSQL):
    """For tests that freeze time: "now" is this process's, as on SQLite."""

    now = "%(now)s::timestamptz"

    def params(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"now": datetime.datetime.now(datetime.UTC), **params}
