"""What every move needs: the alias it writes to, and what to say to the database there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.db import connections, models, router, transaction

from .. import conf
from ..databases import Database, database_for
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
