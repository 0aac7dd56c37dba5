"""Which jobs this process holds, and whether it may still start them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from uuid import UUID

from ..attempts import Attempt
from .board import Board

#: Seconds in which a job that brings its process down mostly does so.
MOMENT = 0.25


class Holdings:
    """The attempts of one worker, from claim to settled outcome. Safe for threads."""

    def __init__(self, board: Board, lease: float) -> None:
        self.board = board
        self.lease = lease
        self._held: dict[UUID, Attempt] = {}
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def ids(self) -> set[UUID]:
        """The ids of all jobs held."""
        return set(self._held)

    def attempts(self) -> list[Attempt]:
        """All attempts held."""
        return list(self._held.values())

    @property
    def room(self) -> int:
        """How many more jobs there is a slot for."""
        return self.board.free

    def add(self, attempts: Iterable[Attempt]) -> None:
        """These were claimed."""
        for attempt in attempts:
            if (earlier := self._held.get(attempt.job.id)) is not None:
                earlier.lost = True  # taken back, and claimed by this worker again
            attempt.slot = self.board.take()
            self._held[attempt.job.id] = attempt

    def begin(self, attempt: Attempt) -> float:
        """The handler of this one starts now; noted where the supervisor sees it."""
        attempt.started = now = time.monotonic()
        # An isolated job lets this process run: no need for the supervisor to see to its limit.
        deadline = 0.0 if attempt.limit is None or attempt.isolated else now + attempt.limit
        self.board.start(attempt.slot, attempt.job.id, now, deadline)
        return now

    def remove(self, attempts: Iterable[Attempt]) -> None:
        """These are settled, released or lost."""
        for attempt in attempts:
            if self._held.get(attempt.job.id) is attempt:  # not: lost, and claimed again by this worker
                del self._held[attempt.job.id]
            if attempt.slot >= 0:
                self.board.give(attempt.slot)
                attempt.slot = -1
            if attempt.on_settled is not None:
                attempt.on_settled()
        if not self._held:
            with self._changed:
                self._changed.notify_all()

    def wait_until_empty(self, timeout: float | None) -> bool:
        """Whether nothing is held any more, at the latest after ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._held, timeout)

    def is_settling_in(self, attempt: Attempt) -> bool:
        """Whether this one is held and has not yet run for a moment, or has ended and is not yet written."""
        if self._held.get(attempt.job.id) is not attempt:
            return False
        return attempt.started is None or attempt.ended or time.monotonic() - attempt.started < MOMENT

    @property
    def calm(self) -> bool:
        """Whether all that is held has been running for a moment: nobody would be hit unseen by a crash."""
        return not any(self.is_settling_in(attempt) for attempt in self.attempts())

    # Leases.

    @property
    def lapses(self) -> int:
        """How often leases had lapsed before they were renewed."""
        return self.board.renewal[1]

    @property
    def in_doubt(self) -> bool:
        """Whether leases have lapsed under a job that is to start, so that the table has to be asked."""
        lapses = self.lapses
        return any(one.started is None and one.lapses != lapses for one in self.attempts())

    def is_held(self, attempt: Attempt) -> bool:
        """Whether the lease is known to hold at this moment, so that the handler may start."""
        sent, lapses = self.board.renewal
        return lapses == attempt.lapses and time.monotonic() < max(attempt.claimed, sent) + self.lease

    def wait_until_held(self, attempt: Attempt, stop: threading.Event) -> bool:
        """Wait for a renewal if need be. False: the job was lost, or the worker is stopping."""
        while not self.is_held(attempt):
            if attempt.lost or stop.is_set():
                return False
            with self._changed:
                self._changed.wait(0.2)
        return not attempt.lost

    def compare(
        self, attempts: Iterable[Attempt], lapses: int, held: Mapping[UUID, tuple[int, bool]]
    ) -> None:
        """What the table says of these (fence, cancel asked); they and the lapses were read before it.

        It says nothing of others: a claim may have been sent, and not be in the table yet.
        """
        for attempt in attempts:
            fence, cancel = held.get(attempt.job.id, (None, False))
            if fence == attempt.job.fence:
                attempt.cancelled = attempt.cancelled or cancel
                attempt.lapses = max(attempt.lapses, lapses)
            else:
                attempt.lost = True
        with self._changed:
            self._changed.notify_all()
