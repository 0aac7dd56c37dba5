"""Async handlers on an event loop of their own, each a task with an empty context."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from .. import logs
from ..attempts import Attempt
from ..execution import execute_async
from .pool import Pool


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
        if not self._durable:
            self._settle(attempt, outcome)
            return
        written = asyncio.Event()
        attempt.on_settled = functools.partial(self._tell, written)
        self._settle(attempt, outcome)
        await written.wait()

    def _tell(self, written: asyncio.Event) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(written.set)
