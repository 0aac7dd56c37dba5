"""The database and the workers of a run, and what faults may do to them."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.conftest import ROOT
from tests.postgres import Cluster
from tests.processes.workers import RunWorker
from tests.waiting import equals

from . import table
from .ledger import VARIABLE, note

#: Seconds between two looks at the machine's own pauses, and how long one must be to be noted.
TICK, STALL = 0.05, 0.4

SERVER = {
    "max_connections": "120",
    "superuser_reserved_connections": "3",
    "deadlock_timeout": "200ms",
    "fsync": "on",
}


@dataclass
class Host:
    """One `runworker`, which is started again when a fault has brought it down."""

    world: World
    number: int
    options: tuple[str, ...]
    processes: int
    env: dict[str, str] = field(default_factory=dict)
    inside: tuple[str, ...] = ()
    worker: RunWorker | None = None
    starts: int = 0
    resting: bool = False  # it has ended, as it was meant to
    logs: list[Path] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> RunWorker:
        """Start it; a folder for each start."""
        folder = self.world.folder / f"host-{self.number}-{self.starts}"
        self.starts += 1
        self.logs.append(folder / "err")
        options = ("--no-reload", "--processes", str(self.processes), *self.world.options, *self.options)
        env = {**self.world.environment(), **self.env}
        self.worker = RunWorker("runworker", options, env, folder, self.inside)
        return self.worker

    @property
    def running(self) -> RunWorker:
        """What runs now."""
        assert self.worker is not None
        return self.worker

    def pids(self) -> list[int]:
        """The worker processes that are there now."""
        return self.running.children


class World:
    """One run's database, ledger and workers."""

    def __init__(self, folder: Path, database: str, seed: str, lease: float) -> None:
        self.folder = folder
        self.database = database
        self.seed = seed
        self.lease = lease
        self.ledger = folder / "ledger"
        self.server: Cluster | None = None
        self.address = ""
        self.hosts: list[Host] = []
        self.options = ("--lease", str(lease), "--poll-interval", "0.2", "--grace", "1.5")
        self.worker_env: dict[str, str] = {}
        self.worker_url: str | None = None  # if it leads through something
        self.url = ""  # as the enqueuing side sees the database
        self.load: Any = None
        self.alone = False  # one fault only
        self.patience = 60.0  # seconds in which all that is left must be done after the last fault
        self.extras: dict[str, Any] = {}  # what faults of one kind share
        self._closing: list[Any] = []
        self._watching = threading.Event()

    # The database.

    @contextmanager
    def up(self, settings: Mapping[str, str]) -> Iterator[World]:
        """A new, empty database; gone afterwards, with everything that faults have added."""
        if self.database == "sqlite":
            self.url = f"sqlite:///{self.folder / 'queue.sqlite3'}"
        else:
            place = self.folder / "server"
            place.mkdir(mode=0o755)
            self.address = (
                f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}.{secrets.randbelow(250) + 1}"
            )
            self.server = Cluster(place, {**SERVER, "listen_addresses": self.address, **settings})
            self.server.create()
            self._trust_everybody(self.server)
            self.server.start()
            self.url = self.server.url("postgres")
        try:
            yield self
        finally:
            self._watching.set()
            for host in self.hosts:
                if host.worker is not None:
                    with suppress(Exception):
                        host.worker.destroy()
            for close in reversed(self._closing):
                with suppress(Exception):
                    close()
            if self.server is not None:
                self.server.stop()

    def at_end(self, close: Any) -> None:
        """Call this when the run is over, whatever has happened."""
        self._closing.append(close)

    @staticmethod
    def _trust_everybody(server: Cluster) -> None:
        with (server.data / "pg_hba.conf").open("a") as file:
            file.write("host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n")

    @property
    def tcp_url(self) -> str:
        """The server by TCP, as a URL."""
        return f"postgresql://postgres@{self.address}:5432/postgres?sslmode=disable&gssencmode=disable"

    def listen_on(self, address: str) -> None:
        """Let the server listen there too."""
        assert self.server is not None
        self.server.stop()
        with (self.server.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"listen_addresses = '{self.address},{address}'\n")
        self.server.start()

    def bare(self, **options: Any) -> psycopg.Connection:
        """A connection of a fault, past everything."""
        assert self.server is not None
        return psycopg.connect(self.server.url("postgres"), autocommit=True, connect_timeout=5, **options)

    def environment(self) -> dict[str, str]:
        """Of a worker."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return {
            **os.environ,
            "DATABASE_URL": self.worker_url or self.url,
            "DJANGO_SETTINGS_MODULE": "tests.crash.settings",
            "PYTHONPATH": path,
            "PYTHONUNBUFFERED": "1",
            VARIABLE: str(self.ledger),
            **self.worker_env,
        }

    # The workers.

    def add_host(self, *options: str, processes: int | None = None, **more: Any) -> Host:
        """One more `runworker`, started with the others; a small one where faults are mixed."""
        host = Host(self, len(self.hosts), options, processes or (2 if self.alone else 1), **more)
        self.hosts.append(host)
        return host

    def busy_hosts(self) -> list[Host]:
        """Those that serve the usual load."""
        return [host for host in self.hosts if "--queues" not in host.options]

    def start_hosts(self) -> None:
        """Start all, and wait until they are there."""
        for host in self.hosts:
            host.start()
        for host in self.hosts:
            host.running.ready(host.processes, within=60)

    def stop_hosts(self) -> list[str]:
        """SIGTERM to all; what was wrong with that."""
        problems = []
        hosts = [host for host in self.hosts if not host.resting]
        for host in hosts:
            if (code := host.running.process.poll()) is not None:
                problems.append(f"host {host.number} had ended by itself with {code}")
            else:
                host.running.process.terminate()
        for host in hosts:
            try:
                code = host.running.wait(30)
            except AssertionError:
                problems.append(f"host {host.number} did not end within 30 s of SIGTERM")
            else:
                problems += [f"host {host.number} ended with {code} at SIGTERM"] if code else []
            try:
                equals([], host.running.members, within=5)
            except AssertionError:
                problems.append(f"host {host.number} left processes behind: {host.running.members()}")
        return problems

    def tracebacks(self) -> list[str]:
        """What no log of a worker should have."""
        found = []
        for host in self.hosts:
            for log in host.logs:
                lines = log.read_text(errors="replace").splitlines() if log.exists() else []
                found += [
                    f"host {host.number} logged a traceback: {' | '.join(lines[max(at - 1, 0) : at + 25])}"
                    for at, line in enumerate(lines)
                    if line.startswith("Traceback")
                ][:2]
        return found

    # Facts for the checker.

    def note_fault(
        self,
        name: str,
        since: float,
        *,
        pids: Sequence[int] | None = None,
        suspends: bool = False,
        kills: bool = False,
        locks: bool = False,
        until: float | None = None,
    ) -> None:
        """Write down that something was broken from ``since`` to now, for these processes or for all."""
        end = time.monotonic() if until is None else until
        note(
            "fault", name=name, since=since, until=end, pids=pids, suspends=suspends, kills=kills, locks=locks
        )

    def watch_the_machine(self) -> None:
        """Note when the machine itself stood still: leases may have run out without any fault of ours."""

        def watch() -> None:
            before = time.monotonic()
            while not self._watching.wait(TICK):
                now = time.monotonic()
                if now - before > STALL:
                    self.note_fault("the machine stood still", before, suspends=True, until=now)
                before = now

        threading.Thread(target=watch, name="machine", daemon=True).start()

    def drain(self) -> str | None:
        """Wait until nothing is left to do; what is left if that takes too long."""
        deadline = time.monotonic() + self.patience
        left = -1
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):  # crowded, or not quite back
                left = table.unfinished(self.url)
            if left == 0:
                return None
            time.sleep(0.2)
        return f"stuck: {left} jobs were still pending or running {self.patience:.0f} s after the last fault"
