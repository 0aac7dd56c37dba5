"""How a worker waits: until a time, a word from the database, or a word from within."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import Error, connections

from .. import conf, logs
from ..databases import database_for
from ..databases.waking import ANY_QUEUE, CHANNEL, NOTIFY_INTERVAL, channel_suffix, read_notice
from .bell import Bell
from .options import WorkerOptions
from .turns import Turns

try:
    import psycopg
except ImportError:  # a site on SQLite
    BROKEN: tuple[type[Exception], ...] = (Error, OSError, ValueError)
else:
    BROKEN = (psycopg.Error, Error, OSError, ValueError)

#: Seconds after which to look again for what the limit on NOTIFY has swallowed.
AFTERWARDS = NOTIFY_INTERVAL + 0.005
#: Seconds to wait at least after the connection that listens broke.
BREATH = 0.1


class Wakeup:
    """Waiting that only a word from within can end early."""

    #: Whether a sign means that there is work; else it is worth asking.
    certain = True
    #: Whether the last wait ended for a look that others were to have first.
    out_of_turn = False

    def __init__(self) -> None:
        self._woken = threading.Event()

    def wake(self) -> None:
        """End the wait, or the next one; from any thread."""
        self._woken.set()

    def wait(self, seconds: float, *, listen: bool = True) -> bool:
        """Wait at most so long; ``listen``: also for new jobs. Whether there was a sign of work."""
        woken = self._woken.wait(seconds)
        if woken:  # else a word that came just now would be lost
            self._woken.clear()
        return woken

    @property
    def reliable(self) -> bool:
        """Whether it is known that new jobs are heard of."""
        return False

    def close(self) -> None:
        """Let go of what was held."""


class SQLiteWakeup(Wakeup):
    """Looks at ``PRAGMA data_version``: it changes when any other connection has written the file."""

    #: Seconds between two looks. A look takes 2.6 µs; to wake up for it, forty times as long.
    INTERVAL = 0.012

    certain = False

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._bell = Bell()
        self._bare = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._version = self._data_version()

    def wake(self) -> None:
        """Ring the bell too."""
        super().wake()
        self._bell.ring()

    def wait(self, seconds: float, *, listen: bool = True) -> bool:
        """Look every few milliseconds."""
        if not listen:
            return super().wait(seconds)
        deadline = time.monotonic() + seconds
        changed = False
        with self._bell:
            while not (changed or self._woken.is_set()) and (left := deadline - time.monotonic()) > 0:
                self._bell.wait(min(self.INTERVAL, left))
                changed = self._has_changed()
        if woken := self._woken.is_set():
            self._woken.clear()
        return changed or woken

    @property
    def reliable(self) -> bool:
        """Unless the file cannot be asked."""
        return self._version >= 0

    def close(self) -> None:
        """Close the connection and the bell."""
        self._bare.close()
        self._bell.close()

    def _has_changed(self) -> bool:
        version = self._data_version()
        changed, self._version = version != self._version, version
        return changed

    def _data_version(self) -> int:
        try:
            return int(self._bare.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:  # the file is being replaced, say; polling goes on beneath
            return -1


class PostgreSQLWakeup(Wakeup):
    """LISTEN on the connection that claims, waited for in the same thread; or on a direct one of its own."""

    def __init__(self, options: WorkerOptions, turns: Turns) -> None:
        super().__init__()
        self._alias = options.alias
        self._queues = None if options.queues is None else frozenset(options.queues)
        self._excluded = frozenset(options.exclude_queues)
        self._turns = turns
        self._deaf_after = options.lease
        self._heard_at = -math.inf
        self._again_at = math.inf  # when to look for what was swallowed after the last notice
        self._deferred_to = math.inf  # when to look though it is the turn of others
        self._dsn = conf.current().LISTEN_DSN
        self._own: Any = None
        self._listening_on: Any = None
        self._channel = ""
        self._listened: frozenset[int | None] = frozenset()  # slots; None: the channel for everybody
        self._notified = False
        self._listening_since = 0.0
        self._warned = False
        self._bell = Bell()

    def wake(self) -> None:
        """Ring the bell too."""
        super().wake()
        self._bell.ring()

    def wait(self, seconds: float, *, listen: bool = True) -> bool:
        """Wait for the socket and the bell at once."""
        listening = listen and self._ensure_listening()
        until = time.monotonic() + seconds
        try:
            with self._bell:
                while not self._woken.is_set() and not (listening and self._notified):
                    look_at = min(until, self._again_at, self._deferred_to) if listening else until
                    if (left := look_at - time.monotonic()) <= 0:
                        break
                    if self._bell.wait(left, self._listening_on.fileno() if listening else None):
                        self._take_notifications()
        except BROKEN:
            self._drop()
            super().wait(min(seconds, BREATH))  # whatever is wrong with the socket, never spin
        if woken := self._woken.is_set():
            self._woken.clear()
        sign = woken or self._notified
        self._notified = False
        if listening:
            self._note_look(sign)
        return sign

    @property
    def reliable(self) -> bool:
        """LISTEN may be without an answer, or the connection dead, so not before, nor long after, a word.

        Every heartbeat of any worker is one.
        """
        return self._listening_on is not None and time.monotonic() - self._heard_at < self._deaf_after

    def _note_look(self, sign: bool) -> None:
        """The look that comes now is also that which was put off."""
        now = time.monotonic()
        self.out_of_turn = not sign and self._deferred_to <= now
        self._deferred_to = math.inf
        if self._again_at <= now:
            self._again_at = math.inf

    def close(self) -> None:
        """Close the bell and the direct connection."""
        if self.reliable:
            stop_listening(self._listening_on)
        self._drop()
        self._bell.close()

    def _ensure_listening(self) -> bool:
        """Whether the socket to wait on is there and has said LISTEN, after a reconnect too."""
        try:
            raw = self._direct() if self._dsn else self._claiming()
            if raw is not self._listening_on:
                self._channel = raw.execute(CHANNEL).fetchone()[0]
                self._listened = frozenset()
                raw.add_notify_handler(self._on_notify)
            if (wanted := frozenset([None, *self._turns.slots])) != self._listened:
                # In one go, so that not a word is missed in between.
                raw.execute("; ".join(self._changes(wanted)))
                self._notified |= not wanted <= self._listened  # a job may have come before: look once
                self._listened = wanted
            if raw is not self._listening_on:
                self._listening_on, self._listening_since = raw, time.monotonic()
            elif time.monotonic() - max(self._listening_since, self._heard_at) > self._deaf_after:
                self._warn("nothing was heard, not even a heartbeat; is there a pooler in transaction mode?")
            return True
        except BROKEN as error:
            self._warn(error)
            self._drop()
            return False

    def _warn(self, problem: object) -> None:
        if not self._warned:
            logs.cannot_listen(problem)
            self._warned = True

    def _changes(self, wanted: frozenset[int | None]) -> Iterator[str]:
        for verb, slots in (("LISTEN", wanted - self._listened), ("UNLISTEN", self._listened - wanted)):
            yield from (f'{verb} "{self._channel}{channel_suffix(slot)}"' for slot in slots)

    def _claiming(self) -> Any:
        connection = connections[self._alias]
        connection.ensure_connection()
        return connection.connection

    def _direct(self) -> Any:
        if self._own is None or self._own.closed:
            self._own = connect_directly(self._alias, self._dsn or "")
        return self._own

    def _take_notifications(self) -> None:
        libpq = self._listening_on.pgconn
        libpq.consume_input()
        while (notification := libpq.notifies()) is not None:
            self._hear(notification.extra.decode())

    def _on_notify(self, notification: Any) -> None:
        self._hear(notification.payload)

    def _hear(self, payload: str) -> None:
        now = self._heard_at = time.monotonic()
        notice = read_notice(payload)
        if notice is None or not self._serves(notice.queue):
            return
        if delay := self._turns.delay(notice):
            self._deferred_to = min(self._deferred_to, now + delay)
            return
        self._notified = True
        if notice.last:
            self._again_at = now + AFTERWARDS

    def _serves(self, queue: str) -> bool:
        if queue == ANY_QUEUE:
            return True
        return (self._queues is None or queue in self._queues) and queue not in self._excluded

    def _drop(self) -> None:
        if self._own is not None:
            with contextlib.suppress(Exception):
                self._own.close()
        elif self._listening_on is not None:
            connections[self._alias].close()
        self._own = self._listening_on = None
        self._heard_at = -math.inf


def connect_directly(alias: str, dsn: str) -> Any:
    """A connection of its own to LISTEN on; it notices within half a minute when the server is gone."""
    given = psycopg.conninfo.conninfo_to_dict(dsn)
    return psycopg.connect(dsn, autocommit=True, **database_for(alias).timeouts(given))


def stop_listening(raw: Any) -> None:
    """Before closing: a server that has a word to deliver to nobody logs it as FATAL."""
    with contextlib.suppress(*BROKEN):
        raw.execute("UNLISTEN *")


def make_wakeup(options: WorkerOptions, turns: Turns) -> Wakeup:
    """The best way to wait on this database."""
    alias = options.alias
    if database_for(alias).notifies:
        return PostgreSQLWakeup(options, turns) if conf.current().LISTEN else Wakeup()
    return wakeup_of_file(alias)


def wakeup_of_file(alias: str) -> Wakeup:
    """The best way to wait on a SQLite file; of what is in memory nobody else can tell."""
    name = str(connections[alias].settings_dict["NAME"])
    return Wakeup() if ":memory:" in name or name.startswith("file:") else SQLiteWakeup(Path(name))
