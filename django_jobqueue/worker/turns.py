"""Whose turn it is when a NOTIFY wakes everybody: few look at once, the others a little later."""

from __future__ import annotations

import random
from collections.abc import Callable

from ..databases.waking import SLOTS, Notice

#: So many workers all look at once.
FEW = 3
#: Of more, so many at least hear of a single job.
HEARERS = 5
#: Seconds. Those whose turn it is not look at random within so much for each worker: if the one whose
#: turn it is is full, stopped or dead, the job waits for about one such time. The least after a look that
#: found a job, the most after several that found none.
SPREAD, LEAST_SPREAD, MOST_SPREAD = 0.05, 0.02, 0.15
#: Seconds that those whose turn it is get anyway.
HEAD_START = 0.05


class Turns:
    """The turns of one worker. ``crowd`` tells its rank among those of the same queues, and their number."""

    def __init__(self, crowd: Callable[[], tuple[int, int]]) -> None:
        self._crowd = crowd
        self._spread = SPREAD

    def delay(self, notice: Notice) -> float:
        """Seconds from a notice to this worker's look; 0: it is its turn.

        As many workers as there are jobs, beginning with one at random; for a single job one of those that
        listen to its slot. Everybody, as long as it is not known how many there are.
        """
        rank, size = self._crowd()
        if size <= FEW or self._is_next(notice, rank, size):
            return 0.0
        return HEAD_START + random.uniform(0, size * self._spread)  # noqa: S311 - spread, not a secret

    @property
    def slots(self) -> frozenset[int]:
        """The channels to listen to, beside the one for everybody."""
        rank, size = self._crowd()
        if size <= FEW:
            return frozenset(range(SLOTS))
        groups = _groups(size)
        return frozenset(slot for slot in range(SLOTS) if slot % groups == rank % groups)

    @property
    def size(self) -> int:
        """How many workers there are; 0: not known."""
        return self._crowd()[1]

    def looked(self, *, found: bool) -> None:
        """A look out of turn found something to do, or nothing."""
        self._spread = LEAST_SPREAD if found else min(self._spread * 2, MOST_SPREAD)

    @staticmethod
    def _is_next(notice: Notice, rank: int, size: int) -> bool:
        if notice.slot is None:
            return (rank - notice.number) % size < notice.jobs
        groups = _groups(size)
        mine = rank % groups
        mates = len(range(mine, size, groups))
        return notice.slot % groups == mine and (rank // groups - notice.number // SLOTS) % mates == 0

    def stagger(self) -> float:
        """Seconds by which to come late to what everybody knows, such as a scheduled job's time."""
        _, size = self._crowd()
        return random.uniform(0, min(size * 0.005, 0.25)) if size > FEW else 0.0  # noqa: S311


def _groups(size: int) -> int:
    return max(1, min(size // HEARERS, SLOTS))
