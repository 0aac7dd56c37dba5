"""Who ran what from when to when, written by the handlers themselves and kept outside of the queue.

A line is whole even if its process is killed next. The clock is the system's monotonic one, which all
processes share and which libfaketime leaves alone. The worker is told by its process id.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.jobsapp.ledger import VARIABLE, note

__all__ = ["OK", "VARIABLE", "Enqueued", "Fault", "Ledger", "Run", "note", "recorded", "sleep"]

#: Verdict of a run whose handler returned.
OK = "ok"
#: Seconds between two signs of life of a handler that takes its time.
PULSE = 0.1


@contextmanager
def recorded(context: Any, n: int) -> Iterator[None]:
    """One run of a handler: its start, and its end with what came of it."""
    job = {"job": str(context.job.id), "fence": context.job.fence}
    note("start", **job, n=n, attempt=context.attempt, type=context.job.job_type, lock=context.job.lock_key)
    try:
        yield
    except BaseException as error:
        note("end", **job, verdict=type(error).__name__)
        raise
    note("end", **job, verdict=OK)


def sleep(context: Any, seconds: float) -> None:
    """Take so long, with signs of life: a run without an end lasted at least until the last of them."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(PULSE, left))
        alive(context)


def alive(context: Any) -> None:
    """A sign of life."""
    note("alive", job=str(context.job.id), fence=context.job.fence)


@dataclass
class Run:
    """One start of a handler, until its end or its last sign of life."""

    job: str
    fence: int
    n: int
    pid: int
    attempt: int
    type: str
    lock: str | None
    start: float
    end: float
    verdict: str | None = None  # None: cut off


@dataclass
class Enqueued:
    """One job as the one who enqueued it knows it."""

    n: int
    fate: str  # "committed", "rolled back", "unknown"
    expected: list[str]  # names of the states in which it may end
    queue: str
    type: str


@dataclass
class Fault:
    """Something was broken, from when to when."""

    name: str
    since: float
    until: float
    pids: list[int] | None  # whom it hit; None: everybody
    suspends: bool  # they could not renew their leases meanwhile, so jobs may have been taken from them
    kills: bool  # running jobs may be cut off by it, or their outcome lost
    locks: bool = False  # it held rows, which claims pass over


@dataclass
class Ledger:
    """All that was noted."""

    runs: list[Run] = field(default_factory=list)  # by start
    enqueued: dict[int, Enqueued] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)  # claims that started their handler more than once

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Read the file, while others may be writing to it: up to the last whole line."""
        ledger = cls()
        runs: dict[tuple[str, int], Run] = {}
        text = path.read_text() if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        for line in map(json.loads, lines):
            if "job" in line:
                ledger._note_run(line, runs)
            elif line["event"] == "enqueue":
                ledger.enqueued[line["n"]] = Enqueued(**_fields(Enqueued, line))
            elif line["event"] == "fault":
                ledger.faults.append(Fault(**_fields(Fault, line)))
        ledger.runs = sorted(runs.values(), key=lambda run: run.start)
        return ledger

    def _note_run(self, line: dict[str, Any], runs: dict[tuple[str, int], Run]) -> None:
        key = line["job"], line["fence"]
        if line["event"] == "start":
            if key in runs:
                self.twice.append(f"job {key[0]} was started twice with fence {key[1]}")
            runs[key] = Run(**_fields(Run, {**line, "start": line["at"], "end": line["at"]}))
        elif key in runs:
            runs[key].end = max(runs[key].end, line["at"])
            runs[key].verdict = line.get("verdict", runs[key].verdict)

    def by_job(self) -> dict[str, list[Run]]:
        """Runs of each job, by start."""
        found: dict[str, list[Run]] = defaultdict(list)
        for run in self.runs:
            found[run.job].append(run)
        return found


def _fields(kind: Any, line: dict[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in kind.__dataclass_fields__ if name in line}
