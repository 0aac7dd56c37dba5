"""What handlers note of their runs: lines in a file, each whole even if the process is killed next."""

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

#: Where the handlers of this process, and of those started by it, find the file.
VARIABLE = "JOBQUEUE_TEST_LEDGER"


def note(event: str, **facts: Any) -> None:
    """Append a line. The clock is the system's monotonic one, which processes share."""
    line = json.dumps({"event": event, "pid": os.getpid(), "at": time.monotonic(), **facts}) + "\n"
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


@contextmanager
def noted(context: Any, **facts: Any) -> Iterator[None]:
    """A run: its start, and its end if it comes to one."""
    run = {"job": str(context.job.id), "fence": context.job.fence}
    note("start", **run, attempt=context.attempt, **facts)
    yield
    note("end", **run)


@dataclass
class Run:
    """One start of a handler. ``end`` is infinite while there is none."""

    job: str
    fence: int
    pid: int
    start: float
    end: float = inf
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.end < inf


class Ledger:
    """Reads what was noted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def events(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["event"] == event]

    def runs(self, job: Any = None) -> list[Run]:
        """Every run (of one job), by start."""
        runs: dict[tuple[str, int], Run] = {}
        for line in self.lines():
            if "job" not in line or (job is not None and line["job"] != str(job.pk)):
                continue
            key = line["job"], line["fence"]
            if line["event"] == "start":
                assert key not in runs, f"one claim started its handler twice: {line}"
                runs[key] = Run(*key, line["pid"], line["at"], facts=line)
            elif line["event"] == "end":
                runs[key].end = line["at"]
        return sorted(runs.values(), key=lambda run: run.start)

    def ends(self) -> int:
        return len(self.events("end"))

    def starts(self) -> int:
        return len(self.events("start"))

    def pids(self) -> set[int]:
        return {run.pid for run in self.runs()}

    def times_run(self) -> Counter[str]:
        return Counter(run.job for run in self.runs())


def overlaps(
    runs: list[Run], *, by: str = "job", cut: dict[int, float] | None = None
) -> list[tuple[Run, Run]]:
    """Pairs of runs of one job (or of one other fact) of which the second began before the first ended.

    ``cut``: when processes were killed, by pid; a run of theirs without an end ended then.
    """
    groups: dict[Any, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.start):
        groups[run.facts[by]].append(run)
    found = []
    for group in groups.values():
        for first, second in pairwise(group):
            end = first.end if first.ended else (cut or {}).get(first.pid, inf)
            if second.start < end:
                found.append((first, second))
    return found
