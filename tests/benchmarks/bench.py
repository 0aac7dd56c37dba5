"""What every workload is given: the options, the server, and the queue on a database of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import psycopg

from .children import call
from .options import Options
from .servers import PostgreSQLServer, Server, Target

#: What was measured in one part of a workload: name, with the unit -> value.
Figures = dict[str, float]

JOBS_PER_SECOND = "jobs/s"
#: Of a few, the one that nothing else held up.
BEST = "best ms"


@dataclass(frozen=True)
class Part:
    """One loop, ours or a bare one."""

    name: str
    measure: Callable[[], Figures]
    #: What its ratios are to, where that is not what the workload says.
    bases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """Parts that are measured in turn, and which of them the ratios of the others are to."""

    name: str
    says: str
    parts: Callable[[Bench], list[Part]]
    databases: tuple[str, ...] = ("postgresql", "sqlite")
    #: Parts whose best figure the ratios of the others are to. Empty: no ratios.
    bases: tuple[str, ...] = ()


class Bench:
    """A run on one server."""

    def __init__(self, options: Options, server: Server) -> None:
        self.options = options
        self.server = server
        self.on_postgresql = server.vendor == "postgresql"
        self.jobs = options.jobs_on(server.vendor)

    def site(self, name: str = "ours") -> Target:
        """A database with the queue's tables; made at the first call."""
        target, new = self.server.database(name)
        if new:
            call(target, "migrate")
        return target

    def raw(self) -> Target:
        """Where bare loops run: a database of their own; on SQLite the queue's table in a file of its own."""
        return self.server.database("raw")[0] if self.on_postgresql else self.site("raw")

    def counting_site(self) -> Target:
        """A site whose statements are counted, if the server can."""
        target = self.site("counted")
        if isinstance(self.server, PostgreSQLServer):
            self.server.count_statements("counted")
        return target

    def empty(self, target: Target) -> None:
        """No job, and nothing of what was before left to write."""
        with connected(target) as run:
            if self.on_postgresql:
                run("TRUNCATE django_jobqueue_job")
                run("TRUNCATE django_jobqueue_worker")
                run("CHECKPOINT")
            else:
                run("DELETE FROM django_jobqueue_job")
                run("DELETE FROM django_jobqueue_worker")
                run("PRAGMA wal_checkpoint(TRUNCATE)")

    def fill(self, target: Target, jobs: int, job_type: str = "bench:nothing") -> None:
        """So many due jobs through the API, and no other."""
        self.empty(target)
        call(target, "enqueue_many", jobs=jobs, job_type=job_type)
        call(target, "tidy")

    def fill_with_tasks(self, target: Target, jobs: int, name: str) -> None:
        """So many due tasks through Django's API, and no other job."""
        self.empty(target)
        call(target, "enqueue_tasks", jobs=jobs, name=name)
        call(target, "tidy")


@contextmanager
def connected(target: Target) -> Iterator[Callable[..., list[Any]]]:
    """A function that runs a statement there and answers with its rows."""
    if target.vendor == "postgresql":
        with psycopg.connect(target.url, autocommit=True) as connection:

            def run(statement: str, *values: Any) -> list[Any]:
                cursor = connection.execute(statement, values or None)  # type: ignore[call-overload]
                return cursor.fetchall() if cursor.description else []

            yield run
    else:
        with closing(sqlite3.connect(target.path, isolation_level=None, timeout=20)) as file:
            yield lambda statement, *values: file.execute(statement, values).fetchall()


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that is not exceeded by this share of the values."""
    return sorted(values)[max(ceil(share * len(values)) - 1, 0)]


def latencies(seconds: Sequence[float]) -> Figures:
    """In milliseconds."""
    assert seconds, "no job was seen"
    shares = {"p50 ms": 0.5, "p95 ms": 0.95, "p99 ms": 0.99}
    return {name: quantile(seconds, share) * 1_000 for name, share in shares.items()}


def read_stamps(path: Path) -> dict[int, float]:
    """When each stamped job started. One that ran twice is an error of the queue."""
    lines = path.read_text().splitlines() if path.exists() else []
    started = {int(n): float(at) for n, at in map(str.split, lines)}
    assert len(started) == len(lines), f"{len(lines) - len(started)} jobs ran more than once"
    return started
