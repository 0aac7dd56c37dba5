"""Time limits and cancel: handlers are interrupted, and those that do not end are told of."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from uuid import UUID

from .. import interrupts, logs, registry
from ..attempts import Attempt
from ..exceptions import JobCancelled, JobInterrupted
from .holdings import Holdings
from .options import WorkerOptions
from .service import Service

#: Seconds between two looks at what runs.
TICK = 0.2


class Limits(Service):
    """Looks at running handlers, so that a job that is short pays nothing.

    When its time is over a handler is interrupted; when it was asked to stop too, but one that can see that
    by its context gets a grace first. What has not ended a grace later is ``stuck``.
    """

    def __init__(
        self, options: WorkerOptions, holdings: Holdings, remedy: str, on_death: Callable[[str], None]
    ) -> None:
        super().__init__("limits", on_death)
        self.stuck: frozenset[UUID] = frozenset()  # jobs that Python cannot end
        self._grace = options.interrupt_grace
        self._holdings = holdings
        self._remedy = remedy  # what is done about those
        self._asked: dict[Attempt, float] = {}  # to stop: when that was first seen

    def run(self) -> None:
        """Look, wait, look."""
        while not self.stopping.wait(TICK):
            self.look()

    def look(self) -> None:
        """See to every handler that runs."""
        now = time.monotonic()
        running = [one for one in self._holdings.attempts() if one.started is not None and not one.ended]
        self._asked = {one: self._asked.get(one, now) for one in running if one.cancelled or one.lost}
        for attempt in running:
            over, stop = self._over_at(attempt), self._stop_at(attempt)
            if now >= min(over, stop):
                cause = attempt.out_of_time() if over <= stop else _cancel(attempt)
                self._end(attempt, cause, min(over, stop))
        self.stuck &= {one.job.id for one in running}

    def _over_at(self, attempt: Attempt) -> float:
        """When its time is over. That of an isolated job begins later, and is seen to by its thread."""
        if attempt.limit is None or attempt.started is None or attempt.isolated:
            return math.inf
        return attempt.started + attempt.limit

    def _stop_at(self, attempt: Attempt) -> float:
        """When it is to be ended because it was asked to stop: at once if it cannot see that it was."""
        asked = self._asked.get(attempt)
        if asked is None:
            return math.inf
        job_type = registry.find(attempt.job.job_type)
        return asked + self._grace if job_type is not None and job_type.takes_context else asked

    def _end(self, attempt: Attempt, cause: JobInterrupted, due: float) -> None:
        """Interrupt it, or note that this was of no use."""
        if attempt.interruption is None and interrupts.interrupt(attempt, cause):
            logs.interrupted(attempt.job, cause)
        since = due if attempt.interruption is None else attempt.interruption.at
        if attempt.isolated:
            return  # its own process is ended, by the thread that waits for it
        if time.monotonic() >= since + self._grace and attempt.job.id not in self.stuck:
            self.stuck |= {attempt.job.id}
            logs.not_ended(attempt.job, self._grace, self._remedy)


def _cancel(attempt: Attempt) -> JobInterrupted:
    return JobCancelled("it was asked to stop" if attempt.cancelled else "its claim was lost")
