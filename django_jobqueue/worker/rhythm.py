"""How long the poller waits between two looks, and whether it asks before it claims."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable

from ..databases.waking import NOTIFY_INTERVAL
from .options import WorkerOptions
from .turns import Turns
from .wakeup import Wakeup

#: Seconds between looks right after a sign of work, as long as it is not known that new jobs are heard of.
SHORT_STEP = 0.05
#: After a look that found nothing, so many poll intervals to the next.
RELAXED = 5
#: Seconds: never less to the time of a job that is to come.
LEAST = 0.002


class Rhythm:
    """An idle worker that hears of new jobs looks seldom, and then only asks when the next one is due.

    ``next_due`` asks the database: seconds until then, None: there is none.
    """

    def __init__(
        self, options: WorkerOptions, wakeup: Wakeup, turns: Turns, next_due: Callable[[], float | None]
    ) -> None:
        self._options = options
        self._wakeup = wakeup
        self._turns = turns
        self._next_due = next_due
        self._look_now = True  # a claim without asking
        self._asked = False  # since the last wait, and something was due
        self._held_back = False  # what is due is not for us, not now: a lock key that runs, say
        self._quiet = False  # whether there was no sign of work for a poll interval
        self._last_sign = 0.0
        self._due_at = math.inf  # when the first pending job is due, as far as the last question told
        self._own_due = math.inf  # when a job comes back that this worker saw fail or snooze
        self._waits_until = 0.0
        self._lock = threading.Lock()

    def wait(self, seconds: float, *, listen: bool) -> None:
        """Wait for a sign of work, at most so long."""
        self._asked = False
        self._waits_until = time.monotonic() + seconds  # before the look at what comes back: see there
        seconds = min(seconds, max(self._own_due - time.monotonic(), LEAST))
        sign = self._wakeup.wait(seconds, listen=listen)
        self._waits_until = 0.0
        with self._lock:
            if self._own_due <= time.monotonic():
                self._own_due = math.inf  # a look follows
        self._look_now = sign and self._wakeup.certain
        if sign:
            self._last_sign = time.monotonic()
            self._quiet = False

    def comes_back(self, delay: float) -> None:
        """A job of this worker will be due again in so many seconds. From any thread."""
        due = time.monotonic() + delay
        with self._lock:
            self._own_due = min(self._own_due, due)
        if due < self._waits_until:
            self._wakeup.wake()

    def nothing_due(self, *, idle: bool) -> bool:
        """Whether a claim would find nothing. Asked only by a worker that is ``idle`` and trusts its ears."""
        if self._look_now or self._held_back or not (idle and self._wakeup.reliable):
            return False
        self._asked = due = self._ask() <= 0
        if self._wakeup.out_of_turn and not due:
            self._turns.looked(found=False)
        return not due

    def found(self, *, all_there_is: bool) -> float:
        """Seconds to wait after a claim that found jobs."""
        self._last_sign = time.monotonic()
        self._held_back = self._quiet = False
        if self._wakeup.out_of_turn:
            self._turns.looked(found=True)
        return self.pause() if all_there_is and self._wakeup.reliable else 0.0

    def found_nothing(self, *, idle: bool) -> float:
        """Seconds to wait after a claim that found nothing."""
        if idle and self._wakeup.reliable:
            if self._asked:  # and a job was due: somebody else was faster, mostly
                self._quiet = False
            else:
                self._held_back = self._ask() <= 0
            return self.pause()
        self._held_back = self._quiet = False
        self._due_at = math.inf
        if time.monotonic() - self._last_sign < NOTIFY_INTERVAL + 2 * SHORT_STEP:
            return SHORT_STEP  # the limit on NOTIFY may have swallowed the last word
        return self.pause()

    def pause(self) -> float:
        """Seconds to the next look: longer each time, but not past the time of a job that is to come."""
        now = time.monotonic()
        delay = self._options.poll_interval * random.uniform(0.9, 1.1)  # noqa: S311 - spread, not a secret
        if not self._held_back:
            # Right after work, sooner: not all may have been heard of. Of many workers some look anyway.
            delay *= RELAXED if self._quiet else min(max(self._turns.size / 10, 1), RELAXED)
            self._quiet = True
        own, others = self._own_due - now, self._due_at - now
        delay = min(delay, max(own, LEAST))
        if 0 < others <= delay:
            delay = max(others + self._turns.stagger(), LEAST)
        return delay

    def _ask(self) -> float:
        due = self._next_due()
        seconds = math.inf if due is None else due
        self._due_at = time.monotonic() + seconds
        return seconds
