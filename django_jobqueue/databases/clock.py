"""Instants: one clock (the database's), one zone (UTC), one width (microseconds), on every database.

Django's own ``Now()`` and ``DateTimeField`` do not agree with each other on SQLite: milliseconds against
microseconds, UTC against the local zone when ``USE_TZ`` is False, and both are compared there as text.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import DateTimeField, Expression
from django.utils import timezone

from ..exceptions import InvalidOption, as_seconds

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

Instant = datetime.datetime
UTC = datetime.UTC


def _text(value: Instant) -> str:
    # Not strftime: it writes the year 987 with three digits.
    return value.replace(tzinfo=None).isoformat(" ", "microseconds")


def as_utc(value: Instant) -> Instant:
    """``value`` in UTC; a naive one is read in ``TIME_ZONE``, as Django does under ``USE_TZ = False``."""
    if timezone.is_naive(value):
        value = timezone.make_aware(value, timezone.get_default_timezone())
    return value.astimezone(UTC)


def as_text(value: Instant) -> str:
    """How SQLite stores an instant: text that sorts as time does."""
    return _text(as_utc(value))


def process_now_text() -> str:
    """SQLite's clock is the clock of the process that runs it."""
    return _text(datetime.datetime.now(UTC))


_by_process = False


@contextmanager
def process_clock() -> Iterator[None]:
    """Within the block, the queue goes by this process's clock on PostgreSQL too, as it does on SQLite.

    For tests that freeze or shift time: the server's clock knows nothing of it.
    """
    global _by_process  # noqa: PLW0603 - for all threads, as the clock itself
    before, _by_process = _by_process, True
    try:
        yield
    finally:
        _by_process = before


def goes_by_process() -> bool:
    """Whether the clock of this process is asked instead of the server's."""
    return _by_process


def from_database(value: Any) -> Instant | None:
    """What a database gave back, as Django wants it: aware under ``USE_TZ``, else naive in ``TIME_ZONE``."""
    if value is None:
        return None
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
    if settings.USE_TZ:
        return as_utc(value)
    if timezone.is_aware(value):
        return timezone.make_naive(value, timezone.get_default_timezone())
    naive: Instant = value
    return naive


def moment(name: str, value: Instant | datetime.timedelta | None) -> tuple[Instant | None, float]:
    """A time given by a caller, as (instant in UTC or None, seconds from the database's now).

    Raises ``InvalidOption`` for a naive datetime under ``USE_TZ``, a negative timedelta, or anything else.
    """
    if value is None:
        return None, 0.0
    if isinstance(value, datetime.timedelta):
        return None, as_seconds(value, name)
    if not isinstance(value, datetime.datetime):
        raise InvalidOption(f"{name}={value!r}: must be an aware datetime or a timedelta.")
    if settings.USE_TZ and timezone.is_naive(value):
        raise InvalidOption(
            f"{name}={value!r} has no time zone. Under USE_TZ pass an aware datetime (timezone.now() + …) "
            "or a timedelta."
        )
    try:
        return as_utc(value), 0.0
    except OverflowError:
        raise InvalidOption(f"{name}={value!r} is outside of the years 1 to 9999 in UTC.") from None


class DatabaseNow(Expression):
    """The database's present instant, for querysets: ``filter(run_after__lte=DatabaseNow())``."""

    output_field = DateTimeField()

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        """The start of the statement; stable within it, so that indexes can be used."""
        return (
            ("%s::timestamptz", (datetime.datetime.now(UTC),))
            if _by_process
            else ("statement_timestamp()", ())
        )

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[Any, ...]]:
        """The process's clock, at the width in which instants are stored."""
        return "%s", (process_now_text(),)


class DatabaseAgo(DatabaseNow):
    """The database's now, less ``age``."""

    def __init__(self, age: datetime.timedelta) -> None:
        super().__init__()
        self.age = age

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        """As a parameter of seconds."""
        now, params = super().as_sql(compiler, connection)
        return f"({now} - %s * interval '1 second')", (*params, self.age.total_seconds())

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[Any, ...]]:
        """Worked out here: it is the same clock."""
        return "%s", (_text(datetime.datetime.now(UTC) - self.age),)
