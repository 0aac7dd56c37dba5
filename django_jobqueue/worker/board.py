"""The notes that a worker process and its supervisor share: what has started, and when leases were renewed.

They lie in shared memory, so they are exact when the process was killed, cost no message, and never block
on a process that does not read. All times are of the system's monotonic clock, which processes share.
"""

from __future__ import annotations

import struct
import time
from typing import Any
from uuid import UUID

_RENEWAL = struct.Struct("=dq")  # when the last renewal was sent; how often leases had lapsed before it
_FAREWELL = struct.Struct("=i4x")  # one more than the exit code with which the process leaves; 0: not yet
_CROWD = struct.Struct("=ii")  # this worker's place among those that serve the same queues; how many they are
_LOOP = struct.Struct("=d?7x")  # when the claiming loop comes round at the latest; whether it had an answer
_SLOT = struct.Struct("=16sdd")  # a job's id; when it started, 0: free; when its time is over, 0: never

#: Jobs that a process may hold at once: claimed, running, or waiting for their outcome to be written.
SLOTS = 4_096

_CROWD_AT = _RENEWAL.size + _FAREWELL.size
_LOOP_AT = _CROWD_AT + _CROWD.size
_HEAD = _LOOP_AT + _LOOP.size
SIZE = _HEAD + SLOTS * _SLOT.size


class Board:
    """``memory`` is ``SIZE`` writable bytes: a bytearray, or shared between two processes."""

    def __init__(self, memory: Any) -> None:
        self._memory = memoryview(memory).cast("B")
        self._free = list(range(SLOTS - 1, -1, -1))  # used by the worker process alone

    @classmethod
    def new(cls, memory: Any) -> Board:
        """A board for a worker that starts now: nothing can have lapsed before."""
        board = cls(memory)
        _RENEWAL.pack_into(board._memory, 0, time.monotonic(), 0)
        _LOOP.pack_into(board._memory, _LOOP_AT, time.monotonic(), False)
        return board

    # The worker process writes what it starts …

    @property
    def free(self) -> int:
        """How many more jobs may be held."""
        return len(self._free)

    def take(self) -> int:
        """A slot for a job that was claimed."""
        return self._free.pop()

    def start(self, slot: int, job_id: UUID, started: float, deadline: float = 0.0) -> None:
        """Its handler starts, and has time until the ``deadline``; 0: as long as it wants."""
        _SLOT.pack_into(self._memory, _HEAD + slot * _SLOT.size, job_id.bytes, started, deadline)

    def give(self, slot: int) -> None:
        """Its outcome is written, or it was given back."""
        _SLOT.pack_into(self._memory, _HEAD + slot * _SLOT.size, b"", 0.0, 0.0)
        self._free.append(slot)

    def comes_round(self, at: float) -> None:
        """The claiming loop waits no longer than until then."""
        _LOOP.pack_into(self._memory, _LOOP_AT, at, self.had_answer)

    def looked(self, answered: bool) -> None:
        """The claiming loop has asked, and got an answer or none."""
        at, _ = _LOOP.unpack_from(self._memory, _LOOP_AT)
        _LOOP.pack_into(self._memory, _LOOP_AT, at, answered)

    def farewell(self, code: int) -> None:
        """The process leaves with this exit code: nothing is left to do, and no handler called os._exit()."""
        _FAREWELL.pack_into(self._memory, _RENEWAL.size, code + 1)

    # … and the one that renews reads it, and writes when it did.

    def started(self) -> list[tuple[UUID, float]]:
        """(id, seconds since) of every job that has started and is not settled."""
        now = time.monotonic()
        found = []
        for raw, started, _ in _SLOT.iter_unpack(self._memory[_HEAD:]):
            if started:
                found.append((UUID(bytes=raw), max(now - started, 0.0)))
        return found

    def overdue(self, by: float) -> set[UUID]:
        """The jobs that run though their time has been over for more than so many seconds."""
        latest = time.monotonic() - by
        slots = _SLOT.iter_unpack(self._memory[_HEAD:])
        return {UUID(bytes=raw) for raw, _, deadline in slots if 0 < deadline < latest}

    def loop_due_in(self) -> float:
        """Seconds until the claiming loop has to come round; less than 0: it had to, so long ago."""
        at, _ = _LOOP.unpack_from(self._memory, _LOOP_AT)
        return at - time.monotonic() if at else 0.0

    def left_with(self, code: int | None) -> bool:
        """Whether the process said that it would leave with this exit code."""
        (said,) = _FAREWELL.unpack_from(self._memory, _RENEWAL.size)
        return code is not None and said == code + 1

    def renewed(self, sent: float, answered: float, lease: float) -> None:
        """All leases were renewed by a statement sent and answered at these times."""
        last, lapses = _RENEWAL.unpack_from(self._memory)
        # Answered later than the lease before had lasted: others may have taken jobs back in between.
        _RENEWAL.pack_into(self._memory, 0, sent, lapses + (1 if answered >= last + lease else 0))

    def placed(self, rank: int, size: int) -> None:
        """So many workers serve the same queues, and this is the one with this rank (from 0)."""
        _CROWD.pack_into(self._memory, _CROWD_AT, rank, size)

    @property
    def had_answer(self) -> bool:
        """Whether that loop got an answer when it last asked."""
        return bool(_LOOP.unpack_from(self._memory, _LOOP_AT)[1])

    @property
    def crowd(self) -> tuple[int, int]:
        """Rank and number as ``placed`` said; (0, 0): not yet."""
        rank, size = _CROWD.unpack_from(self._memory, _CROWD_AT)
        return rank, size

    @property
    def renewal(self) -> tuple[float, int]:
        """When the last renewal was sent, or the worker started; how often leases had lapsed before one."""
        sent, lapses = _RENEWAL.unpack_from(self._memory)
        return sent, lapses
