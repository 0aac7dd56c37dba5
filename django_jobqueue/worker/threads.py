"""Plain handlers, each in a thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from typing import Any

from django.db import connections

from .. import logs
from ..attempts import Attempt
from ..execution import execute
from .isolation import Cell
from .pool import Pool


class ThreadPool(Pool):
    """Plain handlers."""

    def __init__(self, *shared: Any, interrupt_grace: float) -> None:
        super().__init__(*shared)
        self._interrupt_grace = interrupt_grace
        self._queue: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._own = threading.local()

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
            if (cell := getattr(self._own, "cell", None)) is not None:
                cell.close()

    def _cell(self) -> Cell:
        """This thread's own process for isolated jobs; it starts with the first."""
        if not hasattr(self._own, "cell"):
            self._own.cell = Cell(self._alias, self._interrupt_grace)
        cell: Cell = self._own.cell
        return cell

    def _run(self, attempt: Attempt) -> None:
        if not self._holdings.wait_until_held(attempt, self.stopping):
            self._holdings.remove([attempt])
            return
        self._moved = self._holdings.begin(attempt)
        outcome = self._cell().execute(attempt) if attempt.isolated else execute(attempt, self._alias)
        self._ended(attempt)
        if not self._durable:
            self._settle(attempt, outcome)
            return
        written = threading.Event()
        attempt.on_settled = written.set
        self._settle(attempt, outcome)
        written.wait()
