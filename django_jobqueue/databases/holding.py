"""The SQL around jobs that are held: renewal, what has started, progress, and taking back what was lost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from .base import JOB_TABLE, Dialect, Row, ended, with_error
from .settling import HELD

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

STARTED = {"job_id": "id", "age": "float"}
PROGRESS = {"job_id": "id", "held_fence": "int", "progress": "float", "note": "text"}

#: What ``reap`` answers with for each job.
REAPED = (
    "id, status, job_type, queue, priority, attempts, max_attempts, worker_id, run_started_at, last_error, "
    "awaited"
)


class Holding(Dialect):
    """Statements by worker, on the partial index of the running jobs."""

    @abstractmethod
    def renew(
        self, connection: BaseDatabaseWrapper, worker_ids: Sequence[str], lease: float, started: Sequence[Row]
    ) -> list[Row]:
        """Prolong every lease of these workers, and record which of their jobs have started.

        ``started``: (id, seconds since). Rows that another statement has locked are passed over. Answers
        with (worker, id, fence, cancel asked at) of *all* jobs still held, those passed over too.
        """

    def record_started(
        self, connection: BaseDatabaseWrapper, worker_id: str, started: Sequence[Row]
    ) -> list[Row]:
        """Record when jobs of this worker started, before anything else is decided about them.

        Not for rows that are locked, which ``reap`` passes over as well.
        """
        sql = self.update_given(
            STARTED,
            guard="job.status = 2 AND job.worker_id = %(worker_id)s AND job.run_started_at IS NULL",
            assign=f"run_started_at = {self.shifted(self.now, '-given.age')}",
            returning="id",
            wait=False,
        )
        return self.run(connection, sql, {"worker_id": worker_id, **self.batch(STARTED, started)})

    def held_by(self, connection: BaseDatabaseWrapper, worker_id: str) -> list[Row]:
        """(id, fence, cancel asked at) of every job that the table says this worker holds."""
        sql = f"""
            SELECT id, fence, cancel_requested_at FROM {JOB_TABLE}
            WHERE status = 2 AND worker_id = %(worker_id)s"""
        return self.run(connection, sql, {"worker_id": worker_id})

    def report_progress(
        self, connection: BaseDatabaseWrapper, worker_id: str, rows: Sequence[Row]
    ) -> list[Row]:
        """Write progress. Rows: (id, fence, progress 0…1 or None, note)."""
        sql = self.update_given(
            PROGRESS,
            guard=HELD,
            assign="progress = given.progress, progress_note = given.note",
            returning="id",
            wait=False,
        )
        return self.run(connection, sql, {"worker_id": worker_id, **self.batch(PROGRESS, rows)})

    def reap(
        self,
        connection: BaseDatabaseWrapper,
        size: int,
        errors: Mapping[str, object],
        worker_id: str | None,
        exact: bool,
        only: Sequence[UUID] | None,
    ) -> list[Row]:
        """Take back jobs whose lease is over, ``only`` these if given, or all of one lost worker.

        A job recorded as started: the attempt counts, and too many of these make it DEAD. One never started
        gets it back. ``exact``: the record is known to be complete, so a job not in it is no suspect.
        ``errors``: that of a lost worker, and with names in ``poison_`` that of too many; and how many
        that is. Answers with ``REAPED``.
        """
        where = self._is_overdue
        if only is not None:
            where += f" AND {self.among('job.id', 'only', 'id')}"
        if worker_id is not None:
            where = "job.status = 2 AND job.worker_id = %(worker_id)s"
        started = "job.run_started_at IS NOT NULL"
        poison = f"({started} AND job.crashes + 1 >= %(poison_crashes)s)"
        again = f"(NOT ({started}) OR (job.attempts < job.max_attempts AND NOT {poison}))"

        def either(lost: str, too_many: str) -> str:
            return f"CASE WHEN {poison} THEN {too_many} ELSE {lost} END"

        recorded = with_error(
            self,
            either(self.json_param("error"), self.json_param("poison_error")),
            either("%(fingerprint)s", "%(poison_fingerprint)s"),
            either("%(last_error)s", "%(poison_last_error)s"),
            started="job.run_started_at",
            when=started,
        )
        assign = f"""
            {ended(self, again)},
            attempts = CASE WHEN {started} THEN job.attempts ELSE job.attempts - 1 END,
            crashes = job.crashes + CASE WHEN {started} THEN 1 ELSE %(unstarted)s END,
            {recorded}"""
        sql = self.update_where(where, assign=assign, returning=REAPED, limit=True, skip_locked=True)
        params = {**errors, "size": size, "worker_id": worker_id, "unstarted": 0 if exact else 1}
        if only is not None:
            params["only"] = self.ids(only)
        return self.run(connection, sql, params)

    def overdue(self, connection: BaseDatabaseWrapper, size: int) -> list[Row]:
        """(id) of up to so many jobs whose lease is over, and whose row no other transaction has locked."""
        return self.run(connection, self.select_free(self._is_overdue), {"size": size})

    @property
    def _is_overdue(self) -> str:
        # lease_until is not indexed, so that a renewal touches no index: this looks at all running jobs.
        return f"job.status = 2 AND job.lease_until < {self.now}"
