"""The life of everything that runs beside: start, stop, and a death that is noticed."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from django.db import connections

from .. import logs
from ..databases import database_for


class Service(ABC):
    """A thread with a loop. ``stop`` waits, may be called twice and before ``start``."""

    def __init__(self, name: str, on_death: Callable[[str], None]) -> None:
        self.name = name
        self.stopping = threading.Event()
        self._on_death = on_death
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._live, name=f"jobqueue-{self.name}", daemon=True)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Set the flag and wake the loop; do not wait."""
        self.stopping.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Ask and wait; whether the thread has ended."""
        self.ask_to_stop()
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @abstractmethod
    def run(self) -> None:
        """The loop; returns when ``stopping`` is set."""

    def _live(self) -> None:
        try:
            self.run()
        except BaseException:
            logs.service_died(self.name)
            self._on_death(self.name)
            raise
        finally:
            connections.close_all()


class Backoff:
    """Growing pauses with jitter while the database is away, and one log line for each doubling."""

    def __init__(self, what: str, most: float) -> None:
        self._what = what
        self._most = most
        self._failures = 0

    def failed(self, error: BaseException) -> float:
        """Note a failure; seconds to wait now."""
        self._failures += 1
        if self._failures & (self._failures - 1) == 0:  # 1st, 2nd, 4th, 8th …: an hour is a dozen lines
            logs.database_away(self._what, error, self._failures)
        pause: float = min(0.1 * 2 ** min(self._failures, 16), self._most)
        return pause * random.uniform(0.5, 1)  # noqa: S311 - spread, not a secret

    def worked(self) -> None:
        """It works (again)."""
        if self._failures:
            logs.database_back(self._what, self._failures)
            self._failures = 0


class OwnConnection:
    """What a service does to the connection that it alone uses, each time it is made anew."""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._prepared: Any = None

    def ensure(self) -> None:
        """Connect if need be; on a new connection let the server keep plans."""
        connection = connections[self._alias]
        connection.ensure_connection()
        if connection.connection is self._prepared:
            return
        # A connection of a pool goes back to it, to people who expect it as it was.
        if not connection.settings_dict["OPTIONS"].get("pool"):
            database_for(self._alias).keep_plans(connection)
        self._prepared = connection.connection
