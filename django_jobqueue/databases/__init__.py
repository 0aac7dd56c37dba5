"""What differs between databases. The vendor's name is asked here and nowhere else."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from django.db import connections

from ..exceptions import UnsupportedDatabase
from .clock import goes_by_process
from .database import Database
from .postgresql import PostgreSQL, ProcessClockPostgreSQL
from .sqlite import SQLite

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_BY_VENDOR: dict[str, type[Database]] = {"postgresql": PostgreSQL, "sqlite": SQLite}
_BY_PROCESS: dict[str, type[Database]] = {"postgresql": ProcessClockPostgreSQL, "sqlite": SQLite}

SUPPORTED = "PostgreSQL 14 or newer with psycopg 3, and SQLite 3.35 or newer"

__all__ = ["SUPPORTED", "Database", "database_for", "is_spoiled", "is_supported"]


def is_supported(connection: BaseDatabaseWrapper) -> bool:
    """Whether the queue can live there."""
    return connection.vendor in _BY_VENDOR


def database_for(alias: str) -> Database:
    """What to say to the database behind ``alias``. Raises ``UnsupportedDatabase`` for any other kind."""
    connection = connections[alias]
    if not is_supported(connection):
        raise UnsupportedDatabase(
            f"The database {alias!r} is {connection.vendor}. The queue needs partial unique indexes and "
            f"UPDATE … RETURNING: {SUPPORTED}. Put the queue on one of these with JOBQUEUE['DATABASE']."
        )
    return _instance(connection.vendor, goes_by_process())


def is_spoiled(connection: BaseDatabaseWrapper) -> bool:
    """Whether somebody left a transaction open on this connection, or closed it behind Django's back."""
    if connection.connection is None:
        return False
    begun = connection.in_atomic_block or (
        connection.settings_dict["AUTOCOMMIT"] and not connection.autocommit
    )
    return begun or (is_supported(connection) and not _instance(connection.vendor, False).is_idle(connection))


@cache
def _instance(vendor: str, by_process: bool) -> Database:
    return (_BY_PROCESS if by_process else _BY_VENDOR)[vendor]()
