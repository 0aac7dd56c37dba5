"""``manage.py jobqueue status``: the dashboard's figures as text or JSON, and conditions for monitoring."""

from __future__ import annotations

import argparse
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..statistics import CODES, Alert, Count, Overview, QueueFigures, WorkerFigures, span_text

#: What ``--fail-if`` can compare: totals of the queues looked at.
NUMBERS: dict[str, Callable[[Overview], float]] = {
    "due": lambda overview: overview.total.due.number,
    "oldest": lambda overview: overview.total.oldest or 0.0,
    "pending": lambda overview: overview.total.pending.number,
    "running": lambda overview: overview.total.running.number,
    "dead": lambda overview: overview.total.dead.number,
    "workers": lambda overview: len(overview.living),
}
_COMPARISON = re.compile(rf"({'|'.join(NUMBERS)})\s*([<>])\s*(\d+(?:\.\d+)?)")
_OPERATORS = {"<": operator.lt, ">": operator.gt}


class Condition(NamedTuple):
    """One of ``--fail-if``."""

    text: str
    holds: Callable[[Overview, Sequence[Alert]], bool]


def condition(text: str) -> Condition:
    """``any``, the code of an alert, or a comparison such as ``due>1000``, ``oldest>60`` or ``workers<1``."""
    name = text.strip()
    if name == "any":
        return Condition(name, lambda overview, alerts: bool(alerts))
    if name in CODES:
        return Condition(name, lambda overview, alerts: any(one.code == name for one in alerts))
    found = _COMPARISON.fullmatch(name)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no condition. Write any, one of {', '.join(CODES)}, or compare one of "
            f"{', '.join(NUMBERS)} with a number, e.g. 'due>1000'."
        )
    number, compare, bound = NUMBERS[found[1]], _OPERATORS[found[2]], float(found[3])
    return Condition(name, lambda overview, alerts: compare(number(overview), bound))


def as_json(overview: Overview, alerts: Iterable[Alert]) -> dict[str, Any]:
    """What ``--json`` prints. Times are seconds; a count that is capped is "or more"."""
    return {
        "queues": [_queue(queue) for queue in overview.queues],
        "workers": [_worker(worker) for worker in overview.workers],
        "alerts": [alert._asdict() for alert in alerts],
    }


def _count(count: Count) -> dict[str, Any]:
    return {"count": count.number, "capped": count.is_capped}


def _queue(queue: QueueFigures) -> dict[str, Any]:
    counts = ("pending", "due", "scheduled", "running", "dead")
    return {
        "name": queue.name,
        "paused": queue.paused,
        **{name: _count(getattr(queue, name)) for name in counts},
        "oldest": queue.oldest,
        "done_per_minute": queue.done_per_minute,
        "failed": queue.failed,
        "waiting": queue.waiting._asdict(),
        "running_time": queue.taking._asdict(),
        "workers": queue.workers,
    }


def _worker(worker: WorkerFigures) -> dict[str, Any]:
    names = ("id", "host", "pid", "queues", "exclude_queues", "capacity", "held", "version", "asked_to_stop")
    return {
        **{name: getattr(worker, name) for name in names},
        "up": worker.up,
        "last_beat": worker.silent,
        "living": worker.is_living,
        "stands_still": worker.stands_still,
        "jobs": [{"id": str(job.id), "type": job.job_type, "seconds": job.seconds} for job in worker.jobs],
    }


QUEUE_COLUMNS = (
    "queue", "state", "due", "oldest", "scheduled", "running", "dead", "done/min", "failed",
    "waiting", "95 %", "running time", "95 %", "workers",
)  # fmt: skip
WORKER_COLUMNS = ("worker", "state", "load", "queues", "last beat", "up", "version", "running now")


def queue_cells(queue: QueueFigures) -> list[str]:
    """A line of the table of queues."""
    state = "paused" if queue.paused else "no worker" if queue.due and not queue.workers else ""
    return [
        plain(queue.name), state, str(queue.due), span_text(queue.oldest), str(queue.scheduled),
        str(queue.running), str(queue.dead), f"{queue.done_per_minute:.1f}", str(queue.failed),
        span_text(queue.waiting.mean), span_text(queue.waiting.p95),
        span_text(queue.taking.mean), span_text(queue.taking.p95), str(queue.workers),
    ]  # fmt: skip


def worker_cells(worker: WorkerFigures) -> list[str]:
    """A line of the table of workers."""
    queues = "all" if worker.queues is None else ", ".join(worker.queues)
    if worker.exclude_queues:
        queues += f" but {', '.join(worker.exclude_queues)}"
    jobs = ", ".join(f"{plain(job.job_type)} {span_text(job.seconds)}" for job in worker.jobs)
    return [
        plain(f"{worker.host}:{worker.pid}"), _state(worker), f"{worker.held}/{worker.capacity}",
        plain(queues), f"{span_text(worker.silent)} ago", span_text(worker.up), plain(worker.version),
        jobs or "-",
    ]  # fmt: skip


def _state(worker: WorkerFigures) -> str:
    if not worker.is_living:
        return "silent"
    if worker.asked_to_stop:
        return "stopping"
    return "stands still" if worker.stands_still else "working" if worker.held else "idle"


def as_text(overview: Overview, alerts: Iterable[Alert]) -> str:
    """Two tables, and what somebody should look at."""
    queues = [queue_cells(queue) for queue in overview.queues]
    workers = [worker_cells(worker) for worker in overview.workers]
    parts = [
        table(QUEUE_COLUMNS, queues) if queues else "There is no job, and no queue is declared.",
        table(WORKER_COLUMNS, workers) if workers else "No worker has been heard of for a day.",
    ]
    parts += [f"! {plain(alert.text)}" for alert in alerts]
    return "\n\n".join(parts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they have to be."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    ]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Names as they are, but for characters that steer a terminal."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
