"""What was measured: every figure of every repeat, medians, and ratios to the bare loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from .bench import BEST, JOBS_PER_SECOND, Figures

#: What a ratio says something of; how many claims there were, say, is no better or worse.
COMPARED = (JOBS_PER_SECOND, BEST, "p50 ms", "p95 ms", "p99 ms", "statements/job")


class Key(NamedTuple):
    """Which figure."""

    database: str
    workload: str
    part: str
    figure: str


class Failure(NamedTuple):
    """Which part could not be measured, and why."""

    database: str
    workload: str
    part: str
    error: str


@dataclass
class Results:
    """Of one run."""

    repeats: dict[Key, list[float]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    bases: dict[tuple[str, str, str], Sequence[str]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, database: str, workload: str, part: str, figures: Figures) -> None:
        """The figures of one repeat."""
        for name, value in figures.items():
            self.repeats.setdefault(Key(database, workload, part, name), []).append(value)

    def median(self, key: Key) -> float | None:
        """Of all repeats; None if there was none."""
        values = self.repeats.get(key)
        return median(values) if values else None

    def base_of(self, key: Key) -> Key | None:
        """What the ratio is to: the best of the workload's bases for this figure."""
        if key.figure not in COMPARED:
            return None
        names = self.bases.get((key.database, key.workload, key.part), ())
        there = [key._replace(part=name) for name in names if key._replace(part=name) in self.repeats]
        best = max if key.figure == JOBS_PER_SECOND else min
        return best(there, key=lambda one: self.median(one) or 0.0, default=None)

    def ratio(self, key: Key) -> float | None:
        """Median over the base's median."""
        base = self.base_of(key)
        value, other = self.median(key), self.median(base) if base else None
        return value / other if value is not None and other else None

    def as_json(self) -> dict[str, Any]:
        """Everything, for a file."""
        return {
            **self.facts,
            "figures": [self._figure(key) for key in self.repeats],
            "failures": [failure._asdict() for failure in self.failures],
        }

    def _figure(self, key: Key) -> dict[str, Any]:
        base = self.base_of(key)
        return {
            **key._asdict(),
            "median": self.median(key),
            "repeats": self.repeats[key],
            "base": base.part if base else None,
            "ratio": self.ratio(key),
        }

    def workloads(self) -> Iterator[tuple[str, str]]:
        """(database, workload) in the order in which they ran."""
        yield from dict.fromkeys(
            [(key.database, key.workload) for key in self.repeats]
            + [(failure.database, failure.workload) for failure in self.failures]
        )
