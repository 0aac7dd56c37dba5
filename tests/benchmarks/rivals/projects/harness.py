"""One step of a measurement, run in a rival's own environment: `python harness.py on_<rival> <step> …`.

The module of the rival has prepare(), enqueue(numbers) that commits one job after the other, unfinished(),
worker(), and bulk(numbers) if the rival has such a call. What a step measured is its last line of output.
"""

import json
import random
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from time import monotonic, sleep
from types import ModuleType

from stamps import LINE

SINGLE_SECONDS = 3.0
CHUNK = 1_000
# Polled, not waited for: the handler wrote down itself when it ran.
LOOK_SECONDS = 0.002
LOST_SECONDS = 30.0


def fill(rival: ModuleType, count: int) -> dict[str, float]:
    """Enqueues `count` jobs: one at a time for a while, the rest in bulk where the rival can."""
    rival.enqueue([0])  # the connection
    bulk = getattr(rival, "bulk", None)
    singles, rate = _timed(
        rival.enqueue,
        range(1, count // 2 if bulk else count),
        chunk=50,
        seconds=SINGLE_SECONDS if bulk else None,
    )
    measured = {"enqueue_per_second": rate}
    if bulk:
        rest = range(singles + 1, count)
        measured["bulk_enqueue_per_second"] = _timed(bulk, rest, chunk=CHUNK, seconds=None)[1]
    return measured


def _timed(
    call: Callable[[Sequence[int]], None], numbers: range, *, chunk: int, seconds: float | None
) -> tuple[int, float]:
    done = 0
    start = monotonic()
    while done < len(numbers) and (seconds is None or monotonic() - start < seconds):
        part = numbers[done : done + chunk]
        call(part)
        done += len(part)
    return done, done / (monotonic() - start)


def ping(
    rival: ModuleType, stamps: Path, first: int, samples: int, seconds: float, poll: float
) -> list[float]:
    """Milliseconds from before the call that enqueues to the handler, for jobs that find the worker idle.

    The pauses spread over the rival's polling interval, or each job would come right after a poll.
    """
    latencies: list[float] = []
    end = monotonic() + seconds
    while len(latencies) < 2 or (len(latencies) < samples and monotonic() < end):
        sleep(random.uniform(0.02, 0.12 + poll))  # noqa: S311
        before = stamps.stat().st_size
        sent = monotonic()
        rival.enqueue([first + len(latencies)])
        latencies.append((_stamped(stamps, before, first + len(latencies)) - sent) * 1_000)
    return latencies


def _stamped(stamps: Path, offset: int, number: int) -> float:
    deadline = monotonic() + LOST_SECONDS
    while stamps.stat().st_size < offset + LINE.size:
        if monotonic() > deadline:
            raise SystemExit(f"job {number} was not run within {LOST_SECONDS:.0f} s")
        sleep(LOOK_SECONDS)
    with stamps.open("rb") as file:
        file.seek(offset)
        found, ran = LINE.unpack(file.read(LINE.size))
    if found != number:
        raise SystemExit(f"job {found} was run where {number} was expected")
    return float(ran)


def main(name: str, step: str, *arguments: str) -> None:
    rival = import_module(name)
    result: object = None
    if step == "fill":
        result = fill(rival, int(arguments[0]))
    elif step == "ping":
        stamps, first, samples, seconds, poll = arguments
        result = ping(rival, Path(stamps), int(first), int(samples), float(seconds), float(poll))
    else:
        result = getattr(rival, step)()
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
