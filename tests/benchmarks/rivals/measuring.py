"""The measurement of one rival: fill, drain, single jobs for an idle worker, drain under a held snapshot."""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from .catalogue import Rival
from .environments import python_of
from .project import Project
from .redis import running_redis

# A drain that lasts about this long says enough; how many jobs that is, a first short drain tells.
DRAIN_SECONDS = 12
CALIBRATION_JOBS = 2_000
PINGS = 100
PING_SECONDS = 20

Samples = dict[str, list[float]]


def measure(rival: Rival, *, dsn: str, jobs: int, repeats: int) -> dict[str, float]:
    python = python_of(rival)
    figures: dict[str, float] = {}
    if rival.postgresql:
        figures |= Measurement(rival, python, dsn, "postgresql").run(jobs, repeats)
    if rival.redis:
        figures |= Measurement(rival, python, dsn, "redis").run(jobs, repeats)
    if rival.sqlite:
        on_sqlite = Measurement(rival, python, dsn, "sqlite").run(jobs, repeats)
        figures |= {f"sqlite_{name}": figure for name, figure in on_sqlite.items()}
    return figures


class Measurement:
    """One rival on one kind of store."""

    def __init__(self, rival: Rival, python: Path, dsn: str, store: str) -> None:
        self.rival = rival
        self.python = python
        self.dsn = dsn
        self.store = store

    def run(self, jobs: int, repeats: int) -> dict[str, float]:
        jobs = self._as_many_as_fit(jobs)
        samples: Samples = defaultdict(list)
        latencies: list[float] = []
        for _ in range(repeats):
            latencies += self._drain(jobs, samples)
            if self.store == "postgresql":
                self._drain_under_a_snapshot(jobs, samples)
        figures = {name: median(values) for name, values in samples.items()}
        return figures | _percentiles(latencies) | {"jobs": jobs}

    def _as_many_as_fit(self, jobs: int) -> int:
        if jobs <= CALIBRATION_JOBS:
            return jobs
        with self._project() as project:
            project.step("fill", CALIBRATION_JOBS)
            with project.worker() as worker:
                rate = _rate(worker.drained(CALIBRATION_JOBS))
        return min(jobs, max(CALIBRATION_JOBS, int(rate * DRAIN_SECONDS)))

    def _drain(self, jobs: int, samples: Samples) -> list[float]:
        """Adds the rates of filling and draining to the samples; the latencies are returned."""
        with self._project() as project:
            filled: Any = project.step("fill", jobs)
            for name, rate in filled.items():
                samples[name].append(rate)
            with project.worker() as worker:
                samples["drain_per_second"].append(_rate(worker.drained(jobs)))
                pings: Any = project.step(
                    "ping", project.stamps, jobs, PINGS, PING_SECONDS, self.rival.poll_seconds
                )
                return list(pings)

    def _drain_under_a_snapshot(self, jobs: int, samples: Samples) -> None:
        with self._project() as project:
            project.step("fill", jobs)
            with psycopg.connect(project.environment["RIVAL_CONNINFO"]) as other:
                other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                other.execute("SELECT 1")  # the snapshot is taken by the first statement
                with project.worker() as worker:
                    times = worker.drained(jobs)
        tenth = max(2, jobs // 10)
        first, last = _rate(times[:tenth]), _rate(times[-tenth:])
        samples["held_snapshot_ratio"].append(last / first)
        samples["held_snapshot_last_per_second"].append(last)

    @contextmanager
    def _project(self) -> Iterator[Project]:
        """A project whose queue is new and empty, gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="rival-") as folder, self._place(Path(folder)) as environment:
            project = Project(self.rival, self.python, Path(folder), environment)
            project.step("prepare")
            yield project

    @contextmanager
    def _place(self, folder: Path) -> Iterator[dict[str, str]]:
        if self.store == "sqlite":
            yield {"RIVAL_SQLITE": str(folder / "queue.sqlite3")}
            return
        if self.store == "redis":
            with running_redis(folder) as socket:
                if not socket:
                    print(f"{self.rival.name}: no Redis to be had, so measured on files", file=sys.stderr)
                yield {"RIVAL_REDIS": socket or ""}
            return
        with _database(self.dsn, "rival_" + self.rival.name.replace("-", "_")) as conninfo:
            yield {"RIVAL_CONNINFO": conninfo}


@contextmanager
def _database(dsn: str, name: str) -> Iterator[str]:
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield make_conninfo(dsn, dbname=name)
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _rate(times: list[float]) -> float:
    """Jobs a second from the first one's start to the last one's; start-up is not counted."""
    return (len(times) - 1) / max(times[-1] - times[0], 1e-9)


def _percentiles(milliseconds: list[float]) -> dict[str, float]:
    cuts = quantiles(milliseconds, n=100, method="inclusive")
    return {f"latency_p{percent}_ms": cuts[percent - 1] for percent in (50, 95, 99)}
