"""What workers counted over the last hour, day or week: it outlives the jobs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from ..databases.clock import DatabaseAgo
from ..managers.tallies import Tally, bounds_of
from ..models import Statistic
from .figures import Point, Times

#: Rows that are read at the most: a week of a hundred queues.
ROWS = 20_000


@dataclass(frozen=True)
class Period:
    """How far to look back, and in which steps."""

    name: str
    label: Any
    span: int  # seconds of a step
    steps: int

    @property
    def length(self) -> timedelta:
        """All steps."""
        return timedelta(seconds=self.span * self.steps)


PERIODS = {
    one.name: one
    for one in (
        Period("hour", _("Hour"), 60, 60),
        Period("day", _("Day"), 600, 144),
        Period("week", _("Week"), 3_600, 168),
    )
}


class History:
    """The figures of a period."""

    def __init__(self, period: Period, rows: Iterable[tuple[Any, ...]]) -> None:
        self.period = period
        self._rows = list(rows)
        self.by_queue: dict[str, Tally] = defaultdict(Tally)
        self._by_step: dict[int, Tally] = defaultdict(Tally)
        for start, queue, *values in self._rows:
            tally = Tally(*values)
            self.by_queue[queue].add(tally)
            self._by_step[self._step(start)].add(tally)

    def of(self, queue: str) -> History:
        """The figures of one queue."""
        return History(self.period, [row for row in self._rows if row[1] == queue])

    def _step(self, at: datetime) -> int:
        return int(at.timestamp()) // self.period.span

    @property
    def is_empty(self) -> bool:
        """Whether nothing ended."""
        return not self._by_step

    @property
    def minutes(self) -> float:
        """How much time the figures are of: from the first step in which something ended, to now."""
        if self.is_empty:
            return 1.0
        begun = min(self._by_step) * self.period.span
        return max((timezone.now().timestamp() - begun) / 60, 1.0)

    @cached_property
    def points(self) -> list[Point]:
        """One for each step, the last of them being the present one."""
        last = max([self._step(timezone.now()), *self._by_step])
        steps = range(last - self.period.steps + 1, last + 1)
        return [self._point(step) for step in steps]

    def _point(self, step: int) -> Point:
        start = datetime.fromtimestamp(step * self.period.span, timezone.get_current_timezone())
        tally = self._by_step.get(step)
        if tally is None:
            return Point(start)
        return Point(start, tally.done, tally.failed, tally.dead, waiting(tally))


def look_back(period: Period, alias: str) -> History:
    """What ended in the period. One query, by primary key."""
    since = DatabaseAgo(period.length - timedelta(seconds=period.span))
    found = Statistic.objects.db_manager(alias).filter(span=period.span, start__gte=since)
    columns = ("start", "queue", "done", "failed", "dead", "waited", "ran", "waits", "runs")
    return History(period, found.order_by("-start").values_list(*columns)[:ROWS])


def waiting(tally: Tally) -> Times:
    """From due to the start of the handler."""
    return _times(tally.waited, tally.waits)


def taking(tally: Tally) -> Times:
    """From the start of the handler to its end."""
    return _times(tally.ran, tally.runs)


def _times(total: float, histogram: Sequence[int]) -> Times:
    count = sum(histogram)
    return Times(total / count, quantile(histogram, 0.95)) if count else Times()


def quantile(histogram: Sequence[int], share: float) -> float:
    """What this share of the values does not exceed, worked out within the bucket: each is twice as wide."""
    wanted = share * sum(histogram)
    below = 0
    for bucket, count in enumerate(histogram):
        if count and below + count >= wanted:
            low, high = bounds_of(bucket)
            part = (wanted - below) / count
            return float(high * part if low == 0 else low * math.pow(high / low, part))
        below += count
    return 0.0
