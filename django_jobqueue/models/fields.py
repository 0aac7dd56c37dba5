"""The field for instants that claims, leases and order compare, and the JSON rules of the constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from ..databases.clock import as_text, as_utc, from_database

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler


class InstantField(models.DateTimeField):  # type: ignore[type-arg]
    """A point in time: stored in UTC with microseconds on every database, whatever ``USE_TZ`` says.

    Reads and takes what Django's own ``DateTimeField`` does: aware datetimes under ``USE_TZ``, naive ones
    in ``TIME_ZONE`` without it.
    """

    def get_internal_type(self) -> str:
        """A type of its own, so that no backend converter reads UTC text as local time."""
        return "InstantField"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        """timestamptz on PostgreSQL; text of one width on SQLite, which sorts as time does."""
        return "text" if connection.vendor == "sqlite" else str(connection.data_types["DateTimeField"])

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        """The instant in UTC."""
        if not prepared:
            value = self.get_prep_value(value)
        if value is None or hasattr(value, "resolve_expression"):
            return value
        return as_text(value) if connection.vendor == "sqlite" else as_utc(value)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        """Aware under ``USE_TZ``, else naive in ``TIME_ZONE``."""
        return from_database(value)


class JSONKind(models.Func):
    """What a JSON column holds: ``object``, ``array`` … The same words on PostgreSQL and SQLite."""

    function = "jsonb_typeof"
    arity = 1
    output_field = models.TextField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """SQLite's name for it."""
        return self.as_sql(compiler, connection, function="json_type", **context)
