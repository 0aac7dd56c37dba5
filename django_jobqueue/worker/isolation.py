"""Handlers in a process of their own: it can be killed whatever it does, and given a bound of memory."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from types import FrameType
from typing import TYPE_CHECKING, Any

from .. import logs
from ..exceptions import JobCancelled, JobTimeout, ProcessLost
from ..interrupts import TOLD, Interruption, absorb, interrupt
from .shutdown import die_with_parent

if TYPE_CHECKING:
    from ..attempts import Attempt
    from ..managers.outcomes import Outcome

#: Seconds between two looks at what passes between the processes: progress up, cancel down.
TICK = 0.2
#: Seconds between two words of a handler about its progress that are passed on.
REPORT_INTERVAL = 0.1
#: Seconds in which a child process must have set up Django and begun with its job.
START_WITHIN = 60.0
MEBIBYTE = 1_048_576

#: What stands where in the shared memory: the child's process id; when its job began (monotonic, ns) and in
#: which process; and whether it is to end.
PID, BEGUN, RUNS_IN, END = range(4)
ASKED, OUT_OF_TIME = 1, 2

_spawn = multiprocessing.get_context("spawn")


class Cell:
    """A child process that runs one job at a time, started with the first; owned by one handler thread."""

    def __init__(self, alias: str, grace: float) -> None:
        self._alias = alias
        self._grace = grace
        self._memory = _spawn.RawArray("q", 4)
        self._reports, self._theirs = _spawn.Pipe(duplex=False)
        self._pool: Any = None

    def execute(self, attempt: Attempt) -> Outcome | None:
        """``execution.execute`` in the child process. Never raises."""
        from ..execution import outcome_of

        try:
            return self._execute(attempt)
        except BaseException as error:
            interruption = attempt.interruption
            return outcome_of(error if interruption is None else interruption.cause, attempt)
        finally:
            if attempt.interruption is not None:
                self.close()  # a signal may still be on its way to it

    def _execute(self, attempt: Attempt) -> Outcome | None:
        self._memory[BEGUN] = self._memory[END] = 0
        future = self._schedule(attempt)
        attempt.runner = functools.partial(self._interrupt, attempt)
        try:
            return self._wait(future, attempt)
        finally:
            attempt.runner = None
            if attempt.interruption is not None:
                absorb(attempt.interruption)

    def _schedule(self, attempt: Attempt) -> Future[Outcome | None]:
        given = (tuple(attempt.job), attempt.worker_id, attempt.claimed, attempt.started, attempt.limit)
        for _ in range(2):
            if self._pool is None:
                self._pool = self._new_pool()
            try:
                future: Future[Outcome | None] = self._pool.schedule(run, (given, self._alias))
                return future
            except (BrokenProcessPool, RuntimeError):  # its process died while it had nothing to do
                self.close()
        raise ProcessLost("its process could not be started")

    def _new_pool(self) -> Any:
        from pebble import ProcessPool

        shared = (self._memory, self._theirs, os.getpid())
        return ProcessPool(max_workers=1, initializer=begin, initargs=shared, context=_spawn)

    def _wait(self, future: Future[Outcome | None], attempt: Attempt) -> Outcome | None:
        from pebble import ProcessExpired

        start_by = time.monotonic() + START_WITHIN
        while True:
            try:
                return future.result(TICK)
            except TimeoutError:
                self._pass_on(attempt)
                if not self._memory[BEGUN] and time.monotonic() > start_by:
                    self.close()
                    raise ProcessLost(f"its process did not start within {START_WITHIN:g} s") from None
            except (ProcessExpired, BrokenProcessPool) as error:
                code = getattr(error, "exitcode", None)
                raise ProcessLost(f"its process ended before it did (exit code {code})") from None

    def _pass_on(self, attempt: Attempt) -> None:
        """Progress up, cancel and the end of its time down; and the end, if it does not come to one."""
        while self._reports.poll():
            attempt.progressed(*self._reports.recv())
        begun, limit = self._memory[BEGUN], attempt.limit
        interruption = attempt.interruption
        if begun and self._memory[PID] != self._memory[RUNS_IN]:  # os._exit(0): there is another one already
            raise ProcessLost("its process ended before it did (exit code 0)")
        if interruption is not None:
            if time.monotonic() >= interruption.at + self._grace:
                self.close()
                raise interruption.cause
        elif begun and limit is not None and time.monotonic() >= begun / 1e9 + limit:
            cause = attempt.out_of_time()
            logs.interrupted(attempt.job, cause)
            interrupt(attempt, cause)
        elif attempt.is_to_end():
            self._memory[END] = ASKED

    def _interrupt(self, attempt: Attempt) -> None:
        out_of_time = attempt.interruption and isinstance(attempt.interruption.cause, JobTimeout)
        self._memory[END] = OUT_OF_TIME if out_of_time else ASKED
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if pid := self._memory[PID]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._signal(signal.SIGKILL)
            self._memory[PID] = 0
            self._pool.stop()
            self._pool.join()
            self._pool = None


# In the child process.


class _Here:
    """What this child process shares with its parent, and what it does."""

    memory: Any
    reports: Connection
    attempt: Attempt | None = None


def begin(memory: Any, reports: Connection, parent: int) -> None:
    """The child process starts."""
    die_with_parent(parent)
    import django

    django.setup()
    _Here.memory, _Here.reports = memory, reports
    signal.signal(signal.SIGTERM, _on_term)
    memory[PID] = os.getpid()


def run(given: tuple[Any, ...], alias: str) -> Outcome | None:
    """One job."""
    from .. import registry
    from ..execution import execute
    from ..managers.claim import ClaimedJob

    job, worker_id, claimed, started, limit = given
    attempt = _attempt_class()(ClaimedJob(*job), worker_id, claimed)
    attempt.started, attempt.limit = started, limit
    job_type = registry.find(attempt.job.job_type)
    _Here.attempt = attempt
    _Here.memory[RUNS_IN] = os.getpid()
    _Here.memory[BEGUN] = time.monotonic_ns()
    try:
        with _bounded(job_type.max_memory if job_type else None):
            return execute(attempt, alias)
    finally:
        _Here.attempt = None


def _attempt_class() -> type[Attempt]:
    from ..attempts import Attempt

    class Isolated(Attempt):
        """Whose context reaches through to the parent."""

        __slots__ = ("reported",)

        def progressed(self, progress: float | None, note: str) -> None:
            super().progressed(progress, note)
            now = time.monotonic()
            if progress == 1 or now >= getattr(self, "reported", 0.0) + REPORT_INTERVAL:
                self.reported = now
                _Here.reports.send((self.progress, self.note))

        def is_to_end(self) -> bool:
            return bool(_Here.memory[END]) or super().is_to_end()

    return Isolated


def _on_term(number: int, frame: FrameType | None) -> None:
    """The parent interrupts the handler, if it runs; or ends a process that has nothing to do."""
    attempt = _Here.attempt
    if attempt is None:
        os._exit(0)
    if attempt.runner is None or attempt.interruption is not None:
        return
    over = _Here.memory[END] == OUT_OF_TIME
    cause = attempt.out_of_time() if over else JobCancelled("it was asked to stop")
    attempt.interruption = Interruption(cause)
    attempt.interruption.state = TOLD
    raise cause


@contextlib.contextmanager
def _bounded(mebibytes: int | None) -> Iterator[None]:
    """So much memory more than there is now; then Python raises MemoryError. On Linux."""
    if mebibytes is None or sys.platform != "linux":
        yield
        return
    import resource

    import psutil

    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    bound = psutil.Process().memory_info().data + mebibytes * MEBIBYTE
    resource.setrlimit(
        resource.RLIMIT_DATA, (bound if most == resource.RLIM_INFINITY else min(bound, most), most)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))
