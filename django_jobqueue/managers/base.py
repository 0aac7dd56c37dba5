"""What every move needs: the alias it writes to, and what to say to the database there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, models, router, transaction

from .. import conf
from ..databases import Database, database_for
from ..databases.base import Row
from ..databases.clock import from_database

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from ..models import Job


class Token(NamedTuple):
    """Proof of a claim. ``fence`` counts the claims of a job and never goes down."""

    id: UUID
    worker_id: str
    fence: int


def queue_alias(model: type[models.Model]) -> str:
    """The one alias that every query of the queue goes to, reads too: a replica may be behind."""
    return conf.current().DATABASE or router.db_for_write(model)


def open_transaction_elsewhere(alias: str) -> str | None:
    """The alias of a transaction that a job should wait for, if ``alias``, the queue's, has none open."""
    if connections[alias].in_atomic_block:
        return None
    others = [
        one.alias
        for one in connections.all(initialized_only=True)
        if one.in_atomic_block and one.alias != alias
    ]
    return DEFAULT_DB_ALIAS if DEFAULT_DB_ALIAS in others else next(iter(others), None)


class Moves:
    """Base of the moves: a part of the manager or of the query set, whose ``model`` and ``db`` it uses."""

    if TYPE_CHECKING:
        model: type[Job]

        @property
        def db(self) -> str:
            """The alias of the queue's database."""

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.db]

    @property
    def _database(self) -> Database:
        return database_for(self.db)

    def now(self) -> datetime:
        """The present instant by the database's clock."""
        [[now]] = self._database.run(self._connection, f"SELECT {self._database.now}")
        instant = from_database(now)
        assert instant is not None  # noqa: S101 - for the types: it was no NULL
        return instant

    @contextmanager
    def _undoable(self) -> Iterator[None]:
        """A savepoint inside the caller's transaction; nothing outside one, where a statement is its own."""
        if self._connection.in_atomic_block:
            with transaction.atomic(using=self.db):
                yield
        else:
            yield

    @property
    def _columns(self) -> list[str]:
        """All columns of a job, as ``_loaded`` wants them."""
        return [str(field.column) for field in self.model._meta.concrete_fields]

    def _loaded(self, rows: Iterable[Row]) -> list[Job]:
        """Rows of all columns, as a statement of our own returned them, as model instances."""
        fields = self.model._meta.concrete_fields
        converters = [self._converters(field) for field in fields]
        names = [field.attname for field in fields]
        return [self.model.from_db(self.db, names, self._converted(row, converters)) for row in rows]

    def _converters(self, field: Any) -> list[Any]:
        connection = self._connection
        expression = field.get_col(self.model._meta.db_table)
        return [
            (converter, expression)
            for converter in (
                *connection.ops.get_db_converters(expression),
                *field.get_db_converters(connection),
            )
        ]

    def _converted(self, row: Row, converters: list[Any]) -> list[Any]:
        values = []
        for value, chain in zip(row, converters, strict=True):
            for converter, expression in chain:
                value = converter(value, expression, self._connection)  # noqa: PLW2901 - a chain
            values.append(value)
        return values


class SelectionMoves(Moves, models.QuerySet["Job"]):
    """Base of the moves that work on whatever the query set selects."""


class QueueAliasManager(models.Manager[Any]):
    """A manager whose query sets name the queue's alias, so that no replica is asked."""

    @property
    def db(self) -> str:
        """The one alias that every query of the queue goes to."""
        return self._db or queue_alias(self.model)

    def get_queryset(self) -> models.QuerySet[Any]:
        """A query set on the queue's database, whatever DATABASE_ROUTERS say about reading."""
        return super().get_queryset().using(self.db)
