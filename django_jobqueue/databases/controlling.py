"""The SQL of what people and housekeeping do to jobs: cancel, retry, reschedule, expire, prune."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from .base import JOB_TABLE, Dialect, Row

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

#: Another active job has the dedupe key.
KEY_TAKEN = f"""EXISTS (
    SELECT 1 FROM {JOB_TABLE} AS other
    WHERE other.dedupe_key = job.dedupe_key AND other.status IN (1, 2) AND other.dedupe_key IS NOT NULL)"""

#: What each answers with: the columns that receivers are promised, and whether somebody waits for the
#: job; in the order of the model's fields.
FACTS = "id, job_type, queue, status, priority, attempts, max_attempts, awaited"

#: A batch of jobs to retry: which, and in how many seconds each is due.
RETRY = {"job_id": "id", "delay": "float"}

#: Where a job's context keeps the payload that it had before a person gave it another.
ORIGINAL_PAYLOAD = "original_payload"


class Controlling(Dialect):
    """Statements over chosen ids, each guarded by status. Answers tell which rows were really moved."""

    def cancel(self, connection: BaseDatabaseWrapper, ids: Sequence[UUID], reason: str) -> list[Row]:
        """PENDING → CANCELLED; RUNNING → asked to stop."""
        sql = self.update_where(
            f"{self.among('job.id', 'ids', 'id')} AND (job.status = 1 OR "
            "(job.status = 2 AND job.cancel_requested_at IS NULL))",
            assign=f"""
                status = CASE WHEN job.status = 1 THEN 5 ELSE job.status END,
                finished_at = CASE WHEN job.status = 1 THEN {self.now} ELSE NULL END,
                last_error = CASE WHEN job.status = 1 THEN %(reason)s ELSE job.last_error END,
                cancel_requested_at = {self.now},
                updated_at = {self.now}""",
            returning=FACTS,
        )
        return self.run(connection, sql, {"ids": self.ids(ids), "reason": reason})

    def retry(self, connection: BaseDatabaseWrapper, rows: Sequence[Row], payload: str | None) -> list[Row]:
        """DEAD, CANCELLED → PENDING with all attempts anew, unless another job has the dedupe key.

        Rows: (id, seconds until it is due). The payload that another one replaces is kept in the context.
        """
        kept = self.with_first("job.context", ORIGINAL_PAYLOAD, "job.payload")
        replaced = "" if payload is None else f"context = {kept}, payload = {self.json_param('payload')},"
        sql = self.update_given(
            RETRY,
            guard=f"job.status IN (4, 5) AND NOT {KEY_TAKEN}",
            assign=f"""
                {replaced}
                status = 1, attempts = 0, crashes = 0, snoozes = 0, releases = 0, unknown_since = NULL,
                run_after = {self.shifted(self.now, "given.delay")}, expires_at = NULL, finished_at = NULL,
                cancel_requested_at = NULL, progress = NULL, progress_note = '', updated_at = {self.now}""",
            returning=FACTS,
        )
        return self.run(connection, sql, {"payload": payload, **self.batch(RETRY, rows)})

    def reschedule(
        self, connection: BaseDatabaseWrapper, ids: Sequence[UUID], changes: Mapping[str, object]
    ) -> list[Row]:
        """Another time or priority for PENDING jobs. ``changes``: run_at, run_delay and/or priority."""
        assign = [f"updated_at = {self.now}"]
        if "run_delay" in changes:
            assign.append(f"run_after = {self.time_param('run_at', 'run_delay')}")
        if "priority" in changes:
            assign.append("priority = %(priority)s")
        sql = self.update_where(
            f"{self.among('job.id', 'ids', 'id')} AND job.status = 1",
            assign=", ".join(assign),
            returning=FACTS,
        )
        return self.run(connection, sql, {"ids": self.ids(ids), **changes})

    def expire(
        self, connection: BaseDatabaseWrapper, size: int, reason: str, keys: Sequence[str] | None = None
    ) -> list[Row]:
        """PENDING → CANCELLED for up to ``size`` jobs whose ``expires_at`` has come; just of these keys."""
        of_keys = "" if keys is None else f"AND {self.among('job.dedupe_key', 'keys')}"
        sql = self.update_where(
            f"job.status = 1 AND job.expires_at IS NOT NULL AND job.expires_at <= {self.now} {of_keys}",
            assign=f"status = 5, finished_at = {self.now}, last_error = %(reason)s, updated_at = {self.now}",
            returning=FACTS,
            limit=True,
            skip_locked=True,
        )
        params = {"size": size, "reason": reason, "keys": self.values(keys or ())}
        return self.run(connection, sql, params)

    def mark_awaited(self, connection: BaseDatabaseWrapper, job_id: UUID) -> None:
        """Have whoever ends the job tell of it. A row that others have locked is passed over."""
        where = f"{self.among('job.id', 'ids', 'id')} AND job.status IN (1, 2) AND NOT job.awaited"
        sql = self.update_where(where, assign="awaited = TRUE", returning="job.id", skip_locked=True)
        self.run(connection, sql, {"ids": self.ids([job_id])})

    @abstractmethod
    def delete(self, connection: BaseDatabaseWrapper, ids: Sequence[UUID]) -> list[Row]:
        """Remove those of the ids that are finished, and that nobody else has locked."""
