"""Waking the workers at commit: seldom, few of them, and never relied upon."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db import connections, transaction

from . import database_for
from .base import JOB_TABLE

logger = logging.getLogger("django_jobqueue")

#: NOTIFY takes a lock of the whole database at commit, so a process says "there is work in this queue" at
#: most so many times in a row, and then once in so many seconds.
BURST = 4
NOTIFY_INTERVAL = 0.02

#: Jobs of queues that are not known.
ANY_QUEUE = ""
#: Jobs that wake everybody.
EVERYBODY = 1_000_000

#: One channel per table, and so per schema: the table's own number. A single job is told on one of so many
#: channels beside it, to which few of many workers listen.
SLOTS = 16
CHANNEL = f"SELECT 'django_jobqueue_' || '{JOB_TABLE}'::regclass::oid"


_NOTIFY = f"SELECT pg_notify(({CHANNEL}) || %s, %s)"


class Notice(NamedTuple):
    """What a NOTIFY says. Workers choose by ``number`` who of them looks at once."""

    queue: str
    number: int  # at random
    jobs: int  # that came, in this and in what was swallowed before it
    last: bool  # what comes within the next NOTIFY_INTERVAL may be swallowed: look again then

    @property
    def slot(self) -> int | None:
        """By which channel it goes; None: the one for everybody."""
        return self.number % SLOTS if self.jobs == 1 else None

    def as_text(self) -> str:
        """The payload."""
        return f"{self.queue} {self.number} {self.jobs} {self.last:d}"


def read_notice(payload: str) -> Notice | None:
    """The notice in a payload; None for any other word, such as a heartbeat's empty one."""
    parts = payload.rsplit(" ", 3)  # the queue's name may have spaces
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        return None
    return Notice(parts[0], int(parts[1]), int(parts[2]), parts[3] == "1")


def channel_suffix(slot: int | None) -> str:
    """What follows the name of the channel for everybody."""
    return "" if slot is None else f"_{slot}"


#: After the name of the channel: on which the ends of jobs are told that somebody waits for.
ENDED = "_ended"
#: Ids that a NOTIFY can name; with more it says that it may be any.
NAMED = 200


def tell_waiters(alias: str, ids: Sequence[UUID]) -> None:
    """Tell at commit that these jobs have ended, which somebody waits for; in one word."""
    if not ids or not database_for(alias).notifies:
        return
    payload = ",".join(one.hex for one in ids) if len(ids) <= NAMED else ""
    transaction.on_commit(lambda: _notify_ended(alias, payload), using=alias, robust=True)


def read_ended(payload: str) -> set[UUID] | None:
    """The jobs that ``tell_waiters`` named; None: it may be any."""
    try:
        return {UUID(one) for one in payload.split(",")}
    except ValueError:
        return None


def _notify_ended(alias: str, payload: str) -> None:
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(_NOTIFY, [ENDED, payload])
    except Exception:
        logger.warning("Could not tell those who wait that jobs have ended; they will see it by polling")


class Limiter:
    """Lets ``BURST`` through, then one in ``NOTIFY_INTERVAL``, and says which is the last for now."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._at = time.monotonic()
        self._swallowed = 0

    def pass_through(self, jobs: int) -> tuple[int, bool] | None:
        """The jobs to tell of, and whether the next word may be swallowed; None: this one is."""
        now = time.monotonic()
        self._left = min(self._left + (now - self._at) / NOTIFY_INTERVAL, BURST)
        self._at = now
        if self._left < 1:
            self._swallowed += jobs
            return None
        self._left -= 1
        jobs, self._swallowed = jobs + self._swallowed, 0
        return jobs, self._left < 1


class _AtCommit:
    """What is to be told when a transaction is committed; one for all jobs that it makes in a row."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.jobs: Counter[str] = Counter()

    def __call__(self) -> None:
        for queue, jobs in self.jobs.items():
            _notify(self.alias, queue, jobs)


_limiters: dict[tuple[str, str], Limiter] = {}
_lock = threading.Lock()


def wake_workers(alias: str, queues: Iterable[str] | Mapping[str, int]) -> None:
    """Tell idle workers of ``queues`` (name -> how many jobs) once the transaction of ``alias`` is committed.

    A queue that is only named, or named twice, counts as one job, or two.
    """
    if not database_for(alias).notifies:
        return
    jobs = Counter(queues)
    if not jobs:
        return
    connection = connections[alias]
    if connection.in_atomic_block and connection.run_on_commit:
        # The savepoints tell whether both are undone together.
        savepoints, before, *_ = connection.run_on_commit[-1]
        if isinstance(before, _AtCommit) and savepoints == set(connection.savepoint_ids):
            before.jobs += jobs
            return
    told = _AtCommit(alias)
    told.jobs += jobs
    transaction.on_commit(told, using=alias, robust=True)


def _notify(alias: str, queue: str, jobs: int) -> None:
    with _lock:
        passed = _limiters.setdefault((alias, queue), Limiter()).pass_through(jobs)
    if passed is None:
        return
    notice = Notice(queue, random.getrandbits(31), *passed)
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(_NOTIFY, [channel_suffix(notice.slot), notice.as_text()])
    except Exception:
        # The job is stored; the workers' polling finds it.
        logger.warning("Could not notify the workers of queue %r; they will find the job by polling", queue)


def say_something(alias: str) -> None:
    """An empty word to all that listen, by which they know that they hear."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_NOTIFY, [channel_suffix(None), ""])
