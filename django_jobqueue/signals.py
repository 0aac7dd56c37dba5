"""The signals, and how they are sent: a broken receiver is logged and never breaks a job.

Every signal is sent with ``sender=Job`` and ``job``, which has at least ``id``, ``job_type``, ``queue``,
``priority``, ``attempts`` and ``max_attempts`` (it is not a whole row: fetch one by ``job.id`` if needed).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.dispatch import Signal

logger = logging.getLogger("django_jobqueue.signals")

#: After the insert, inside the caller's transaction. ``job``
job_enqueued = Signal()
#: Before the handler starts: in its thread, for an async one in a thread of that job. ``job``
job_started = Signal()
#: A job is DONE, DEAD or CANCELLED and that was written. ``job``, ``status``, ``error`` (text, may be "")
job_finished = Signal()
#: A failed or dead job will run again. ``job``, ``error`` (text), ``run_after`` (None: unknown)
job_retried = Signal()
#: A job was taken back from a lost worker. ``job``, ``status`` (what became of it), ``worker_id``
job_reaped = Signal()

Delivery = Callable[[Callable[[], None]], None]

# Workers hand deliveries to a thread of their own, so that receivers never use the connection that
# writes the outcomes; everywhere else they run where the move was made.
_delivery: ContextVar[Delivery | None] = ContextVar("django_jobqueue_signal_delivery", default=None)


@contextmanager
def delivered_by(delivery: Delivery) -> Iterator[None]:
    """Within the block, signals go through ``delivery``, which gets a function to call later."""
    token = _delivery.set(delivery)
    try:
        yield
    finally:
        _delivery.reset(token)


def has_listeners(signal: Signal, sender: Any) -> bool:
    """Whether anybody listens. Django's own answer takes a lock, which is too much where nobody ever did."""
    return bool(signal.receivers) and signal.has_listeners(sender)


def announce(signal: Signal, sender: Any, job: Any, **facts: Any) -> None:
    """Send ``signal`` to whoever listens; costs next to nothing when nobody does."""
    if not has_listeners(signal, sender):
        return
    delivery = _delivery.get()
    if delivery is None:
        _send(signal, sender, job, facts)
    else:
        delivery(lambda: _send(signal, sender, job, facts))


def _send(signal: Signal, sender: Any, job: Any, facts: dict[str, Any]) -> None:
    try:
        for receiver, response in signal.send_robust(sender, job=job, **facts):
            if isinstance(response, Exception):
                logger.error("A signal receiver %r failed for job %s", receiver, job.id, exc_info=response)
    except BaseException:  # send_robust lets SystemExit and its like through
        if threading.current_thread() is threading.main_thread():
            raise  # there it may be a real Ctrl-C
        logger.exception("A signal receiver failed for job %s: it tried to end its thread", job.id)
