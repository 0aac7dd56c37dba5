"""Signals of the operating system, and what the exit codes mean. A handler sets a flag and nothing else."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from enum import IntEnum
from types import FrameType

#: Seconds between looks at the flag.
TICK = 0.2


class Exit(IntEnum):
    """Exit codes of ``runworker`` and, from ``DRAINED`` on, of its worker processes."""

    DONE = 0  # stopped in good order, or drained
    FAILED = 1  # could not start (wrong options, a broken jobs.py), or the supervisor itself broke
    FORCED = 3  # a second signal: running jobs were cut off and given back
    UNABLE = 4  # worker processes died right after their start, again and again
    DRAINED = 10  # (process) nothing is due
    RECYCLED = 11  # (process) after --max-jobs or --max-memory
    UNFIT = 12  # (process) one of its threads died
    STUCK = 13  # (process) a handler did not end when it was interrupted


class StopSignals:
    """Counts SIGTERM and SIGINT: one asks to stop, a second means at once.

    No lock is taken in the handler, not even that of an Event: the thread it interrupts may hold it.
    """

    def __init__(self) -> None:
        self.count = 0

    @property
    def asked(self) -> bool:
        """Whether a stop was asked."""
        return self.count > 0

    @property
    def insisted(self) -> bool:
        """Whether it was said twice."""
        return self.count > 1

    def ask(self) -> None:
        """Ask from within."""
        self.count += 1

    def wait(self, seconds: float) -> bool:
        """Wait until a stop is asked, at most so long; whether it was."""
        deadline = time.monotonic() + seconds
        while not self.asked and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, TICK))
        return self.asked

    def install(self, *, ignore_interrupt: bool = False) -> None:
        """Catch them; a worker process leaves Ctrl-C, which the whole group gets, to its supervisor."""
        signal.signal(signal.SIGTERM, self._note)
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignore_interrupt else self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent dies, even while a handler holds the GIL."""
    if sys.platform != "linux":
        return  # elsewhere the closed pipe ends the process, as soon as a thread may run
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(Exit.DONE)  # it died before we asked
