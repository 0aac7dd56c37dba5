"""Where handlers run: what the pool of threads and the pool of coroutines have in common."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ..attempts import Attempt
from ..managers.outcomes import Outcome
from .holdings import Holdings

#: Seconds: no more jobs wait in a process than start within this time.
AHEAD = 0.1
#: Seconds a job may wait here while nothing starts, before it is given back to whoever is free.
STALE = 1.0
#: Seconds that any job may take longer than the others, without being thought a long one.
HICCUP = 0.001
#: Jobs that wait in a process at the most, however short they are.
MOST_AHEAD = 2_000

Settle = Callable[[Attempt, Outcome | None], None]


class Pace:
    """How long jobs ran lately, and so how many may wait here: long ones are never hoarded."""

    def __init__(self) -> None:
        self._mean: float | None = None

    def ran(self, seconds: float) -> None:
        """A job ran so long."""
        if self._mean is None:
            self._mean = seconds
        else:
            # One that the machine held up says nothing of the next: it does not count for more than ten.
            self._mean += 0.1 * (min(seconds, 10 * self._mean + HICCUP) - self._mean)

    def forget(self) -> None:
        """What was thought short turned out long: nothing waits here until a job has ended."""
        self._mean = None

    def ahead(self, width: int) -> int:
        """How many may wait, with so many running at once."""
        if self._mean is None:
            return 0
        return min(int(width * AHEAD / max(self._mean, 1e-6)), MOST_AHEAD)


class Pool(ABC):
    """So many handlers at once, and some jobs that wait for their turn, oldest claim first."""

    def __init__(
        self,
        width: int,
        alias: str,
        holdings: Holdings,
        settle: Settle,
        on_room: Callable[[], None],
        on_death: Callable[[str], None],
        durable: bool = False,
    ) -> None:
        self.width = width
        self._durable = durable  # a place is free only when the outcome is written
        self.stopping = threading.Event()
        self._alias = alias
        self._holdings = holdings
        self._settle = settle
        self._on_room = on_room
        self._on_death = on_death
        self._pace = Pace()
        self._running = 0
        self._moved = time.monotonic()  # when a job last came in or started

    @property
    @abstractmethod
    def waiting(self) -> int:
        """Jobs that have not started."""

    @property
    def idle(self) -> int:
        """How many could start at once."""
        return max(self.width - self._running - self.waiting, 0)

    @property
    def room(self) -> int:
        """How many jobs to claim now: none until half of those that may wait have started."""
        ahead = self._pace.ahead(self.width)
        missing = self.width + ahead - self._running - self.waiting
        return missing if self.idle or missing * 2 > ahead else 0

    @property
    def hoards(self) -> bool:
        """Whether jobs wait here that turned out to be long, and others may be free for them."""
        waiting = self.waiting
        if not waiting:
            return False
        return (
            time.monotonic() - self._moved > STALE or waiting > 2 * self._pace.ahead(self.width) + self.width
        )

    def give_back_hoard(self) -> list[Attempt]:
        """The jobs that others may be free for; no more of them are claimed ahead for now."""
        if not self.hoards:
            return []
        self._pace.forget()
        return self.take_back()

    @abstractmethod
    def put(self, attempts: Sequence[Attempt]) -> None:
        """Run these as soon as there is a place."""

    @abstractmethod
    def take_back(self) -> list[Attempt]:
        """The jobs that have not started; they will not start here any more."""

    @abstractmethod
    def stop(self, timeout: float | None) -> bool:
        """End when running handlers have ended; whether they have."""

    def _ended(self, attempt: Attempt) -> None:
        attempt.ended = True
        if attempt.started is not None:
            attempt.ran = time.monotonic() - attempt.started
            self._pace.ran(attempt.ran)
