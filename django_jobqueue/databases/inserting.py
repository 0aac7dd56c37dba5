"""The SQL of ``enqueue``: new rows, and none where an active job holds the dedupe key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

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


class Inserting(Dialect):
    """Insert one job or many."""

    @abstractmethod
    def insert(self, connection: BaseDatabaseWrapper, job: NewJob) -> Row | None:
        """Insert one; (run_after, expires_at, created_at), or None if an active job has its dedupe key."""

    @abstractmethod
    def insert_many(self, connection: BaseDatabaseWrapper, jobs: Sequence[NewJob]) -> dict[int, Row]:
        """Insert a chunk; what ``insert`` returns, by the number of the id, for the jobs known to be made.

        A job with a dedupe key that is missing from the answer has to be looked up by its key.
        """
