"""One run: a seed, a database, some faults, so many seconds; and its verdict."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from . import checker, table
from .faults.base import Fault, NotInjected
from .kinds import USUAL
from .ledger import VARIABLE, Ledger
from .world import World

LEASE = 2.0
HOSTS = 2


@dataclass(frozen=True)
class Plan:
    """What to run."""

    database: str
    seed: str
    seconds: float
    faults: Sequence[type[Fault]]
    lease: float = LEASE
    keep: Path | None = None  # where the logs of a run that failed are kept


@dataclass
class Result:
    """What came of it."""

    plan: Plan
    broken: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Without the plan."""
        return {
            "broken": self.broken,
            "figures": dict(self.figures),
            "injected": dict(self.injected),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        plan = self.plan
        figures = ", ".join(f"{count} {what}" for what, count in self.figures.items())
        lines = [f"{plan.database}, seed {plan.seed}: {self.seconds:.0f} s, {figures}"]
        lines += [f"    {count} times {name}" for name, count in self.injected.items()]
        lines += [f"  BROKEN {text}" for text in self.broken]
        return "\n".join(lines)


def run(plan: Plan) -> Result:
    """Do it."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crash-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        result = _Run(plan, folder).run()
        if result.broken and plan.keep is not None:
            _keep(folder, plan.keep / f"{plan.database}-{plan.seed}".replace(" ", "-").replace("/", "-"))
    result.seconds = time.monotonic() - begun
    return result


class _Run:
    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.result = Result(plan)
        self.faults = [kind() for kind in plan.faults]
        self.world = World(folder, plan.database, plan.seed, plan.lease)
        self.world.alone = len(plan.faults) == 1

    def run(self) -> Result:
        """Start, load, break, drain, stop, check."""
        settings: dict[str, str] = {}
        for fault in self.faults:
            settings |= fault.server_settings
        with self.world.up(settings):
            for fault in self.faults:
                fault.prepare(self.world)
            self._set_up()
            self.world.watch_the_machine()
            self._work()
            problems = [self.world.drain(), *self.world.stop_hosts(), *self.world.tracebacks()]
            for fault in self.faults:
                problems += fault.problems(self.world)
            self._check(problems)
        return self.result

    def _set_up(self) -> None:
        """The tables, the load, the workers."""
        os.environ |= {
            "DATABASE_URL": self.world.url,
            "DJANGO_SETTINGS_MODULE": "tests.crash.settings",
            VARIABLE: str(self.world.ledger),
        }
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", run_syncdb=True, verbosity=0)
        table.note_history(self.world.url)
        if not self.world.hosts:
            for _ in range(HOSTS):
                self.world.add_host("--threads", "4", "--exclude-queues", "fifo")
        self.world.add_host("--threads", "1", "--queues", "fifo", processes=1)

        from .load import Load

        kinds = [*USUAL, *(kind for fault in self.faults for kind in fault.kinds())]
        self.world.load = Load(self.world.url, self.plan.seed, kinds, pause=0.05)
        self.world.start_hosts()

    def _work(self) -> None:
        """Load, and in every lane one fault after the other."""
        self.world.load.start()
        lanes: dict[str, list[Fault]] = {}
        for fault in self.faults:
            lanes.setdefault(fault.lane, []).append(fault)
        threads = [
            threading.Thread(target=self._break, args=(lane, faults), name=lane)
            for lane, faults in lanes.items()
        ]
        for thread in threads:
            thread.start()
        if not threads:
            time.sleep(self.plan.seconds)
        for thread in threads:
            thread.join()
        self.world.load.stop()

    def _break(self, lane: str, faults: list[Fault]) -> None:
        random = Random(f"{lane} {self.plan.seed}")  # noqa: S311 - a plan, not a secret
        deadline = time.monotonic() + self.plan.seconds
        time.sleep(0.5)
        while time.monotonic() < deadline or self._has_too_few(faults):
            fault = random.choices(faults, [one.weight for one in faults])[0]
            try:
                self.result.injected[fault.name] += fault.inject(self.world, random) or 1
            except (NotInjected, psycopg.Error, sqlite3.Error):  # another fault was in its way, perhaps
                self.result.figures["not injected"] += 1
            except Exception as error:
                self.result.broken.append(f"the fault {fault.name} broke: {type(error).__name__}: {error}")
                return
            time.sleep(min(random.expovariate(1 / fault.pause), 3 * fault.pause))

    def _has_too_few(self, faults: list[Fault]) -> bool:
        """Of a fault alone so many are asked for that time does not count."""
        return (
            any(self.result.injected[fault.name] < fault.at_least for fault in faults)
            and len(self.faults) == 1
        )

    def _check(self, problems: Sequence[str | None]) -> None:
        try:
            standing = table.read(self.world.url)
        except psycopg.OperationalError as error:  # a fault that broke has left no server
            self.result.broken.append(f"the table cannot be read at the end: {error}")
            return
        seen = checker.Evidence(Ledger.read(self.world.ledger), standing, self.plan.lease)
        verdict = checker.check(seen)
        self.result.broken += [text for text in problems if text] + verdict.broken
        self.result.broken += [
            f"the fault {fault.name} was never injected"
            for fault in self.faults
            if len(self.faults) == 1 and not self.result.injected[fault.name]
        ]
        self.result.figures += verdict.figures
        if self.world.alone and not self.faults[0].repeats and verdict.figures["repeated"]:
            self.result.broken.append(
                f"{verdict.figures['repeated']} jobs were done twice, which this explains not"
            )
        for fault in seen.ledger.faults:
            self.result.figures["machine stalls"] += fault.name == "the machine stood still"


def _keep(folder: Path, place: Path) -> None:
    """Logs and ledger of a run that failed."""
    place.mkdir(parents=True, exist_ok=True)
    for file in [folder / "ledger", *folder.glob("host-*/err"), *folder.glob("*/server.log")]:
        if file.exists():
            target = place / "-".join(file.relative_to(folder).parts)
            target.write_bytes(file.read_bytes())
