"""Whose turn it is when a NOTIFY wakes everybody: few look at once, the others a little later."""

from __future__ import annotations

import random
from collections.abc import Callable

from ..databases.waking import Notice

#: So many workers all look at once.
FEW = 3
#: Seconds. Those whose turn it is not look at random within so much for each worker there is: if those whose
#: turn it is are full, stopped or dead, the job waits for about one such time. The least after a look that
#: found a job, the most after several that found none.
SPREAD, LEAST_SPREAD, MOST_SPREAD = 0.05, 0.02, 0.1


class Turns:
    """The turns of one worker. ``crowd`` tells its rank among those of the same queues, and their number."""

    def __init__(self, crowd: Callable[[], tuple[int, int]]) -> None:
        self._crowd = crowd
        self._spread = SPREAD

    def delay(self, notice: Notice) -> float:
        """Seconds from a notice to this worker's look; 0: it is its turn.

        As many workers as there are jobs, beginning with one at random. Everybody, as long as it is not
        known how many there are.
        """
        rank, size = self._crowd()
        if size <= FEW or (rank - notice.number) % size < notice.jobs:
            return 0.0
        return random.uniform(0, size * self._spread)  # noqa: S311 - spread, not a secret

    @property
    def alone(self) -> bool:
        """Whether there is nobody else."""
        return self._crowd()[1] == 1

    def looked(self, *, found: bool) -> None:
        """A look out of turn found something to do, or nothing."""
        self._spread = LEAST_SPREAD if found else min(self._spread * 2, MOST_SPREAD)

    def stagger(self) -> float:
        """Seconds by which to come late to what everybody knows, such as a scheduled job's time."""
        _, size = self._crowd()
        return random.uniform(0, min(size * 0.005, 0.25)) if size > FEW else 0.0  # noqa: S311
