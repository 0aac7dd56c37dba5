"""Waiting for the end of a job: woken by the database, with a slow poll beneath, and never a busy one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections

from . import conf, logs
from .databases import database_for
from .databases.waking import CHANNEL, ENDED, read_ended
from .exceptions import InvalidOption, JobNotFound, WaitInsideTransaction, WaitTimeout, as_seconds
from .managers.base import open_transaction_elsewhere
from .models import Job
from .states import ACTIVE
from .worker.bell import Bell
from .worker.service import use_own_connection
from .worker.wakeup import BROKEN, Wakeup, connect_directly, stop_listening, wakeup_of_file

Wake = Callable[[], object]


def wait(job: Job | UUID | str, timeout: float | timedelta) -> Job:
    """Wait until the job is DONE, DEAD or CANCELLED, and return it as it is then.

    ``job``: a job or its id. ``timeout``: seconds or timedelta. On PostgreSQL the worker that writes the
    end tells it by NOTIFY, on SQLite ``PRAGMA data_version`` does; beneath is a look once in
    JOBQUEUE["POLL_INTERVAL"], for all waiters of the process at once.

    Raises ``WaitTimeout``; ``JobNotFound`` for an id that nobody has, or a job that was removed meanwhile;
    ``WaitInsideTransaction`` in an open transaction, unless the job has ended; ``InvalidOption``.
    """
    deadline = time.monotonic() + as_seconds(timeout, "timeout")
    waiter = _Waiter(job)
    woken = threading.Event()
    with contextlib.closing(waiter):
        ended = waiter.begin(woken.set)
        while ended is None and woken.wait(max(deadline - time.monotonic(), 0)):
            woken.clear()
            ended = waiter.look()  # perhaps somebody has retried it
    return ended or waiter.last_look(timeout)


async def wait_async(job: Job | UUID | str, timeout: float | timedelta) -> Job:
    """``wait`` for async code; occupies no thread. (``await`` is a word of the language.)"""
    deadline = time.monotonic() + as_seconds(timeout, "timeout")
    waiter = _Waiter(job)
    woken = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        ended = await sync_to_async(waiter.begin)(lambda: loop.call_soon_threadsafe(woken.set))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                while ended is None:
                    await woken.wait()
                    woken.clear()
                    ended = await sync_to_async(waiter.look)()
    finally:
        await asyncio.shield(sync_to_async(waiter.close)())
    return ended or await sync_to_async(waiter.last_look)(timeout)


class _Waiter:
    """One call: what it does to the database, and that the process watches for it meanwhile."""

    def __init__(self, job: Job | UUID | str) -> None:
        self._id = _id_of(job)
        self._alias = Job.objects.db
        self._wake: Wake | None = None

    def begin(self, wake: Wake) -> Job | None:
        """Have ``wake`` called when the job has ended; or the job, if it has already."""
        if (ended := self.look()) is not None:
            return ended
        connection = connections[self._alias]
        if connection.in_atomic_block:
            raise WaitInsideTransaction(self._id, self._alias)
        self._wake = wake
        _join(self._alias, self._id, wake)
        database = database_for(self._alias)
        if database.notifies:
            database.mark_awaited(connection, self._id)
        return self.look()  # it may have ended before there was a mark

    def look(self) -> Job | None:
        """The job, if it has ended."""
        job = self._fetch()
        return job if job.is_finished else None

    def last_look(self, timeout: float | timedelta) -> Job:
        """The job, or ``WaitTimeout``."""
        job = self._fetch()
        if not job.is_finished:
            raise WaitTimeout(job, timeout)
        return job

    def close(self) -> None:
        """Nobody waits any more."""
        if self._wake is not None:
            _leave(self._alias, self._id, self._wake)

    def _fetch(self) -> Job:
        job = Job.objects.using(self._alias).filter(pk=self._id).first()
        if job is not None:
            return job
        if (elsewhere := open_transaction_elsewhere(self._alias)) is not None:
            raise WaitInsideTransaction(self._id, elsewhere)
        raise JobNotFound(self._id)


def _id_of(job: Any) -> UUID:
    job_id = job.pk if isinstance(job, Job) else job
    try:
        return job_id if isinstance(job_id, UUID) else UUID(job_id)
    except (AttributeError, TypeError, ValueError):
        raise InvalidOption(f"wait() was given {job!r:.300}: it must be a job, or the id of one.") from None


class Watch(threading.Thread):
    """The one thread of a process that looks after all jobs that are waited for in a database."""

    def __init__(self, alias: str) -> None:
        super().__init__(name="jobqueue-watch", daemon=True)
        self._alias = alias
        self.waiters: dict[UUID, list[Wake]] = defaultdict(list)  # changed under the lock
        self._stopping = False
        self._warned = False
        self._ear: Wakeup | None = None

    def stop(self) -> None:
        """End, and close the connection; returns when that is done."""
        self._stopping = True
        if (ear := self._ear) is not None:
            ear.wake()
        self.join()

    def run(self) -> None:
        """Listen and look, with a new connection whenever one breaks."""
        try:
            while not self._stopping:
                try:
                    self._watch()
                except BROKEN as error:
                    self._warn(error)
                    connections.close_all()
                    self._pause(Wakeup())
        finally:
            connections.close_all()

    def _watch(self) -> None:
        ear = self._make_ear()
        try:
            self._ear = ear
            ids = None  # what ended before this ear was there
            while not self._stopping:
                self._look(ids)
                sign = ear.wait(conf.current().POLL_INTERVAL)
                if type(ear) is Wakeup and database_for(self._alias).notifies:
                    return  # it cannot hear: try again to get one that can
                ids = ear.take() if sign and isinstance(ear, EndsWakeup) else None
        finally:
            self._ear = None
            ear.close()

    def _make_ear(self) -> Wakeup:
        if not database_for(self._alias).notifies:
            return wakeup_of_file(self._alias)
        if not conf.current().LISTEN:
            return Wakeup()
        try:
            return EndsWakeup(self._alias)
        except BROKEN as error:
            self._warn(error)
            connections[self._alias].close()
            return Wakeup()

    def _pause(self, ear: Wakeup) -> None:
        self._ear = ear
        if not self._stopping:
            ear.wait(conf.current().POLL_INTERVAL)

    def _look(self, named: Iterable[UUID] | None) -> None:
        """Wake those whose jobs have ended, or are gone."""
        with _lock:
            ids = [one for one in (list(self.waiters) if named is None else named) if one in self.waiters]
        if not ids:
            return
        active = Job.objects.using(self._alias).filter(pk__in=ids, status__in=ACTIVE)
        standing = set(active.values_list("pk", flat=True))
        with _lock:
            ended = [wake for one in ids if one not in standing for wake in self.waiters.get(one, ())]
        for wake in ended:
            with contextlib.suppress(RuntimeError):  # its event loop is closed
                wake()

    def _warn(self, error: BaseException) -> None:
        if not self._warned:
            logs.cannot_hear_ends(error)
            self._warned = True


class EndsWakeup(Wakeup):
    """LISTEN for the ends of jobs that are marked, on this thread's connection or a direct one."""

    def __init__(self, alias: str) -> None:
        super().__init__()
        self._ids: set[UUID] | None = set()
        self._own = dsn = conf.current().LISTEN_DSN
        if dsn:
            self._raw = connect_directly(alias, dsn)
        else:
            use_own_connection(alias, pooled=False)
            connections[alias].ensure_connection()
            self._raw = connections[alias].connection
        self._bell = Bell()
        [[channel]] = self._raw.execute(CHANNEL).fetchall()
        self._raw.execute(f'LISTEN "{channel}{ENDED}"')
        self._raw.add_notify_handler(lambda notification: self._hear(notification.payload))

    def wake(self) -> None:
        """End the wait."""
        super().wake()
        self._bell.ring()

    def wait(self, seconds: float, *, listen: bool = True) -> bool:
        """Wait for the socket and the bell at once; whether something was heard."""
        with self._bell:
            if not self._woken.is_set() and self._bell.wait(seconds, self._raw.fileno()):
                libpq = self._raw.pgconn
                libpq.consume_input()
                while (notification := libpq.notifies()) is not None:
                    self._hear(notification.extra.decode())
        self._woken.clear()
        return self._ids is None or bool(self._ids)

    def take(self) -> set[UUID] | None:
        """The jobs that were named since the last time; None: it may be any."""
        ids, self._ids = self._ids, set()
        return ids

    def close(self) -> None:
        """Close the bell and the direct connection; the thread closes its own."""
        stop_listening(self._raw)
        if self._own:
            self._raw.close()
        self._bell.close()

    def _hear(self, payload: str) -> None:
        ids = read_ended(payload)
        self._ids = None if ids is None or self._ids is None else self._ids | ids


_lock = threading.Lock()
_watches: dict[str, Watch] = {}


def _join(alias: str, job_id: UUID, wake: Wake) -> None:
    with _lock:
        watch = _watches.get(alias)
        if watch is None:
            watch = _watches[alias] = Watch(alias)
        watch.waiters[job_id].append(wake)
        if not watch.is_alive():
            watch.start()


def _leave(alias: str, job_id: UUID, wake: Wake) -> None:
    """The last one closes the door: no thread and no connection stay behind."""
    with _lock:
        watch = _watches[alias]
        watch.waiters[job_id].remove(wake)
        if not watch.waiters[job_id]:
            del watch.waiters[job_id]
        if watch.waiters:
            return
        del _watches[alias]
    watch.stop()


def _after_fork() -> None:
    """A child has none of its parent's threads."""
    global _lock  # noqa: PLW0603 - somebody may have held it
    _lock = threading.Lock()
    _watches.clear()


os.register_at_fork(after_in_child=_after_fork)
