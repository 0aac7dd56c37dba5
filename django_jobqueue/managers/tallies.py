"""Figures by the minute: what workers counted, added to the rows of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from math import frexp
from operator import itemgetter

from django.db import connections

from ..databases import database_for
from ..databases.clock import DatabaseAgo
from .base import QueueAliasManager

#: Seconds that a row spans, and how long it is kept: an hour, a day and a week each take few rows to draw.
SPANS = {
    60: timedelta(days=1),
    600: timedelta(days=8),
    3_600: timedelta(days=90),
}

#: Counts of a histogram: below 1/1024 s, then each twice as far as the one before; the last has no end.
BUCKETS = 28
_FIRST = 10


def bucket_of(seconds: float) -> int:
    """Which count of a histogram so many seconds belong to."""
    return min(max(frexp(seconds)[1] + _FIRST, 0), BUCKETS - 1) if seconds > 0 else 0


def bounds_of(bucket: int) -> tuple[float, float]:
    """From how many seconds, and below how many. The last is taken for as wide as the others."""
    return (0.0 if bucket == 0 else 2.0 ** (bucket - _FIRST - 1)), 2.0 ** (bucket - _FIRST)


@dataclass(slots=True)
class Tally:
    """Attempts of one queue that ended since the last time its figures were added."""

    done: int = 0
    failed: int = 0
    dead: int = 0
    waited: float = 0.0
    ran: float = 0.0
    waits: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    runs: list[int] = field(default_factory=lambda: [0] * BUCKETS)

    def took(self, waited: float, ran: float) -> None:
        """One attempt waited and ran for so many seconds."""
        self.waited += waited
        self.ran += ran
        self.waits[bucket_of(waited)] += 1
        self.runs[bucket_of(ran)] += 1

    def took_each(self, waited: list[float], ran: list[float]) -> None:
        """``took`` for many: by what runs without a step of Python for each."""
        self.waited += sum(waited)
        self.ran += sum(ran)
        for histogram, values in ((self.waits, waited), (self.runs, ran)):
            for exponent, count in Counter(map(itemgetter(1), map(frexp, values))).items():
                histogram[min(max(exponent + _FIRST, 0), BUCKETS - 1)] += count

    def add(self, other: Tally) -> None:
        """These too."""
        self.done += other.done
        self.failed += other.failed
        self.dead += other.dead
        self.waited += other.waited
        self.ran += other.ran
        self.waits = [a + b for a, b in zip(self.waits, other.waits, strict=True)]
        self.runs = [a + b for a, b in zip(self.runs, other.runs, strict=True)]


class StatisticManager(QueueAliasManager):
    """``Statistic.objects``: adding, and leaving."""

    def add(self, tallies: Iterable[tuple[str, Tally]]) -> None:
        """Add what was counted of each queue to the present minute and the longer spans; one statement."""
        rows = [
            (
                span, queue, tally.done, tally.failed, tally.dead, tally.waited, tally.ran,
                str(tally.waits), str(tally.runs),
            )
            for queue, tally in tallies
            for span in SPANS
        ]  # fmt: skip
        if rows:
            database_for(self.db).add_figures(connections[self.db], rows)

    def prune(self) -> None:
        """Remove the rows that are older than ``SPANS`` says."""
        for span, kept in SPANS.items():
            self.get_queryset().filter(span=span, start__lt=DatabaseAgo(kept)).delete()
