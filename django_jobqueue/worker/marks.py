"""How far claims have got in each lane, and when to look at everything again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from ..databases.claiming import ClaimRequest, Mark
from ..managers.claim import ClaimedJob

#: Seconds after which everything is looked at again, however long that takes.
LONGEST = 0.5
#: A look at everything is followed by this many times its own duration without another one.
PAUSE = 10
#: The same when it found lock keys, or one was freed: such jobs are taken by no other look.
PAUSE_WITH_KEYS = 1
#: Lanes that are remembered. Each costs every claim a probe.
LANES = 100
#: Seconds for which a lane that gives no job is remembered. If others took all its jobs meanwhile, each claim
#: from the mark crosses what those left.
KEEP = 2.0


class ScanMarks:
    """Which claims look at everything (*whole*), and which go on from where the last one got to (*marked*).

    What a marked claim passes over is found by the next whole one: jobs of other lanes, jobs before the
    mark (retried, rescheduled, taken back) and jobs with a lock key, which have to run in order.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # By lane, with the time of the claim: the lane that gave a job last is the last.
        self._marks: dict[tuple[str, int], tuple[Mark, float]] = {}
        self._ended = -math.inf  # when the last whole claim was over
        self._took = 0.0
        self._pause = 0.0  # seconds from there to the next
        self.saw_all = False  # whether the last claim was whole

    def ahead(self) -> tuple[Mark, ...]:
        """Where the next claim begins; empty: it is a whole one."""
        if self._until_whole() <= 0:
            return ()
        since = self._clock() - KEEP
        return tuple(mark for mark, moved in self._marks.values() if moved >= since)

    def learn(
        self, request: ClaimRequest, jobs: Sequence[ClaimedJob], marks: Sequence[Mark], took: float
    ) -> None:
        """This claim took ``took`` seconds and gave jobs and marks."""
        self.saw_all = not request.marks
        if self.saw_all:
            self._ended, self._took = self._clock(), took
            self._pause = min(_pause(request, jobs) * took, LONGEST)
        for mark in marks:
            lane = mark.queue, mark.priority
            self._marks.pop(lane, None)
            self._marks[lane] = mark, self._clock()
        while len(self._marks) > LANES:
            del self._marks[next(iter(self._marks))]

    def key_freed(self) -> None:
        """A lock key is free: only a whole claim gives the next job that has it."""
        self._pause = min(self._pause, PAUSE_WITH_KEYS * self._took)

    def patience(self) -> float:
        """Seconds for which what the last claim gave is good enough: no end to it if it saw everything."""
        return math.inf if self.saw_all else max(self._until_whole(), 0.0)

    def _until_whole(self) -> float:
        return self._ended + self._pause - self._clock()


def _pause(request: ClaimRequest, jobs: Sequence[ClaimedJob]) -> float:
    if len(jobs) < request.limit and not request.suspects:
        # Perhaps a job whose worker was lost stands first and waits until nothing else runs here. Going on
        # behind it would keep this worker busy, and that job waiting, as long as there is anything to do.
        return 0
    return PAUSE_WITH_KEYS if any(job.lock_key is not None for job in jobs) else PAUSE
