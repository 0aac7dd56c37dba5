"""Which runs make up the suite, and running them: each in a process of its own, some at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

from .faults import ALL
from .faults.base import POSTGRESQL, SQLITE

#: Seconds that any run may take before it counts as stuck.
PATIENCE = 900


@dataclass(frozen=True)
class Part:
    """One run."""

    database: str
    seconds: float
    only: tuple[str, ...] = ()  # classes of faults; none: all mixed

    def command(self, seed: str) -> list[str]:
        """What runs it, and runs it again."""
        only = ["--only", *self.only] if self.only else []
        return ["--database", self.database, "--seed", seed, "--seconds", f"{self.seconds:g}", *only]

    def missing(self) -> str | None:
        """What it lacks here."""
        reasons = (one.missing() for one in ALL if one.__name__ in self.only)
        return next((reason for reason in reasons if reason), None)

    def __str__(self) -> str:
        return f"{self.database}: {', '.join(self.only) or 'all mixed'}"


def full() -> Iterable[Part]:
    """Each fault alone on each database that has it; then all mixed."""
    for fault in ALL:
        for database in fault.databases:
            yield Part(database, max(8.0, 4 * fault.pause), (fault.__name__,))
    yield Part(POSTGRESQL, 180)
    yield Part(SQLITE, 120)


def short() -> Iterable[Part]:
    """Of most value: what breaks queues most often, what no other test does, and everything mixed."""
    yield Part(POSTGRESQL, 100)
    yield Part(SQLITE, 60)
    for names in (
        ("LostClaim", "LostOutcome", "BlackHole"),
        ("CutOffHost",),
        ("Failover",),
        ("WrongClocks",),
    ):
        yield Part(POSTGRESQL, 10, names)
    yield Part(SQLITE, 10, ("DiskFull",))


SUITES = {"full": full, "short": short}


@dataclass
class Totals:
    """Of all runs."""

    figures: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)


def run_suite(name: str, seed: str, jobs: int, keep: Path) -> int:
    """Run it; 1 if a promise was broken, or a part was not run although this is CI."""
    begun = time.monotonic()
    totals = Totals()
    parts = list(SUITES[name]())
    for part in parts:
        if missing := part.missing():
            totals.not_run.append(f"{part}: {missing}")
    able = [part for part in parts if not part.missing()]
    with ThreadPoolExecutor(jobs) as pool:
        for part, answer in pool.map(lambda part: (part, one(part, seed, keep)), able):
            _tell(part, seed, answer, totals)
    for line in totals.not_run:
        print(f"not run  {line}")
    print(
        f"\n{len(able)} runs in {time.monotonic() - begun:.0f} s: "
        + ", ".join(
            f"{totals.figures[what]:,} {what}" for what in ("jobs", "runs", "repeated", "lost", "doubled")
        )
        + f", {totals.injected.total():,} faults injected"
    )
    return 1 if totals.failed or (totals.not_run and os.environ.get("CI") == "true") else 0


def one(part: Part, seed: str, keep: Path) -> dict[str, Any]:
    """One run's result, as `Result.as_json` has it."""
    command = [
        sys.executable,
        "-m",
        "tests.crash",
        *part.command(seed),
        "--json",
        "--keep",
        str(keep.resolve()),
    ]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        said = getattr(error, "stderr", "") or (done.stderr if "done" in locals() else "")
        return {
            "broken": [f"no result: {type(error).__name__}: {str(said)[-2_000:]}"],
            "figures": {},
            "injected": {},
        }
    return answer


def _tell(part: Part, seed: str, answer: dict[str, Any], totals: Totals) -> None:
    totals.figures.update(answer["figures"])
    totals.injected.update(answer["injected"])
    injected = ", ".join(f"{count} times {fault}" for fault, count in answer["injected"].items())
    figures = answer["figures"]
    print(
        f"{'FAILED' if answer['broken'] else 'ok'}  {part}: {figures.get('jobs', 0)} jobs, "
        f"{answer.get('seconds', 0):.0f} s; {injected}",
        flush=True,
    )
    if answer["broken"]:
        totals.failed.append(str(part))
        for text in answer["broken"][:20]:
            print(f"    {text if len(text) <= 2_000 else text[:300] + ' … ' + text[-1_700:]}")
        print(f"    again: python -m tests.crash {' '.join(part.command(seed))}", flush=True)
