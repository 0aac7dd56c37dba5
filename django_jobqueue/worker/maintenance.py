"""Housekeeping by the workers themselves, safe with any number of them: reap, expire, prune, forget."""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections, reset_queries

from ..databases.waking import ANY_QUEUE, wake_workers
from ..managers.prune import PruneMarks
from ..managers.rescue import SWEEP
from ..models import Job, Statistic, Worker
from .options import WorkerOptions
from .service import Backoff, Service, use_own_connection

T = TypeVar("T")

#: Seconds between two looks for old jobs and silent workers.
PRUNE_INTERVAL = 60.0
#: Heartbeats between two looks for leases that are over; varied, so that workers do not look in step.
LOOK = (0.7, 0.8)
#: Heartbeats after which a lease that was over is over for good: all living workers have renewed by then.
#: With a look before it, it is two at most.
SECOND_LOOK = 1.15
#: Jobs pruned in one go; then heartbeats and reaping have their turn.
PRUNE_MOST = 5_000


@dataclass(frozen=True)
class Departed:
    """A worker process that has ended: which of its jobs had started, and whether it was meant to end.

    ``stuck``: jobs that had to be ended with it.
    """

    worker_id: str
    started: list[tuple[UUID, float]]
    lost: bool
    stuck: Collection[UUID] = ()


class Maintenance(Service):
    """Takes back the jobs of departed workers at once, and of others when their leases are over."""

    def __init__(self, options: WorkerOptions, on_death: Callable[[str], None]) -> None:
        super().__init__("maintenance", on_death)
        self._options = options
        self._departed: queue.SimpleQueue[Departed | None] = queue.SimpleQueue()
        self._backoff = Backoff("taking care of the queue", options.heartbeat / 2)
        # An outage longer than the leases must not cost every living worker its jobs: after a start one
        # heartbeat passes before anything is reaped, after an outage a whole lease from the first answer.
        self._reap_from = time.monotonic() + options.heartbeat
        self._interrupted = False
        self._overdue: set[UUID] = set()  # jobs whose lease was over at the last look
        self._prune_marks: PruneMarks = {}
        self._prune_from = time.monotonic() + random.uniform(0, PRUNE_INTERVAL)  # noqa: S311 - spread

    def departed(self, worker: Departed) -> None:
        """This worker process has ended; see to its jobs."""
        self._departed.put(worker)

    def hold_back(self) -> None:
        """The database was away until now: others need a lease's time to renew before anything is reaped."""
        self._interrupted = True

    def ask_to_stop(self) -> None:
        """See to the workers that have departed, then end."""
        super().ask_to_stop()
        self._departed.put(None)

    def run(self) -> None:
        """Sweep every heartbeat, departed workers at once."""
        use_own_connection(self._options.alias)
        self._reap_from = time.monotonic() + self._options.heartbeat
        while True:
            departed = self._next_departed()
            if departed is not None:
                self._until_done(lambda departed=departed: self._take_over(departed))  # type: ignore[misc]
            elif self.stopping.is_set():
                return
            else:
                self._attempt(self._sweep)

    def _next_departed(self) -> Departed | None:
        beats = SECOND_LOOK if self._overdue else random.uniform(*LOOK)  # noqa: S311 - spread
        pause = 0.0 if self.stopping.is_set() else self._options.heartbeat * beats
        begun = time.monotonic()
        try:
            return self._departed.get(timeout=pause)
        except queue.Empty:
            if time.monotonic() - begun > pause + self._options.heartbeat / 2:
                self._interrupted = True  # this process was stopped, and perhaps the whole machine
            return None

    def _exhaust(self, sweep: Callable[[], int]) -> None:
        """Sweep until a statement finds less than it may take, but no longer than a heartbeat."""
        until = time.monotonic() + self._options.heartbeat
        while self._timed(sweep) >= SWEEP and time.monotonic() < until:
            pass

    def _timed(self, statement: Callable[[], T]) -> T:
        """Its answer. If that takes longer than a heartbeat, others could not renew meanwhile.

        PostgreSQL stood still; or somebody held SQLite's write lock, for which those who wait come in any
        order. The one who looks at leases must not be the first.
        """
        begun = time.monotonic()
        answer = statement()
        self._interrupted |= time.monotonic() - begun > self._options.heartbeat
        return answer

    def _until_done(self, action: Callable[[], None]) -> None:
        while not self._attempt(action):
            pass

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Do it; after an error of the database drop the connection, hold back reaping, pause."""
        begun = time.monotonic()
        try:
            reset_queries()
            action()
            self._backoff.worked()
            done = True
        except (DatabaseError, InterfaceError) as error:
            connections[self._options.alias].close()
            if self.stopping.wait(self._backoff.failed(error)):
                time.sleep(0.1)
            done = False
        self._interrupted |= not done or time.monotonic() - begun > self._options.lease / 2
        return done

    def _reap(self) -> None:
        """Reap what two looks found over: so its worker had a heartbeat's time to renew it in between.

        One look cannot tell a lost worker from one that comes to renew in a moment: until just now the server
        may have stood still, another transaction may have had the row locked, or on SQLite, where it is
        the machine's, the clock may have been set or the machine have slept.
        """
        if self._interrupted:
            self._interrupted = False
            self._reap_from = time.monotonic() + self._options.lease
        jobs = Job.objects.db_manager(self._options.alias)
        if self._overdue and time.monotonic() >= self._reap_from:
            self._exhaust(lambda: jobs.reap(only=self._overdue))
        self._overdue = self._timed(jobs.overdue)

    def _take_over(self, departed: Departed) -> None:
        """Of a lost worker, jobs that had started lose the attempt; those of a stopped one are released.

        Those that were stuck fail.
        """
        jobs = Job.objects.db_manager(self._options.alias)
        if departed.stuck:
            started = [one for one in departed.started if one[0] in departed.stuck]
            jobs.record_started(departed.worker_id, started)
            jobs.fail_stuck(departed.worker_id, departed.stuck)
        if departed.lost:
            jobs.record_started(departed.worker_id, departed.started)
            while jobs.reap(worker_id=departed.worker_id, exact=True):
                pass
        else:
            released = jobs.release_held(departed.worker_id, started={one for one, _ in departed.started})
            wake_workers(self._options.alias, {ANY_QUEUE: released} if released else {})
        Worker.objects.db_manager(self._options.alias).forget(departed.worker_id)

    def _sweep(self) -> None:
        jobs = Job.objects.db_manager(self._options.alias)
        self._exhaust(jobs.expire)
        self._reap()
        if time.monotonic() >= self._prune_from:
            self._prune_from = time.monotonic() + PRUNE_INTERVAL
            if jobs.prune(most=PRUNE_MOST, marks=self._prune_marks) >= PRUNE_MOST:
                self._prune_from = 0.0
            Worker.objects.db_manager(self._options.alias).forget_silent()
            Statistic.objects.db_manager(self._options.alias).prune()
