"""What the tables say at this moment: five statements, however many jobs and queues there are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.db import connections

from .. import conf
from ..databases import database_for
from ..managers.base import queue_alias
from ..models import Job, Queue
from .figures import Count, Overview, QueueFigures, RunningJob, WorkerFigures
from .history import History, taking, waiting

#: Jobs are counted up to here.
CAP = 10_000
#: Queues, priorities within them, and workers that are looked at.
QUEUES, LANES, WORKERS = 200, 1_000, 200
#: Running jobs that are shown of a worker in one queue.
SHOWN = 3
#: Seconds in which dead letters are "lately".
LATELY = 3_600.0


def look(history: History, alias: str | None = None) -> Overview:
    """Queues and workers as they are now, with what the history says of them."""
    view = _View(alias or queue_alias(Job))
    view.read_settings()
    view.read_pending()
    view.read_dead()
    view.read_workers()
    view.read_running()
    view.add_history(history)
    return view.overview()


class _View:
    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._database = database_for(alias)
        self._connection = connections[alias]
        self._queues: dict[str, QueueFigures] = {}
        self._workers: dict[str, WorkerFigures] = {}

    def _queue(self, name: str) -> QueueFigures:
        return self._queues.setdefault(name, QueueFigures(name))

    def read_settings(self) -> None:
        rows = Queue.objects.db_manager(self._alias).order_by("name")
        for name, paused, retention in rows.values_list("name", "paused", "retention")[:LANES]:
            queue = self._queue(name)
            queue.paused, queue.retention = paused, retention
        for name in conf.current().QUEUES or ():
            self._queue(name)

    def read_pending(self) -> None:
        for name, _, oldest, due, pending in self._database.pending_lanes(self._connection, CAP + 1, LANES):
            queue = self._queue(name)
            queue.due = capped(queue.due.number + due)
            queue.pending = capped(queue.pending.number + pending)
            if oldest >= 0 and due:
                queue.oldest = max(queue.oldest or 0.0, float(oldest))

    def read_dead(self) -> None:
        rows = self._database.dead_letters(self._connection, CAP + 1, LATELY)
        all_there_is = sum(row[1] for row in rows) <= CAP
        for name, dead, lately, before in rows:
            queue = self._queue(name)
            queue.dead = Count(min(dead, CAP), not all_there_is)
            queue.dead_lately, queue.dead_before = int(lately), int(before)

    def read_workers(self) -> None:
        lease = conf.current().LEASE
        rows = self._database.worker_rows(self._connection, WORKERS + 1)
        for one, host, pid, queues, left_out, capacity, version, up, silent, late, asked in rows:
            self._workers[one] = WorkerFigures(
                one, host, pid, _names(queues), _names(left_out) or [], capacity, version,
                float(up), float(silent), None if late is None else float(late) - float(silent),
                bool(asked), lease,
            )  # fmt: skip
            for name in self._workers[one].queues or ():
                self._queue(name)

    def read_running(self) -> None:
        rows = self._database.running_jobs(self._connection, CAP + 1, SHOWN)
        seen: set[tuple[str, str]] = set()
        for name, worker_id, held, one, job_type, seconds in rows:
            worker = self._workers.get(worker_id)
            if worker is not None and len(worker.jobs) < SHOWN:
                worker.jobs.append(RunningJob(self._database.to_id(one), job_type, name, float(seconds)))
            if (name, worker_id) in seen:
                continue
            seen.add((name, worker_id))
            queue = self._queue(name)
            queue.running = capped(queue.running.number + held)
            if worker is not None:
                worker.held += held

    def add_history(self, history: History) -> None:
        for name, tally in history.by_queue.items():
            queue = self._queue(name)
            queue.done_per_minute = tally.done / history.minutes
            queue.failed = tally.failed
            queue.waiting, queue.taking = waiting(tally), taking(tally)

    def overview(self) -> Overview:
        workers = list(self._workers.values())[:WORKERS]
        for queue in self._queues.values():
            queue.workers = sum(worker.serves(queue.name) for worker in workers)
        queues = _by_name(self._queues.values())
        return Overview(
            queues[:QUEUES], workers, max(len(queues) - QUEUES, 0), more_workers=len(self._workers) > WORKERS
        )


def capped(number: int) -> Count:
    """So many; past the cap, that and more."""
    return Count(min(number, CAP), number > CAP)


def _by_name(queues: Iterable[QueueFigures]) -> list[QueueFigures]:
    return sorted(queues, key=lambda queue: queue.name)


def _names(value: Any) -> list[str] | None:
    """A JSON list as the database gave it."""
    names = json.loads(value) if isinstance(value, str) else value
    return None if names is None else [str(name) for name in names]
