"""Counts what ends here, and adds it to everybody's figures about twice a minute: nothing for each job."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence

from django.db import DataError, IntegrityError

from .. import logs
from ..attempts import Attempt
from ..managers import Settlement, Tally
from ..managers.outcomes import Done, Failed, Outcome
from ..models import Statistic
from ..states import JobStatus

#: Seconds between two additions.
INTERVAL = 30.0
#: Seconds: the least that a time counts for. Clocks may say less than nothing.
INSTANT = 1e-9

_COUNTED = (Done, Failed)


class Tallying:
    """The figures of one worker since it last added them. Used by one thread, but for ``settled_itself``."""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._tallies: dict[str, Tally] = {}
        self._elsewhere: deque[Attempt] = deque()
        self._add_at = time.monotonic() + random.uniform(0.2, 1) * INTERVAL  # noqa: S311 - spread

    def settled_itself(self, attempt: Attempt) -> None:
        """This attempt wrote its own outcome, in the transaction of its handler: it is done."""
        self._elsewhere.append(attempt)

    def count(self, batch: Sequence[tuple[Attempt, Outcome]], settlement: Settlement) -> None:
        """These outcomes were written."""
        attempts = {id(outcome): attempt for attempt, outcome in batch}
        times: dict[str, tuple[list[float], list[float]]] = {}
        for outcome, status in settlement.accepted:
            started = outcome.started
            if started is None or not isinstance(outcome, _COUNTED):
                continue
            attempt = attempts[id(outcome)]
            job = attempt.job
            queue = job.queue
            if queue not in times:
                times[queue] = ([], [])
            waits, runs = times[queue]
            waits.append(job.waited + started)
            runs.append(attempt.ran)
            if status is not JobStatus.DONE:
                tally = self._tally(queue)
                tally.failed += 1
                tally.done -= 1
                tally.dead += status is JobStatus.DEAD
        for queue, (waits, runs) in times.items():
            tally = self._tally(queue)
            tally.done += len(waits)
            tally.took_each([max(one, INSTANT) for one in waits], [max(one, INSTANT) for one in runs])

    def is_due(self, now: float) -> bool:
        """Whether it is time to add, and there is something."""
        return now >= self._add_at and bool(self._tallies or self._elsewhere)

    def add(self) -> None:
        """Add what there is to the table. What the database refuses for good is dropped."""
        while self._elsewhere:
            attempt = self._elsewhere.popleft()
            tally = self._tally(attempt.job.queue)
            tally.took(max(attempt.job.waited + (attempt.since_claim() or 0.0), 0.0), attempt.ran)
            tally.done += 1
        if not self._tallies:
            return
        try:
            Statistic.objects.db_manager(self._alias).add(self._tallies.items())
        except (DataError, IntegrityError) as error:
            logs.figures_refused(error)
        self._tallies = {}
        self._add_at = time.monotonic() + INTERVAL

    def _tally(self, queue: str) -> Tally:
        tally = self._tallies.get(queue)
        if tally is None:
            tally = self._tallies[queue] = Tally()
        return tally
