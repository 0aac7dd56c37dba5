"""The life of everything that runs beside: start, stop, and a death that is noticed."""

from __future__ import annotations

import copy
import math
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from django.db import connections

from .. import logs
from ..databases import database_for

#: Seconds between two lines about the same trouble: at first, at the most; and of calm until it is a new one.
FIRST_SILENCE, LONGEST_SILENCE, CALM = 1.0, 900.0, 300.0


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
    """Growing pauses with jitter while the database is away, and few lines in the log about it.

    Each line doubles the silence after it. That is forgotten only after a time of calm, so a database that
    comes and goes writes no more than one that is away.
    """

    def __init__(self, what: str, most: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._most = most
        self._clock = clock
        self._failures = 0
        self._failed_at = self._speak_at = -math.inf
        self._silence = FIRST_SILENCE
        self._told = False  # of the failures since it last worked

    def failed(self, error: BaseException) -> float:
        """Note a failure; seconds to wait now."""
        now = self._clock()
        if now - self._failed_at > CALM:
            self._speak_at, self._silence = now, FIRST_SILENCE
        self._failed_at = now
        self._failures += 1
        if now >= self._speak_at:
            logs.database_away(self._what, error, self._failures)
            self._told = True
            self._speak_at = now + self._silence
            self._silence = min(self._silence * 2, LONGEST_SILENCE)
        pause: float = min(0.1 * 2 ** min(self._failures, 16), self._most)
        return pause * random.uniform(0.5, 1)  # noqa: S311 - spread, not a secret

    def worked(self) -> None:
        """It works (again)."""
        if self._told:
            logs.database_back(self._what, self._failures)
        self._failures, self._told = 0, False


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


def use_own_connection(alias: str, *, pooled: bool = True) -> None:
    """Give this thread a connection that notices within half a minute when the server is gone without a word.

    What ``OPTIONS`` say goes before. Outside of ``OPTIONS["pool"]`` unless ``pooled``: a connection that
    LISTENs cannot be handed back. Connections of a pool are as the project wants them.
    """
    shared = connections[alias]
    options = dict(shared.settings_dict["OPTIONS"])
    if not pooled:
        options.pop("pool", None)
    if not options.get("pool"):
        options = {**database_for(alias).timeouts(options), **options}
    if options != shared.settings_dict["OPTIONS"]:
        settings = copy.deepcopy({**shared.settings_dict, "OPTIONS": {}}) | {"OPTIONS": options}
        connections[alias] = type(shared)(settings, alias)
