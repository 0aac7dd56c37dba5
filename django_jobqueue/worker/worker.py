"""One process's pipeline: claim, run, settle. Embedded in a program, or as the work of a worker process."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from typing import Any

from .. import __version__, logs, registry
from ..managers.outcomes import Released
from ..managers.workers import WorkerFacts
from .board import SIZE, Board
from .coroutines import AsyncPool
from .health import Health
from .heartbeat import Heartbeat, Renewed
from .holdings import Holdings
from .limits import TICK, Limits
from .maintenance import Departed, Maintenance
from .options import WorkerOptions
from .poller import Poller
from .pool import Pool
from .settle import Settler
from .threads import ThreadPool


class Worker:
    """Runs jobs in threads of this process: in a web process, a script, a test.

    Takes the options of ``WorkerOptions`` (``threads``, ``async_concurrency``, ``queues``, ``lease`` …).
    Its leases are renewed by a thread, so a handler that holds the interpreter lock for longer than a
    lease loses its job; ``manage.py runworker`` renews from a process of its own and has no such limit.
    """

    def __init__(
        self, *, options: WorkerOptions | None = None, board: Board | None = None, **given: Any
    ) -> None:
        self.options = options or WorkerOptions(**given)
        self.id = uuid.uuid4().hex
        self.died = threading.Event()
        self._embedded = board is None
        self.board = board or Board.new(bytearray(SIZE))
        self.holdings = Holdings(self.board, self.options.lease)
        self._settler = Settler(
            self.id, self.options, self.holdings, self._claims, self._on_settled, self._on_death
        )
        self._pools = self._make_pools()
        self.poller = Poller(self.id, self.options, self._pools, self.holdings, self._settler, self._on_death)
        remedy = "a thread cannot be ended" if self._embedded else "its process is replaced"
        self.limits = Limits(self.options, self.holdings, remedy, self._on_death)
        self.health = Health(lambda: [self.board])
        self.facts = self._facts()
        renewed = Renewed(self.facts, self.board, self._dismissed)
        self._heartbeat = Heartbeat(self.options, lambda: [renewed], self._on_death)
        self._maintenance = Maintenance(self.options, self._on_death)
        self._started = False

    @property
    def active(self) -> int:
        """Jobs that are claimed here: waiting, running, or about to be written."""
        return len(self.holdings)

    def start(self) -> None:
        """Start claiming and running. A worker is started once; make a new one after ``stop``."""
        if self._started:
            raise RuntimeError("This worker was started before. Make a new Worker(...) to start again.")
        self._started = True
        if self._embedded:
            lease = self.options.lease
            if long := [one.name for one in registry.all_types() if (one.limit or 0) > lease]:
                logs.timeouts_outlast_lease(long, lease)
            self._heartbeat.start()
            self._maintenance.start()
        self._settler.start()
        self.limits.start()
        self.poller.start()

    def pause(self) -> None:
        """Claim no more and give back what has not started; running jobs go on."""
        self.poller.pause()
        self._release_unstarted()

    def resume(self) -> None:
        """Claim again."""
        self.poller.resume()

    def wait_for_active(self, timeout: float | None = None) -> bool:
        """Wait until no job is active here. True when there is none; False after ``timeout`` seconds.

        Usually after ``pause()``; without it, it waits for a moment in which nothing is being done.
        """
        return self.holdings.wait_until_empty(timeout)

    def stop(self, timeout: float | None = None) -> bool:
        """Claim no more, give back what has not started, wait for running handlers, write all outcomes.

        True if all ended within ``timeout`` seconds (None: JOBQUEUE["GRACE"]). Threads cannot be killed:
        what still runs then is left to its lease, which is no longer renewed.
        """
        deadline = time.monotonic() + (self.options.grace if timeout is None else timeout)
        self.ask_to_stop()
        ended = self.poller.stop(_left(deadline))
        self._release_unstarted()
        for pool in self._pools.values():
            ended = pool.stop(_left(deadline)) and ended
        self.limits.stop(1.0)
        ended = self._settler.stop(max(_left(deadline), 1.0)) and ended
        if self._embedded:
            self._heartbeat.stop(1.0)
            if ended and self._started:
                self._maintenance.departed(Departed(self.id, [], lost=False))
            self._maintenance.stop(1.0)
        return ended

    def wait_for_others(self) -> bool:
        """Claim no more, and wait at most the grace until nothing runs but what cannot be ended."""
        self.poller.stop(self.options.grace)
        self._release_unstarted()
        deadline = time.monotonic() + self.options.grace
        while (left := _left(deadline)) and self.holdings.ids - self.limits.stuck:
            time.sleep(min(left, TICK))
        return not self.holdings.ids - self.limits.stuck

    def ask_to_stop(self) -> None:
        """Claim no more; does not wait."""
        self.poller.ask_to_stop()

    def _dismissed(self) -> None:
        """Somebody has asked this worker to stop. What embeds it calls ``stop``; until then it is idle."""
        self.ask_to_stop()
        self._release_unstarted()

    def _release_unstarted(self) -> None:
        for pool in self._pools.values():
            for attempt in pool.take_back():
                self._settler.put(attempt, Released(attempt.job))

    def _make_pools(self) -> dict[bool, Pool]:
        """By "is async"; each starts with its first job."""
        shared = (
            self.options.alias,
            self.holdings,
            self._settler.put,
            self._on_room,
            self._on_death,
            self.options.durable_outcomes,
        )
        return {
            False: ThreadPool(self.options.threads, *shared, interrupt_grace=self.options.interrupt_grace),
            True: AsyncPool(self.options.async_concurrency, *shared),
        }

    def _facts(self) -> WorkerFacts:
        queues = self.options.queues
        return WorkerFacts(
            id=self.id,
            host=socket.gethostname()[:255],
            pid=os.getpid(),
            queues=None if queues is None else list(queues),
            capacity=self.options.capacity,
            version=__version__,
            exclude_queues=list(self.options.exclude_queues),
        )

    def _claims(self) -> tuple[int, int]:
        return self.poller.begun, self.poller.ended

    def _on_room(self) -> None:
        self.poller.room_made()

    def _on_settled(self, batch: Any) -> None:
        self.poller.settled(batch)

    def _on_death(self, name: str) -> None:
        logs.worker_unfit(name)
        self.died.set()
        self.poller.ask_to_stop()
        if self._embedded:
            self._heartbeat.ask_to_stop()  # nobody replaces this worker: let its leases run out


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)
