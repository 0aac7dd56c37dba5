"""A word from within to a thread that waits for the kernel."""

from __future__ import annotations

import contextlib
import math
import os
import select
from types import TracebackType


class Bell:
    """Ended by any thread, a wait of one: for a time, or for a socket. ``with bell:`` it is listened to."""

    def __init__(self) -> None:
        self._listened_to = False
        self._read_end, self._write_end = os.pipe()
        for end in (self._read_end, self._write_end):
            os.set_blocking(end, False)

    def __enter__(self) -> None:
        self._listened_to = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listened_to = False

    def ring(self) -> None:
        """End the wait. Costs nothing while nobody listens: who waits looks first for what came before."""
        if self._listened_to:
            with contextlib.suppress(OSError):  # full, and so heard anyway; or closed
                os.write(self._write_end, b"x")

    def wait(self, seconds: float, descriptor: int | None = None) -> bool:
        """Wait at most so long; whether something is to be read from ``descriptor``."""
        # poll() and not select(), which knows no descriptor above 1,023; nor a lock with a time limit,
        # which takes a third more of the processor.
        poll = select.poll()
        poll.register(self._read_end, select.POLLIN)
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
        ready = {one for one, _ in poll.poll(math.ceil(seconds * 1_000))}
        if self._read_end in ready:
            os.read(self._read_end, 4_096)
        return bool(ready - {self._read_end})

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read_end)
        os.close(self._write_end)
