"""`python -m tests.crash.rivals`: jobs lost, stuck, doubled when workers are killed or stopped."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random

from tests.benchmarks.rivals.catalogue import RIVALS, Rival
from tests.benchmarks.rivals.environments import python_of, version_of
from tests.benchmarks.rivals.project import PROJECTS, Project
from tests.conftest import ROOT
from tests.postgres import running_cluster
from tests.waiting import eventually, outlast

from ..checker import Evidence, overlaps
from ..ledger import VARIABLE, Ledger
from ..table import Table

HERE = Path(__file__).parent / "projects"
OURS = Rival("django_jobqueue", "django_jobqueue", newer_python=False)
NAMES = ("django_jobqueue", "django-tasks-db", "procrastinate", "django-q2")
#: Seconds without any end of a job after which what is left counts as stuck: four times their own delays.
STALL = 45.0
#: Seconds that a worker gets at SIGTERM; more than any job takes.
GRACE = 20.0


class Besieged(Project):
    """A rival's project with the handler that keeps the ledger."""

    def _environment(self) -> dict[str, str]:
        paths = [str(HERE), str(PROJECTS), str(ROOT)]
        return {
            **super()._environment(),
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONSAFEPATH": "1",  # harness.py stands beside the module that ours replaces
            "DJANGO_SETTINGS_MODULE": "crash_settings",
            VARIABLE: str(self.folder / "ledger"),
        }

    def start_worker(self) -> subprocess.Popen[bytes]:
        """In a group of its own."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._command("worker"),
                env=self._environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ledger(self) -> Ledger:
        """What its handlers noted."""
        return Ledger.read(self.folder / "ledger")


@dataclass
class Siege:
    """A rival, a signal, so many times."""

    rival: Rival
    signal: signal.Signals
    jobs: int
    times: int
    seed: str
    sent: int = 0  # signals, each while jobs were being done

    def run(self, dsn: str) -> Counter[str]:
        """What came of the jobs."""
        python = Path(sys.executable) if self.rival is OURS else python_of(self.rival)
        with tempfile.TemporaryDirectory(prefix="rival-") as folder:
            project = Besieged(self.rival, python, Path(folder), {"RIVAL_CONNINFO": dsn})
            project.step("prepare")
            project.step("fill", self.jobs)
            worker = project.start_worker()
            try:
                worker = self._besiege(project, worker)
                self._settle(project)
                stuck = int(str(project.step("unfinished")))
            finally:
                destroy(worker)
            return self._count(project.ledger(), stuck)

    def _besiege(self, project: Besieged, worker: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        random = Random(f"{self.rival.name} {self.signal} {self.seed}")  # noqa: S311 - a plan
        while self.sent < self.times and self._works(project):
            outlast(random.uniform(0, 0.7))
            self.sent += 1
            if self.signal is signal.SIGKILL:
                destroy(worker)
            else:
                worker.terminate()
                try:
                    worker.wait(GRACE)
                except subprocess.TimeoutExpired:
                    print(f"  {self.rival.name} had not ended {GRACE:.0f} s after SIGTERM")
                destroy(worker)
            worker = project.start_worker()
        return worker

    def _works(self, project: Besieged) -> bool:
        """Wait until some more jobs have started. False: there are none left, or nothing happens."""
        started = len(project.ledger().runs)

        def look() -> str:
            ledger = project.ledger()
            if len({run.n for run in ledger.runs if run.verdict}) == self.jobs:
                return "done"
            return "working" if len(ledger.runs) >= started + 3 else ""

        try:
            return eventually(look, within=STALL, every=0.05) == "working"
        except AssertionError:
            return False

    def _settle(self, project: Besieged) -> None:
        """Until every job has ended, or nothing has for long."""
        seen, since = -1, time.monotonic()

        def over() -> bool:
            nonlocal seen, since
            ended = len({run.n for run in project.ledger().runs if run.verdict})
            if ended != seen:
                seen, since = ended, time.monotonic()
            done = ended == self.jobs and not int(str(project.step("unfinished")))
            return done or time.monotonic() - since >= STALL

        eventually(over, within=inf, every=1)

    def _count(self, ledger: Ledger, stuck: int) -> Counter[str]:
        seen = Evidence(ledger, Table([], [], []), lease=5.0)
        undone = self.jobs - len({run.n for run in ledger.runs if run.verdict})
        times = Counter(run.n for run in ledger.runs if run.verdict)
        return Counter(
            signals=self.sent,
            lost=max(undone - stuck, 0),
            stuck=stuck,
            doubled=sum(bool(list(overlaps(seen, runs, job))) for job, runs in seen.runs.items()),
            repeated=sum(count > 1 for count in times.values()),
        )


def destroy(worker: subprocess.Popen[bytes]) -> None:
    """SIGKILL to its whole group."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def main(arguments: list[str]) -> int:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.rivals", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help=", ".join(NAMES))
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument(
        "--times", type=int, default=8, help="signals at most; fewer if all jobs are done before"
    )
    parser.add_argument("--seed", default="1")
    options = parser.parse_args(arguments)
    print("| queue | signal | jobs | signals | lost | stuck | at once twice | done again |")
    print("|---|---|---|---|---|---|---|---|")
    with running_cluster() as cluster:
        for name in options.names:
            rival = OURS if name == OURS.name else RIVALS[name]
            label = name if rival is OURS else f"{name} {version_of(rival)}"
            for number in (signal.SIGKILL, signal.SIGTERM):
                database = f"siege_{name.replace('-', '_')}_{number.name.lower()}"
                cluster.make_database(database)
                dsn = f"dbname={database} user=postgres host={cluster.folder}"
                came = Siege(rival, number, options.jobs, options.times, options.seed).run(dsn)
                figures = " | ".join(str(came[what]) for what in ("lost", "stuck", "doubled", "repeated"))
                print(
                    f"| {label} | {number.name} | {options.jobs} | {came['signals']} | {figures} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
