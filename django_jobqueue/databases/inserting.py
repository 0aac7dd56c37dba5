"""The SQL of ``enqueue``: new rows, and none where an active job holds the dedupe key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from ..dedupe import RETURN, Dedupe
from .base import Columns, Dialect, Row

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from .clock import Instant


class NewJob(NamedTuple):
    """A job to insert. Every other column starts with the default that the table itself knows."""

    id: UUID
    job_type: str
    queue: str
    priority: int
    payload: str  # JSON
    context: str  # JSON
    dedupe_key: str | None
    lock_key: str | None
    max_attempts: int
    run_at: Instant | None
    run_delay: float
    expires_at: Instant | None
    expires_delay: float | None
    dedupe: Dedupe = RETURN  # what to do if another job has the dedupe key; no column


COLUMNS: Columns = {
    "id": "id",
    "job_type": "text",
    "queue": "text",
    "priority": "int",
    "payload": "json",
    "context": "json",
    "dedupe_key": "text",
    "lock_key": "text",
    "max_attempts": "int",
    "run_at": "time",
    "run_delay": "float",
    "expires_at": "time",
    "expires_delay": "float",
}

PLAIN = (
    "id",
    "job_type",
    "queue",
    "priority",
    "payload",
    "context",
    "dedupe_key",
    "lock_key",
    "max_attempts",
)
TARGET = f"{', '.join(PLAIN)}, status, run_after, expires_at, created_at, updated_at"

#: Names the partial unique constraint by its column and condition, as PostgreSQL and SQLite both want it.
ON_CONFLICT = "ON CONFLICT (dedupe_key) WHERE dedupe_key IS NOT NULL AND status IN (1, 2) DO NOTHING"


#: Of the jobs that ``skip_for`` looks at besides the active ones: those that a person ended do not count.
RECENT = "finished_at IS NOT NULL AND status IN (3, 4)"

#: What a job that is replaced takes over from the new one, besides its times.
REPLACED = (
    "job_type = %(job_type)s, queue = %(queue)s, priority = %(priority)s, lock_key = %(lock_key)s, "
    "max_attempts = %(max_attempts)s, attempts = 0, crashes = 0, snoozes = 0, releases = 0, "
    "unknown_since = NULL, progress = NULL, progress_note = ''"
)


class Inserting(Dialect):
    """Insert one job or many; or put what one asks for into the pending job of its dedupe key."""

    @abstractmethod
    def insert(self, connection: BaseDatabaseWrapper, job: NewJob) -> Row | None:
        """Insert one; (run_after, expires_at, created_at), or None if an active job has its dedupe key.

        With ``skip_for`` also None if the key had a job made within that time.
        """

    @abstractmethod
    def insert_many(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> dict[int, Row]:
        """Insert a chunk; what ``insert`` returns, by the number of the id, for the jobs known to be made.

        A job with a dedupe key that is missing from the answer has to be looked up by its key.
        """

    def replace(self, connection: BaseDatabaseWrapper, job: NewJob, columns: Sequence[str]) -> list[Row]:
        """Make the pending job of the dedupe key what ``job`` asks for; its ``columns``, or nothing.

        The id and the time of its making stay, and so does what is known of its errors. An expired job is
        left alone.
        """
        run_after = self.time_param("run_at", "run_delay")
        if job.dedupe.at_most is not None:
            latest = self.shifted("job.created_at", "%(at_most)s")
            run_after = f"CASE WHEN {run_after} < {latest} THEN {run_after} ELSE {latest} END"
        # IN (1, 2) is what the partial unique index says; SQLite takes it from nothing less.
        sql = self.update_where(
            "job.dedupe_key = %(dedupe_key)s AND job.status IN (1, 2) AND job.status = 1 "
            f"AND (job.expires_at IS NULL OR job.expires_at > {self.now})",
            assign=f"""
                {REPLACED}, payload = {self.json_param("payload")}, context = {self.json_param("context")},
                run_after = {run_after}, expires_at = {self.time_param("expires_at", "expires_delay")},
                updated_at = {self.now}""",
            returning=", ".join(columns),
        )
        params = {name: value for name, value in job._asdict().items() if name not in ("id", "dedupe")} | {
            "run_at": self.from_time(job.run_at),
            "expires_at": self.from_time(job.expires_at),
            "at_most": job.dedupe.at_most,
        }
        return self.run(connection, sql, params)
