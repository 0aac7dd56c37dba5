"""What a worker does when there is little to do: how soon it starts, and what it costs meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import psutil

from .. import raw_latency
from ..bench import Bench, Figures, Part, Workload, latencies, read_stamps
from ..children import RunWorker, call, runworker
from ..names import STAMPS
from ..servers import PostgreSQLServer, Target

#: Jobs of a measurement of latency, and the pauses between them in seconds.
STARTS = 250
PAUSES = (0.03, 0.08)
#: The same for the wake-up of many: twenty a second.
WAKES = 200
WAKE_PAUSES = (0.02, 0.08)
#: Seconds that an idle worker is watched.
WATCHED = 60
#: Seconds until a worker that has just started, or just run something, is taken to be idle.
SETTLED = 4.0
#: Seconds after which a job that has not started is lost.
LOST = 30.0
MEBIBYTE = 1_048_576


def latency_parts(bench: Bench) -> list[Part]:
    """From before the call that enqueues to the handler's first line."""
    jobs = bench.options.smaller(STARTS)

    def raw() -> Figures:
        return latencies(raw_latency.measure(bench.raw().url, jobs, *PAUSES))

    def ours() -> Figures:
        bench.empty(bench.site())
        path = stamps_file(bench)
        with runworker(bench.site(), extra={STAMPS: str(path)}) as worker:
            worker.ready(1)
            time.sleep(SETTLED)
            return latencies(start_times(bench.site(), path, jobs, PAUSES))

    return [*([Part("raw LISTEN", raw)] if bench.on_postgresql else []), Part("runworker", ours)]


def stamps_file(bench: Bench) -> Path:
    """An empty one."""
    path = bench.server.folder / "stamps"
    path.unlink(missing_ok=True)
    return path


def start_times(target: Target, path: Path, jobs: int, pauses: tuple[float, float]) -> list[float]:
    """Seconds from the enqueue to the start of each."""
    sent = call(target, "enqueue_slowly", jobs=jobs, least=pauses[0], most=pauses[1])
    deadline = time.monotonic() + LOST
    while len(started := read_stamps(path)) < jobs and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(started) == jobs, f"{jobs - len(started)} jobs of {jobs} were not started within {LOST:.0f} s"
    return [started[n] - at for n, at in enumerate(sent)]


def idle_parts(bench: Bench) -> list[Part]:
    """A worker with nothing to do, that had something to do before."""
    return [Part("runworker", partial(idle, bench))]


def idle(bench: Bench) -> Figures:
    """A minute's cost, from as many seconds as it is watched."""
    seconds = bench.options.smaller(WATCHED)
    target = bench.counting_site()
    bench.empty(target)
    path = stamps_file(bench)
    with runworker(target, extra={STAMPS: str(path)}) as worker:
        worker.ready(1)
        start_times(target, path, 20, WAKE_PAUSES)
        time.sleep(SETTLED)
        before, spent = work(bench), cpu(worker)
        time.sleep(seconds)
        figures = {"CPU s/min": (cpu(worker) - spent) * 60 / seconds}
        figures |= {f"{name}/min": (now - before[name]) * 60 / seconds for name, now in work(bench).items()}
        return figures | memory(worker)


def work(bench: Bench, *, without_enqueues: bool = False) -> Mapping[str, int]:
    """What the counted database did so far; on SQLite nobody counts."""
    if not isinstance(bench.server, PostgreSQLServer):
        return {}
    return bench.server.work("counted", without_enqueues=without_enqueues)


def cpu(worker: RunWorker) -> float:
    """Seconds of the supervisor and its processes, user and system."""
    times = [process.cpu_times() for process in worker.tree()]
    return sum(one.user + one.system for one in times)


def memory(worker: RunWorker) -> Figures:
    """Of the largest process, and of all together; what they share is counted once in the PSS."""
    found = [process.memory_full_info() for process in worker.tree()]
    figures = {"RSS MiB a process": max(one.rss for one in found) / MEBIBYTE}
    if psutil.LINUX:
        figures["PSS MiB of all"] = sum(one.pss for one in found) / MEBIBYTE
    return figures


def wakeup_parts(bench: Bench) -> list[Part]:
    """Idle workers, and twenty enqueues a second for them."""
    numbers = (1, 10) if bench.options.quick else (1, 10, 50)
    return [Part(f"workers: {number}", partial(wakeup, bench, number)) for number in numbers]


def wakeup(bench: Bench, workers: int) -> Figures:
    """How soon each job starts, and what all the workers ask the database for it."""
    jobs = bench.options.smaller(WAKES)
    target = bench.counting_site() if bench.on_postgresql else bench.site()
    bench.empty(target)
    path = stamps_file(bench)
    with runworker(target, "--processes", str(workers), extra={STAMPS: str(path)}) as worker:
        worker.ready(workers)
        time.sleep(SETTLED)
        before, begun = work(bench, without_enqueues=True), time.monotonic()
        time.sleep(SETTLED)
        idle_work, idle_for = work(bench, without_enqueues=True), time.monotonic() - begun
        begun = time.monotonic()
        figures = latencies(start_times(target, path, jobs, WAKE_PAUSES))
        after, busy_for = work(bench, without_enqueues=True), time.monotonic() - begun
    for name, now in after.items():
        figures[f"{name}/job"] = (now - idle_work[name]) / jobs
        at_rest = (idle_work[name] - before[name]) * busy_for / idle_for
        figures[f"{name}/job above those at rest"] = (now - idle_work[name] - at_rest) / jobs
    return figures


WORKLOADS = [
    Workload("latency", "idle worker: from the enqueue to the handler", latency_parts, bases=("raw LISTEN",)),
    Workload("idle", "a worker with nothing to do", idle_parts),
    Workload("wakeup", "twenty enqueues a second for idle workers", wakeup_parts, bases=("workers: 1",)),
]
