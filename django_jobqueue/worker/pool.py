"""Where handlers run: plain ones in threads, async ones on an event loop of their own."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections

from .. import logs
from ..execution import Attempt, execute, execute_async
from ..managers.outcomes import Outcome
from .holdings import Holdings

#: Seconds: no more jobs wait in a process than start within this time.
AHEAD = 0.1
#: Seconds a job may wait here while nothing starts, before it is given back to whoever is free.
STALE = 1.0
#: Jobs that wait in a process at the most, however short they are.
MOST_AHEAD = 500

Settle = Callable[[Attempt, Outcome | None], None]


class Pace:
    """How long jobs ran lately, and so how many may wait here: long ones are never hoarded."""

    def __init__(self) -> None:
        self._mean: float | None = None

    def ran(self, seconds: float) -> None:
        """A job ran so long."""
        self._mean = seconds if self._mean is None else self._mean + 0.1 * (seconds - self._mean)

    def forget(self) -> None:
        """What was thought short turned out long: nothing waits here until a job has ended."""
        self._mean = None

    def ahead(self, width: int) -> int:
        """How many may wait, with so many running at once."""
        if self._mean is None:
            return 0
        return min(int(width * AHEAD / max(self._mean, 1e-6)), MOST_AHEAD)


class Pool(ABC):
    """So many handlers at once, and some jobs that wait for their turn, oldest claim first."""

    def __init__(
        self,
        width: int,
        alias: str,
        holdings: Holdings,
        settle: Settle,
        on_room: Callable[[], None],
        on_death: Callable[[str], None],
    ) -> None:
        self.width = width
        self.stopping = threading.Event()
        self._alias = alias
        self._holdings = holdings
        self._settle = settle
        self._on_room = on_room
        self._on_death = on_death
        self._pace = Pace()
        self._running = 0
        self._moved = time.monotonic()  # when a job last came in or started

    @property
    @abstractmethod
    def waiting(self) -> int:
        """Jobs that have not started."""

    @property
    def idle(self) -> int:
        """How many could start at once."""
        return max(self.width - self._running - self.waiting, 0)

    @property
    def room(self) -> int:
        """How many jobs to claim now: none until half of those that may wait have started."""
        ahead = self._pace.ahead(self.width)
        missing = self.width + ahead - self._running - self.waiting
        return missing if self.idle or missing * 2 > ahead else 0

    @property
    def hoards(self) -> bool:
        """Whether jobs wait here that turned out to be long, and others may be free for them."""
        waiting = self.waiting
        if not waiting:
            return False
        return (
            time.monotonic() - self._moved > STALE or waiting > 2 * self._pace.ahead(self.width) + self.width
        )

    def give_back_hoard(self) -> list[Attempt]:
        """The jobs that others may be free for; no more of them are claimed ahead for now."""
        if not self.hoards:
            return []
        self._pace.forget()
        return self.take_back()

    @abstractmethod
    def put(self, attempts: Sequence[Attempt]) -> None:
        """Run these as soon as there is a place."""

    @abstractmethod
    def take_back(self) -> list[Attempt]:
        """The jobs that have not started; they will not start here any more."""

    @abstractmethod
    def stop(self, timeout: float | None) -> bool:
        """End when running handlers have ended; whether they have."""

    def _ended(self, attempt: Attempt) -> None:
        attempt.ended = True
        if attempt.started is not None:
            self._pace.ran(time.monotonic() - attempt.started)


class ThreadPool(Pool):
    """Plain handlers."""

    def __init__(self, *shared: Any) -> None:
        super().__init__(*shared)
        self._queue: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def put(self, attempts: Sequence[Attempt]) -> None:
        self._moved = time.monotonic()
        for attempt in attempts:
            self._queue.put(attempt)
        while len(self._threads) < self.width and self.waiting > len(self._threads) - self._running:
            self._start_thread()

    def take_back(self) -> list[Attempt]:
        taken: list[Attempt] = []
        while True:
            try:
                attempt = self._queue.get_nowait()
            except queue.Empty:
                return taken
            if attempt is None:  # a word to a thread to end: it stays
                self._queue.put(None)
                return taken
            taken.append(attempt)

    def _start_thread(self) -> None:
        name = f"jobqueue-handler-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, timeout: float | None) -> bool:
        self.stopping.set()
        for _ in self._threads:
            self._queue.put(None)
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if deadline is None else max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        try:
            while (attempt := self._queue.get()) is not None:
                with self._lock:
                    self._running += 1
                try:
                    self._run(attempt)
                finally:
                    with self._lock:
                        self._running -= 1
                    self._on_room()
        except BaseException:  # not the handler's: execute() never raises
            logs.service_died("handler thread")
            self._on_death("handler thread")
        finally:
            connections.close_all()

    def _run(self, attempt: Attempt) -> None:
        if not self._holdings.wait_until_held(attempt, self.stopping):
            self._holdings.remove([attempt])
            return
        self._moved = self._holdings.begin(attempt)
        outcome = execute(attempt, self._alias)
        self._ended(attempt)
        self._settle(attempt, outcome)


class AsyncPool(Pool):
    """Async handlers, each a task with an empty context."""

    def __init__(self, *shared: Any) -> None:
        super().__init__(*shared)
        self._queue: deque[Attempt] = deque()
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._empty = False  # stopped, and the last handler has ended

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def put(self, attempts: Sequence[Attempt]) -> None:
        self._moved = time.monotonic()
        self._queue.extend(attempts)
        if self._thread is None:
            self._start_thread()
        self._loop.call_soon_threadsafe(self._start_waiting)

    def take_back(self) -> list[Attempt]:
        taken = []
        while self._queue:
            try:
                taken.append(self._queue.popleft())
            except IndexError:  # the loop was faster
                break
        return taken

    def _start_thread(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="jobqueue-async-handlers", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None) -> bool:
        self.stopping.set()
        if self._thread is None or not self._thread.is_alive():
            return True
        with contextlib.suppress(RuntimeError):  # the loop has just closed
            self._loop.call_soon_threadsafe(self._stop_if_empty)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._empty:
                # asyncio lets SystemExit and KeyboardInterrupt of any task through: a handler's, so go on.
                with contextlib.suppress(SystemExit, KeyboardInterrupt):
                    self._loop.run_forever()
        except BaseException as error:
            logs.service_died("async handlers", error)
            self._on_death("async handlers")
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _stop_if_empty(self) -> None:
        if self.stopping.is_set() and not self._tasks:
            self._empty = True
            self._loop.stop()

    def _start_waiting(self) -> None:
        """On the loop: start as many as there are places for."""
        while self._queue and len(self._tasks) < self.width:
            try:
                attempt = self._queue.popleft()
            except IndexError:
                break
            task = self._loop.create_task(self._run(attempt), context=contextvars.Context())
            self._tasks.add(task)
            self._running = len(self._tasks)
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._running = len(self._tasks)
        if not task.cancelled() and (error := task.exception()) is not None:
            logs.service_died("async handlers", error)
            self._on_death("async handlers")
        self._start_waiting()
        self._on_room()
        self._stop_if_empty()

    async def _run(self, attempt: Attempt) -> None:
        while not self._holdings.is_held(attempt):
            if attempt.lost or self.stopping.is_set():
                self._holdings.remove([attempt])
                return
            await asyncio.sleep(0.1)
        if attempt.lost:
            self._holdings.remove([attempt])
            return
        self._moved = self._holdings.begin(attempt)
        outcome = await execute_async(attempt)
        self._ended(attempt)
        self._settle(attempt, outcome)
