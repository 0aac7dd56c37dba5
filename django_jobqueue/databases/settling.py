"""The SQL that ends an attempt. Every write carries the token: (id, worker, fence), and still RUNNING."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from .base import JOB_TABLE, Dialect, Row, ended, with_error

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

#: The token: still RUNNING, by this worker, in this claim.
HELD = "job.status = 2 AND job.worker_id = %(worker_id)s AND job.fence = given.held_fence"

_TOKEN = {"job_id": "id", "held_fence": "int", "started": "float"}
_ERROR = {"error": "json", "fingerprint": "text", "error_text": "text"}

COMPLETE = {**_TOKEN, "result": "json"}
FAIL = {**_TOKEN, "delay": "float", **_ERROR}
SNOOZE = {**_TOKEN, "delay": "float"}
RELEASE = _TOKEN
UNKNOWN = {"job_id": "id", "held_fence": "int"}

_AFTER = "id, fence, status, run_after, last_error, awaited"


class Settling(Dialect):
    """complete, fail, snooze, release: batches in; out come the rows of those that were still held.

    Each but ``complete`` answers with ``_AFTER`` of the jobs written. A job
    that is missing from the answer was lost: somebody else has it, or a person ended it; or, without
    ``wait``, another transaction has its row locked.
    """

    def _started(self) -> str:
        """When the handler started: the database's time of the claim plus the worker's own measure.

        That begins before the claim is sent, so the sum may be a little late; never later than now.
        """
        started = self.shifted("job.claimed_at", "given.started")
        return f"COALESCE({self.at_most(started, self.now)}, job.run_started_at)"

    def complete(
        self, connection: BaseDatabaseWrapper, worker_id: str, rows: Sequence[Row], wait: bool
    ) -> list[Row]:
        """RUNNING → DONE. Rows: (id, fence, seconds from claim to start, result as JSON).

        Answers (id, awaited).
        """
        sql = self.complete_sql("id, awaited", wait)
        return self.run(connection, sql, {"worker_id": worker_id, **self.batch(COMPLETE, rows)})

    def complete_sql(self, returning: str, wait: bool) -> str:
        """The statement."""
        return self.update_given(
            COMPLETE,
            guard=HELD,
            assign=f"""
                status = 3, result = given.result, finished_at = {self.now}, lease_until = NULL,
                run_started_at = {self._started()}, updated_at = {self.now}""",
            returning=returning,
            wait=wait,
        )

    def fail(
        self, connection: BaseDatabaseWrapper, worker_id: str, rows: Sequence[Row], wait: bool
    ) -> list[Row]:
        """RUNNING → PENDING after the delay, else DEAD.

        Rows: (id, fence, seconds from claim to start, delay or None for dead, error, fingerprint, text).
        """
        again = "given.delay IS NOT NULL AND job.attempts < job.max_attempts"
        started = self._started()
        assign = f"""
            {ended(self, again, run_after=self.shifted(self.now, "given.delay"))},
            run_started_at = {started}, unknown_since = NULL,
            {with_error(self, "given.error", "given.fingerprint", "given.error_text", started=started)}"""
        sql = self.update_given(FAIL, guard=HELD, assign=assign, returning=_AFTER, wait=wait)
        return self.run(connection, sql, {"worker_id": worker_id, **self.batch(FAIL, rows)})

    def snooze(
        self,
        connection: BaseDatabaseWrapper,
        worker_id: str,
        rows: Sequence[Row],
        wait: bool,
        too_many: dict[str, object],
    ) -> list[Row]:
        """RUNNING → PENDING after the delay, not counted; DEAD past the bound.

        Rows: (id, fence, seconds from claim to start, delay). ``too_many``: the bound and its error.
        """
        again = "job.snoozes < %(most)s"
        assign = f"""
            {ended(self, again, run_after=self.shifted(self.now, "given.delay"))},
            attempts = CASE WHEN {again} THEN job.attempts - 1 ELSE job.attempts END,
            snoozes = CASE WHEN {again} THEN job.snoozes + 1 ELSE job.snoozes END,
            run_started_at = {self._started()}, unknown_since = NULL,
            {self._recorded_unless(again, self._started())}"""
        sql = self.update_given(SNOOZE, guard=HELD, assign=assign, returning=_AFTER, wait=wait)
        return self.run(connection, sql, {"worker_id": worker_id, **too_many, **self.batch(SNOOZE, rows)})

    def release(
        self,
        connection: BaseDatabaseWrapper,
        worker_id: str,
        rows: Sequence[Row],
        wait: bool,
        too_many: dict[str, object],
    ) -> list[Row]:
        """RUNNING → PENDING, not counted. Rows: (id, fence, seconds from claim to start, or None).

        What had started is counted by itself, and past the bound its attempts count.
        """
        started = "given.started IS NOT NULL"
        uncounted = f"(NOT ({started}) OR job.releases < %(most)s)"
        again = f"({uncounted} OR job.attempts < job.max_attempts)"
        assign = f"""
            {ended(self, again)},
            attempts = CASE WHEN {uncounted} THEN job.attempts - 1 ELSE job.attempts END,
            releases = CASE WHEN {started} AND {uncounted} THEN job.releases + 1 ELSE job.releases END,
            {self._recorded_unless(again, "job.run_started_at")}"""
        sql = self.update_given(RELEASE, guard=HELD, assign=assign, returning=_AFTER, wait=wait)
        return self.run(connection, sql, {"worker_id": worker_id, **too_many, **self.batch(RELEASE, rows)})

    def release_unknown(
        self,
        connection: BaseDatabaseWrapper,
        worker_id: str,
        rows: Sequence[Row],
        wait: bool,
        too_long: dict[str, object],
    ) -> list[Row]:
        """RUNNING → PENDING, since this worker does not know the type; DEAD if none did for too long."""
        again = f"COALESCE({self.shifted('job.unknown_since', '%(grace)s')} > {self.now}, TRUE)"
        assign = f"""
            {ended(self, again)},
            attempts = CASE WHEN {again} THEN job.attempts - 1 ELSE job.attempts END,
            unknown_since = COALESCE(job.unknown_since, {self.now}),
            {self._recorded_unless(again, "job.run_started_at")}"""
        sql = self.update_given(UNKNOWN, guard=HELD, assign=assign, returning=_AFTER, wait=wait)
        return self.run(connection, sql, {"worker_id": worker_id, **too_long, **self.batch(UNKNOWN, rows)})

    def standing(self, connection: BaseDatabaseWrapper, ids: Sequence[UUID]) -> list[Row]:
        """(id, worker, fence, status, run_after, last_error): to find out whether an outcome was written."""
        sql = f"""
            SELECT id, worker_id, fence, status, run_after, last_error FROM {JOB_TABLE}
            WHERE {self.among("id", "ids", "id")}"""
        return self.run(connection, sql, {"ids": self.ids(ids)})

    def _recorded_unless(self, again: str, started: str) -> str:
        """Assignments that record the error in the parameters, if the job does not go back to PENDING."""
        return with_error(
            self,
            self.json_param("error"),
            "%(fingerprint)s",
            "%(last_error)s",
            started=started,
            when=f"job.cancel_requested_at IS NULL AND NOT ({again})",
        )
