"""What the queue says to a database: the parts that are the same everywhere.

A ``Database`` (see ``database.py``) holds no connection and no state. Its methods each run one statement
on the connection they are given and answer with plain tuples; ``PostgreSQL`` and ``SQLite`` fill in what
differs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    Connection = BaseDatabaseWrapper

JOB_TABLE = "django_jobqueue_job"
QUEUE_TABLE = "django_jobqueue_queue"
WORKER_TABLE = "django_jobqueue_worker"
STATISTIC_TABLE = "django_jobqueue_statistic"

Row = tuple[Any, ...]
#: Columns of a batch, name -> kind, where a kind is one of "id", "int", "float", "text", "json", "time".
Columns = Mapping[str, str]

#: Errors kept on a job: complete to this many, then the first ten and the last ninety.
ERRORS_KEPT = 100
ERRORS_KEPT_FROM_START = 10


class Dialect(ABC):
    """The fragments of SQL that differ, and how batches of values travel."""

    now: ClassVar[str]
    #: Whether a waiting claim can be woken by the database (LISTEN/NOTIFY).
    notifies: ClassVar[bool] = False

    def run(self, connection: Connection, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """Run one statement and fetch what it returns."""
        with connection.cursor() as cursor:
            cursor.execute(sql, self.params(params or {}))
            return cursor.fetchall() if cursor.description else []

    def params(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The named parameters of a statement, with those every statement of this database needs."""
        return params

    @abstractmethod
    def prepare(self, connection: Connection) -> None:
        """What the database needs besides the tables; called after every ``migrate``."""

    @abstractmethod
    def is_idle(self, connection: Connection) -> bool:
        """Whether the driver says that this connection is open and in no transaction."""

    def keep_plans(self, connection: Connection) -> None:  # noqa: B027 - SQLite plans in microseconds
        """Let the server keep the plans of statements that come again and again, if it safely can.

        For a connection that was just made and that the caller alone uses.
        """

    def timeouts(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Further options of a connection, so that a server that is gone without a word is noticed."""
        return {}

    @abstractmethod
    def to_id(self, value: Any) -> UUID:
        """A job id as the database gave it."""

    @abstractmethod
    def from_id(self, value: UUID) -> Any:
        """A job id as the database takes it."""

    @abstractmethod
    def from_time(self, value: Any) -> Any:
        """An instant (or None) as the database takes it as a parameter."""

    @abstractmethod
    def time_param(self, name: str, delay: str) -> str:
        """SQL: the instant in parameter ``name``, or if it is null now plus the seconds in ``delay``."""

    @abstractmethod
    def shifted(self, time: str, seconds: str) -> str:
        """SQL: the instant ``time`` moved by ``seconds`` (both SQL)."""

    def at_most(self, time: str, bound: str) -> str:
        """SQL: the earlier of two instants; null if ``time`` is."""
        return f"CASE WHEN {time} > {bound} THEN {bound} ELSE {time} END"

    @abstractmethod
    def time_text(self, time: str) -> str:
        """SQL: the instant as ISO 8601 text in UTC, for JSON."""

    @abstractmethod
    def with_keys(self, document: str, pairs: Mapping[str, str]) -> str:
        """SQL: the JSON object ``document`` with more keys, each given as SQL."""

    @abstractmethod
    def with_first(self, document: str, key: str, value: str) -> str:
        """SQL: the JSON object ``document`` with the JSON ``value`` under ``key``, unless it has that key."""

    @abstractmethod
    def appended(self, errors: str, entry: str) -> str:
        """SQL: the JSON list of errors with one more, kept to its bound."""

    @abstractmethod
    def json_param(self, name: str) -> str:
        """SQL: the parameter ``name``, a JSON text, as JSON."""

    @abstractmethod
    def among(self, column: str, name: str, kind: str = "text") -> str:
        """SQL: whether ``column`` is one of the values in the parameter ``name``."""

    @abstractmethod
    def values(self, values: Iterable[Any]) -> Any:
        """A list of plain values as the parameter that ``among`` expects."""

    @abstractmethod
    def source(self, columns: Columns) -> str:
        """SQL: a relation of the batch's rows, with these columns."""

    @abstractmethod
    def batch(self, columns: Columns, rows: Sequence[Row]) -> dict[str, Any]:
        """The parameters that ``source`` reads the rows from."""

    @abstractmethod
    def update_given(
        self, columns: Columns, *, guard: str, assign: str, returning: str, wait: bool = True
    ) -> str:
        """SQL: update the jobs of a batch (``given.job_id``) that pass ``guard``.

        In it ``job`` is the row and ``given`` the batch's row. Where rows are locked, they are locked in
        id order first, so that two batches never deadlock; without ``wait`` those that others have locked
        are passed over. ``returning`` may be empty on SQLite.
        """

    @abstractmethod
    def update_where(
        self, where: str, *, assign: str, returning: str, limit: bool = False, skip_locked: bool = False
    ) -> str:
        """SQL: update the jobs for which ``where`` holds, at most the parameter ``size`` if ``limit``."""

    @abstractmethod
    def select_free(self, where: str) -> str:
        """SQL: the ids of at most ``size`` jobs for which ``where`` holds and whose row nobody has locked."""

    def ids(self, ids: Iterable[UUID]) -> Any:
        """Job ids as the parameter that ``among(…, kind="id")`` expects."""
        return self.values([self.from_id(one) for one in ids])


def ended(dialect: Dialect, again: str, *, run_after: str = "job.run_after") -> str:
    """SQL assignments that end an attempt: back to PENDING if ``again``, CANCELLED if asked, else DEAD."""
    asked = "job.cancel_requested_at IS NOT NULL"
    return f"""
        status = CASE WHEN {asked} THEN 5 WHEN {again} THEN 1 ELSE 4 END,
        finished_at = CASE WHEN NOT ({asked}) AND ({again}) THEN NULL ELSE {dialect.now} END,
        run_after = CASE WHEN NOT ({asked}) AND ({again}) THEN {run_after} ELSE job.run_after END,
        lease_until = NULL,
        updated_at = {dialect.now}"""


def with_error(
    dialect: Dialect, error: str, fingerprint: str, text: str, *, started: str, when: str | None = None
) -> str:
    """SQL assignments that record a failed attempt on the job, all of it SQL; only ``when`` that holds."""
    entry = dialect.with_keys(
        error,
        {
            "attempt": "job.attempts",
            "worker": "job.worker_id",
            "started_at": dialect.time_text(started),
            "ended_at": dialect.time_text(dialect.now),
        },
    )
    written = {
        "errors": dialect.appended("job.errors", entry),
        "error_fingerprint": fingerprint,
        "last_error": text,
    }
    if when is not None:
        written = {
            name: f"CASE WHEN {when} THEN {value} ELSE job.{name} END" for name, value in written.items()
        }
    return ", ".join(f"{name} = {value}" for name, value in written.items())
