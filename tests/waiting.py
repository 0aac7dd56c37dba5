"""Waiting without guessing how long: look again until it is so, and say what was seen last if it never is."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Seconds after which what a test waits for will not come any more, on a busy machine too.
PATIENCE = 30.0


def eventually(look: Callable[[], T], *, within: float = PATIENCE, every: float = 0.02) -> T:
    """The first true answer of ``look``."""
    deadline = time.monotonic() + within
    while not (answer := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {within} s; seen last: {answer!r}")
        time.sleep(every)
    return answer


def equals(expected: T, look: Callable[[], T], *, within: float = PATIENCE, every: float = 0.02) -> None:
    """Wait until ``look`` answers what is expected."""
    deadline = time.monotonic() + within
    while (answer := look()) != expected and time.monotonic() < deadline:
        time.sleep(every)
    assert answer == expected


def outlast(seconds: float) -> None:
    """Let a span of time go by that is itself what is tested: a lease that runs out, say."""
    time.sleep(seconds)
