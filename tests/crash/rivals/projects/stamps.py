"""Stands in for the benchmark's module of this name: a handler that takes a while and keeps the ledger."""

import struct
import time

from tests.crash.ledger import OK, PULSE, note

LINE = struct.Struct("qd")  # of the module that this one stands in for; harness.py reads it


def began(number: int) -> dict[str, object]:
    """The handler has started; answers with what names the run."""
    run: dict[str, object] = {"job": str(number), "fence": time.monotonic_ns()}
    note("start", **run, n=number, attempt=0, type="rival", lock=None)
    return run


def alive(run: dict[str, object]) -> None:
    note("alive", **run)


def ended(run: dict[str, object]) -> None:
    note("end", **run, verdict=OK)


def pulses(number: int) -> int:
    """How many signs of life it gives: it takes 0.1 to 0.7 seconds."""
    return 1 + number % 7


def stamp(number: int) -> None:
    run = began(number)
    for _ in range(pulses(number)):
        time.sleep(PULSE)
        alive(run)
    ended(run)
