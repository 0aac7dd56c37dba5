"""One claimed job in, one outcome out. Used by every worker."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import DatabaseError, connections, transaction
from django.db.backends.signals import connection_created
from django.utils import timezone, translation

from . import conf, interrupts, logs, registry, signals
from .databases import is_spoiled
from .exceptions import ClaimLost, SnoozeJob
from .handlers import JobContext
from .managers.claim import ClaimedJob
from .managers.failures import describe, next_delay
from .managers.outcomes import Done, Failed, Outcome, Snoozed, UnknownHere
from .models import Job
from .payloads import clean_text, decode, encode_result
from .registry import JobType

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

#: Characters of a progress note that are kept.
NOTE_LIMIT = 1_000
#: Seconds for which a connection that was found usable after a job is not looked at before the next.
STILL_USABLE = 1.0


class Attempt:
    """A claimed job while this process has it. Times are of the monotonic clock."""

    __slots__ = (
        "cancelled",
        "claimed",
        "ended",
        "interruption",
        "job",
        "lapses",
        "limit",
        "lost",
        "note",
        "on_settled",
        "progress",
        "ran",
        "report",
        "runner",
        "slot",
        "started",
        "worker_id",
    )

    def __init__(self, job: ClaimedJob, worker_id: str, claimed: float, lapses: int = 0) -> None:
        self.job = job
        self.worker_id = worker_id
        self.claimed = claimed  # just before the claim was sent
        self.lapses = lapses  # how often leases had lapsed by then, or when the table last said it is held
        self.started: float | None = None
        self.ended = False  # its outcome is on the way to the table
        self.ran = 0.0  # seconds; known when it has ended
        self.cancelled = False  # somebody asked it to stop
        self.lost = False  # somebody else has it, or a person ended it
        self.limit: float | None = None  # seconds that the handler may run
        self.runner: Any = None  # the thread (its id) or task of the handler, exactly while that runs
        self.interruption: interrupts.Interruption | None = None
        self.progress: float | None = None
        self.note = ""
        self.report: Callable[[Attempt], None] | None = None  # called when progress changed
        self.on_settled: Callable[[], None] | None = None  # called when its outcome is written, or it is lost
        self.slot = -1  # where the process keeps note of its start

    def since_claim(self) -> float | None:
        """Seconds from claim to start."""
        return None if self.started is None else self.started - self.claimed

    def context(self) -> JobContext:
        """What the handler sees."""
        return JobContext(self.job, self._report, self._is_to_end)

    def _is_to_end(self) -> bool:
        return self.cancelled or self.lost or self.interruption is not None

    def _report(self, progress: float | None, note: str) -> None:
        self.progress, self.note = progress, clean_text(str(note), NOTE_LIMIT)
        if self.report is not None:
            self.report(self)


def execute(attempt: Attempt, alias: str) -> Outcome | None:
    """Run a plain handler in this thread. None: the outcome is already settled. Never raises.

    ``alias`` is the queue's database, for atomic handlers.
    """
    job_type = registry.find(attempt.job.job_type)
    if job_type is None:
        return UnknownHere(attempt.job)
    perform = _perform_atomic if job_type.atomic else _perform
    try:
        # An empty context: nothing of an earlier job (language, time zone, anybody's variables) is in it.
        return contextvars.Context().run(_as_a_request, perform, attempt, job_type, alias)
    except BaseException as exception:
        return outcome_of(exception, attempt, job_type)


async def execute_async(attempt: Attempt) -> Outcome:
    """Run an async handler; the caller gives its task an empty context. Never raises."""
    job_type = registry.find(attempt.job.job_type)
    if job_type is None:
        return UnknownHere(attempt.job)
    try:
        async with ThreadSensitiveContext() as own_thread:
            try:
                return await _perform_async(attempt, job_type)
            finally:
                # The ORM's synchronous part ran in a thread of this job alone, which ends with it. asgiref
                # keeps it here once it was used; asking spares a thread for jobs without the ORM.
                if own_thread in SyncToAsync.context_to_thread_executor:
                    await asyncio.shield(sync_to_async(connections.close_all)())
    except BaseException as exception:
        return outcome_of(exception, attempt, job_type)


def outcome_of(exception: BaseException, attempt: Attempt, job_type: JobType) -> Outcome:
    """What becomes of a job whose handler raised ``exception``. Never raises, whatever that is."""
    started = attempt.since_claim()
    exception = interrupts.ended_by(exception, attempt)
    if isinstance(exception, SnoozeJob) and isinstance(exception.delay, float):
        return Snoozed(attempt.job, started, delay=exception.delay)
    trace = exception.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next  # where the handler begins
    failure = describe(exception, trace or exception.__traceback__, job=attempt.job)
    return Failed(attempt.job, started, failure=failure, delay=next_delay(exception, attempt.job, job_type))


def _as_a_request(
    perform: Callable[[Attempt, JobType, str], Outcome | None],
    attempt: Attempt,
    job_type: JobType,
    alias: str,
) -> Outcome | None:
    """Connections as around a request: those too old or broken are closed, before and after."""
    if time.monotonic() - _thread.left > STILL_USABLE:
        for connection in connections.all(initialized_only=True):
            connection.close_if_unusable_or_obsolete()
    try:
        signals.announce(signals.job_started, Job, attempt.job)
        return perform(attempt, job_type, alias)
    finally:
        if _thread.has_connections:
            _leave_connections(attempt)
        _thread.left = time.monotonic()


class _Thread(threading.local):
    """What is known of this thread's connections. Looking is a third of what a small job costs."""

    has_connections = True  # perhaps: until somebody has looked
    left = 0.0  # when the last job ended


_thread = _Thread()


def _note_connection(**kwargs: Any) -> None:
    _thread.has_connections = True


connection_created.connect(_note_connection, dispatch_uid="django_jobqueue.execution")


def _leave_connections(attempt: Attempt) -> None:
    """No transaction survives the job, nor does its query log."""
    here = connections.all(initialized_only=True)
    for connection in here:
        connection.queries_log.clear()
        # An interrupted handler may have left its connection between two lines of the driver.
        if is_spoiled(connection) or attempt.interruption is not None:
            _replace(connection, attempt)
        else:
            connection.close_if_unusable_or_obsolete()
    _thread.has_connections = any(connection.connection is not None for connection in here)


def _perform(attempt: Attempt, job_type: JobType, alias: str) -> Outcome:
    with _surroundings(attempt):
        attempt.runner = threading.get_ident()
        try:
            result = _call(job_type, attempt)
        finally:
            attempt.runner = None
            if attempt.interruption is not None:
                interrupts.absorb(attempt.interruption)
    return _done(attempt, result)


async def _perform_async(attempt: Attempt, job_type: JobType) -> Outcome:
    if signals.has_listeners(signals.job_started, Job):
        await sync_to_async(signals.announce)(signals.job_started, Job, attempt.job)
    with _surroundings(attempt):
        attempt.runner = asyncio.current_task()
        try:
            result = await _call(job_type, attempt)
        finally:
            attempt.runner = None
    return _done(attempt, result)


def _perform_atomic(attempt: Attempt, job_type: JobType, alias: str) -> Outcome | None:
    """The handler's writes and its completion in one transaction; all rolled back if the claim was lost."""
    try:
        with transaction.atomic(using=alias):
            outcome = _perform(attempt, job_type, alias)
            with signals.delivered_by(lambda send: transaction.on_commit(send, using=alias, robust=True)):
                settlement = Job.objects.db_manager(alias).settle(attempt.worker_id, [outcome])
            if settlement.lost:
                raise ClaimLost(attempt.job.id)
        return None
    except ClaimLost:
        attempt.lost = True
        return None
    except DatabaseError as error:
        # Perhaps the COMMIT went through and its answer was lost. The failure below is written only if the
        # job is still RUNNING, and is looked up if it is not: never guessed.
        failed = outcome_of(error, attempt, job_type)
        failed.unsure = True
        return failed


def _call(job_type: JobType, attempt: Attempt) -> Any:
    payload = decode(attempt.job.payload_text)
    if job_type.takes_context:
        return job_type.function(attempt.context(), **payload)
    return job_type.function(**payload)


def _done(attempt: Attempt, result: Any) -> Done:
    return Done(attempt.job, attempt.since_claim(), encode_result(result, conf.current().MAX_RESULT_BYTES))


def _surroundings(attempt: Attempt) -> contextlib.AbstractContextManager[None]:
    """The language and time zone that were active where the job was enqueued, if not the site's own."""
    text = attempt.job.context_text
    return _NO_CONTEXT if text == "{}" else _restored(decode(text))


_NO_CONTEXT = contextlib.nullcontext()


@contextlib.contextmanager
def _restored(context: dict[str, Any]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if "language" in context:
            stack.enter_context(translation.override(context["language"]))
        if "time_zone" in context:
            with contextlib.suppress(ZoneInfoNotFoundError, ValueError):
                stack.enter_context(timezone.override(ZoneInfo(context["time_zone"])))
        yield


def _replace(connection: BaseDatabaseWrapper, attempt: Attempt) -> None:
    """No transaction of a handler survives its job: closing the connection rolls it back."""
    logs.connection_replaced(connection.alias, attempt.job)
    with contextlib.suppress(DatabaseError):
        connection.close()
    del connections[connection.alias]  # an atomic block that was entered and never left spoils it for good
