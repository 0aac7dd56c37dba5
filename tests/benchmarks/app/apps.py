"""Counts claims in worker processes, where the benchmark asks for it."""

import os
from collections.abc import Callable
from typing import Any

from django.apps import AppConfig
from django.db.backends.base.base import BaseDatabaseWrapper

from ..names import CLAIMS

#: Whether a due job that was asked for is there, and nobody holds it; on SQLite nobody can while we look.
DUE = """
    SELECT 1 FROM django_jobqueue_job
    WHERE status = 1 AND run_after <= {now} AND NOT ({excluded})
      AND queue NOT IN (SELECT name FROM django_jobqueue_queue WHERE paused)
    LIMIT 1 {lock}"""


class BenchmarkConfig(AppConfig):
    """The handlers' app."""

    name = "tests.benchmarks.app"
    label = "benchmark"

    def ready(self) -> None:
        """Nothing is counted unless that is what is measured."""
        if CLAIMS in os.environ:
            count_claims(os.environ[CLAIMS])


def count_claims(path: str) -> None:
    """Write a line for each claim: how many were asked for, how many came, whether due ones remained."""
    from django_jobqueue.databases import PostgreSQL, SQLite

    for kind in (PostgreSQL, SQLite):
        kind.claim = counted(kind.claim, path)  # type: ignore[method-assign]


def counted(plain: Callable[..., Any], path: str) -> Callable[..., Any]:
    """``Database.claim``, and a line."""

    def claim(self: Any, connection: BaseDatabaseWrapper, request: Any, *rest: Any, **more: Any) -> Any:
        rows = plain(self, connection, request, *rest, **more)
        remained = len(rows) < request.limit and is_due(self, connection, request)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{request.limit} {len(rows)} {int(remained)}\n".encode())
        os.close(file)
        return rows

    return claim


def is_due(database: Any, connection: BaseDatabaseWrapper, request: Any) -> bool:
    """Whether a claim could have had more."""
    sql = DUE.format(
        now=database.now,
        excluded=database.among("job_type", "excluded"),
        lock="FOR NO KEY UPDATE SKIP LOCKED" if database.notifies else "",
    )
    return bool(database.run(connection, sql, {"excluded": database.values(request.exclude_types)}))
