"""A worker process: what runs in it from its start to its end."""

from __future__ import annotations

import logging
import os
import sys
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any
from uuid import UUID

import django
import psutil

from .board import Board
from .options import WorkerOptions
from .shutdown import TICK, Exit, StopSignals, die_with_parent

if TYPE_CHECKING:
    from .worker import Worker


@dataclass(frozen=True)
class Leaving:
    """What the process says when it claims no more: which of its jobs cannot be ended but with it."""

    stuck: frozenset[UUID] = frozenset()


#: Seconds: the supervisor knows when running jobs have had their time.
FOR_EVER = 10.0**8


def main(options: WorkerOptions, memory: Any, pipe: Connection, parent: int, log_level: int | None) -> None:
    """The process's target. Sends its identity through the pipe, then works until told to stop."""
    signals = StopSignals()
    signals.install(ignore_interrupt=True)
    die_with_parent(parent)
    if log_level is not None:
        log_to_stderr(log_level)
    django.setup()
    from .worker import Worker

    worker = Worker(options=options, board=Board(memory))
    pipe.send(worker.facts)
    threading.Thread(
        target=_watch_parent, args=(pipe, signals, worker), name="jobqueue-parent", daemon=True
    ).start()
    worker.start()
    code = _work(worker, signals)
    if code in (Exit.RECYCLED, Exit.STUCK):
        pipe.send(Leaving())  # the next process need not wait for the last job of this one
    if code is Exit.STUCK:
        worker.wait_for_others()
        pipe.send(Leaving(worker.limits.stuck))
        worker.stop(timeout=0)
    else:
        worker.stop(timeout=None if code is Exit.UNFIT else FOR_EVER)
    worker.board.farewell(code)
    logging.shutdown()
    sys.stdout.flush()
    # Not sys.exit: a handler's own thread must not keep alive a process that has nothing left to do.
    os._exit(code)


def _work(worker: Worker, signals: StopSignals) -> Exit:
    """Wait for a reason to leave."""
    options = worker.options
    process = psutil.Process()
    while not signals.wait(TICK):
        if worker.died.is_set():
            return Exit.UNFIT
        if worker.limits.stuck:
            return Exit.STUCK
        if worker.poller.drained.is_set():
            return Exit.DRAINED
        if options.max_jobs is not None and worker.poller.claimed >= options.max_jobs:
            return Exit.RECYCLED
        if options.max_memory is not None and process.memory_info().rss > options.max_memory * 1_048_576:
            return Exit.RECYCLED
    return Exit.DONE


def _watch_parent(pipe: Connection, signals: StopSignals, worker: Worker) -> None:
    """ "stop" from the supervisor is a graceful stop; the pipe's end is the supervisor's death."""
    try:
        while pipe.recv():
            worker.ask_to_stop()
            signals.ask()
    except (EOFError, OSError):
        os._exit(Exit.DONE)


def log_to_stderr(level: int) -> None:
    """Show the queue's log lines, where the project's LOGGING does not say what to do with them."""
    logger = logging.getLogger("django_jobqueue")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)
