"""What there is to know of queues and workers. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.utils import formats

#: A worker whose claiming loop is late by so much (seconds) stands still.
STANDS_STILL = 30.0


class Count(NamedTuple):
    """A number of jobs; capped: so many, or more."""

    number: int
    is_capped: bool = False

    def __str__(self) -> str:
        text = formats.number_format(self.number, force_grouping=True)
        return f"{text}+" if self.is_capped else text

    def __bool__(self) -> bool:
        return self.number > 0

    def plus(self, other: Count) -> Count:
        """Both together."""
        return Count(self.number + other.number, self.is_capped or other.is_capped)

    def less(self, other: Count) -> Count:
        """This without that; of two capped numbers nothing is known but that it is not negative."""
        return Count(max(self.number - other.number, 0), self.is_capped)


ZERO = Count(0)


class Times(NamedTuple):
    """How long something took: the mean, and what 95 of 100 do not exceed. None: nothing ended."""

    mean: float | None = None
    p95: float | None = None


UNKNOWN = Times()


class RunningJob(NamedTuple):
    """A job that a worker holds, and for how long."""

    id: UUID
    job_type: str
    queue: str
    seconds: float


@dataclass
class QueueFigures:
    """One queue."""

    name: str
    paused: bool = False
    retention: timedelta | None = None
    pending: Count = ZERO
    due: Count = ZERO
    running: Count = ZERO
    dead: Count = ZERO
    dead_lately: int = 0  # within the last hour
    dead_before: int = 0  # within the hour before
    oldest: float | None = None  # how long the first due job has been due
    done_per_minute: float = 0.0
    failed: int = 0  # attempts, in the period
    waiting: Times = UNKNOWN
    taking: Times = UNKNOWN
    workers: int = 0

    @property
    def scheduled(self) -> Count:
        """Pending, and not yet due."""
        return self.pending.less(self.due)


@dataclass
class WorkerFigures:
    """One worker process."""

    id: str
    host: str
    pid: int
    queues: list[str] | None  # None: all
    exclude_queues: list[str]
    capacity: int
    version: str
    up: float  # since its start
    silent: float  # since its last beat
    late: float | None  # since its loop had to come round, at its last beat
    asked_to_stop: bool
    lease: float
    held: int = 0
    jobs: list[RunningJob] = field(default_factory=list)  # the oldest few

    @property
    def is_living(self) -> bool:
        """Whether it was heard of within a lease."""
        return self.silent <= self.lease

    @property
    def stands_still(self) -> bool:
        """Whether its process lives and its claiming loop does not come round."""
        return self.is_living and self.late is not None and self.late > STANDS_STILL

    def serves(self, queue: str) -> bool:
        """Whether it takes jobs of this queue now."""
        if not self.is_living or self.asked_to_stop or self.stands_still:
            return False
        return (self.queues is None or queue in self.queues) and queue not in self.exclude_queues


@dataclass
class Point:
    """What ended in one span of time."""

    start: datetime
    done: int = 0
    failed: int = 0
    dead: int = 0
    waiting: Times = UNKNOWN


@dataclass
class Overview:
    """All queues and workers at one moment."""

    queues: list[QueueFigures]
    workers: list[WorkerFigures]
    more_queues: int = 0  # that are not among them
    more_workers: bool = False

    @property
    def total(self) -> QueueFigures:
        """All queues together; the oldest job of all."""
        total = QueueFigures("")
        for queue in self.queues:
            for name in ("pending", "due", "running", "dead"):
                setattr(total, name, getattr(total, name).plus(getattr(queue, name)))
            total.done_per_minute += queue.done_per_minute
            total.failed += queue.failed
        total.oldest = max((one.oldest for one in self.queues if one.oldest is not None), default=None)
        return total

    @property
    def living(self) -> list[WorkerFigures]:
        """The workers that are there."""
        return [one for one in self.workers if one.is_living]
