"""Waking the workers at commit: seldom, and never relied upon."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterable

from django.db import connections, transaction

from . import database_for
from .base import JOB_TABLE

logger = logging.getLogger("django_jobqueue")

#: Seconds. NOTIFY takes a lock of the whole database at commit, so a process says "there is work in this
#: queue" at most once in this time. Workers know: after any sign of work they look again for as long.
NOTIFY_INTERVAL = 0.1

#: One channel per table, and so per schema: the table's own number.
CHANNEL = f"SELECT 'django_jobqueue_' || '{JOB_TABLE}'::regclass::oid"

_last_sent: dict[tuple[str, str], float] = {}


def wake_workers(alias: str, queues: Iterable[str]) -> None:
    """Tell idle workers of ``queues``, once the transaction of ``alias`` is committed."""
    if not database_for(alias).notifies:
        return
    for queue in queues:
        transaction.on_commit(functools.partial(_notify, alias, queue), using=alias, robust=True)


def _notify(alias: str, queue: str) -> None:
    now = time.monotonic()
    if now - _last_sent.get((alias, queue), -NOTIFY_INTERVAL) < NOTIFY_INTERVAL:
        return
    _last_sent[(alias, queue)] = now
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(f"SELECT pg_notify(({CHANNEL}), %s)", [queue])
    except Exception:
        # The job is stored; the workers' polling finds it.
        logger.warning("Could not notify the workers of queue %r; they will find the job by polling", queue)
