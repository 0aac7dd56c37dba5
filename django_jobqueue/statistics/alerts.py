"""What somebody should look at: one sentence each, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.db import connections
from django.utils.translation import gettext, ngettext

from .. import conf
from ..databases import database_for
from .figures import Overview, QueueFigures, WorkerFigures
from .spans import span_text

#: A transaction open for so long (seconds) is told of.
LONG_OPEN = 300.0
#: So many dead letters within an hour, and more than in the hour before, are many.
MANY_DEAD = 10

#: What there is to be told of, by code, the gravest first.
CODES = (
    "no-worker",
    "worker-stands-still",
    "worker-silent",
    "late",
    "dead-letters-grow",
    "open-transaction",
    "journal-mode",
)


class Alert(NamedTuple):
    """What is wrong: a code and a name for programs, a sentence for people."""

    code: str
    subject: str
    text: str


def alerts_of(overview: Overview, alias: str) -> list[Alert]:
    """All that is wrong now, the gravest first. One query."""
    found = [one for queue in overview.queues for one in _of_queue(queue)]
    found += [one for worker in overview.workers for one in _of_worker(worker)]
    found += _of_database(alias)
    return sorted(found, key=lambda one: CODES.index(one.code))


def _of_queue(queue: QueueFigures) -> Iterator[Alert]:
    facts = {"queue": queue.name, "due": queue.due, "age": span_text(queue.oldest)}
    if queue.due and not queue.workers and not queue.paused:
        text = gettext(
            "No worker serves the queue %(queue)s, and %(due)s of its jobs are due. Start one with "
            "manage.py runworker, or see whether its name is spelled as the workers know it."
        )
        yield Alert("no-worker", queue.name, text % facts)
    limit = conf.current().LATE_AFTER.total_seconds()
    if queue.oldest is not None and queue.oldest > limit and not queue.paused:
        text = gettext(
            "The first due job of the queue %(queue)s has been waiting for %(age)s, longer than %(limit)s."
        )
        yield Alert("late", queue.name, text % {**facts, "limit": span_text(limit)})
    if queue.dead_lately >= MANY_DEAD and queue.dead_lately > queue.dead_before:
        text = ngettext(
            "%(lately)d job of the queue %(queue)s died within an hour, %(before)d in the hour before.",
            "%(lately)d jobs of the queue %(queue)s died within an hour, %(before)d in the hour before.",
            queue.dead_lately,
        )
        counts = {"lately": queue.dead_lately, "before": queue.dead_before}
        yield Alert("dead-letters-grow", queue.name, text % {**facts, **counts})


def _of_worker(worker: WorkerFigures) -> Iterator[Alert]:
    facts = {
        "host": worker.host,
        "pid": worker.pid,
        "silent": span_text(worker.silent),
        "late": span_text(worker.late),
    }
    if worker.stands_still:
        text = gettext(
            "The worker %(host)s:%(pid)d lives, but has claimed nothing for %(late)s longer than it should "
            "wait: its loop stands still. It may wait for the database, or for a lock; restart it."
        )
        yield Alert("worker-stands-still", worker.id, text % facts)
    elif not worker.is_living:
        text = gettext(
            "The worker %(host)s:%(pid)d was last heard of %(silent)s ago. It was killed, is stopped, or "
            "does not reach the database; its jobs run elsewhere when their leases are over."
        )
        yield Alert("worker-silent", worker.id, text % facts)


def _of_database(alias: str) -> Iterator[Alert]:
    database, connection = database_for(alias), connections[alias]
    for one in database.open_transactions(connection, LONG_OPEN):
        text = gettext(
            "A transaction has been open for %(age)s (process %(pid)d, user %(user)s, %(application)s, "
            "%(state)s): dead rows cannot be removed meanwhile. End it, or let "
            "idle_in_transaction_session_timeout do so."
        )
        facts = {
            **one._asdict(),
            "age": span_text(one.seconds),
            "application": one.application or gettext("no application name"),
        }
        yield Alert("open-transaction", str(one.pid), text % facts)
    if mode := database.slow_journal(connection):
        text = gettext(
            "SQLite's journal mode is %(mode)s, in which readers and the writer wait for each other. "
            "Set it to WAL."
        )
        yield Alert("journal-mode", mode, text % {"mode": mode})
