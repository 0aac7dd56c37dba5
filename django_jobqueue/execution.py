"""One claimed job in, one outcome out. Used by every worker."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, async_to_sync, sync_to_async
from django.db import DatabaseError, connections, transaction
from django.db.backends.signals import connection_created

from . import conf, interrupts, logs, registry, signals
from .attempts import Attempt
from .context import restored
from .databases import is_spoiled
from .exceptions import ClaimLost, SnoozeJob
from .managers.failures import describe, next_delay
from .managers.outcomes import Done, Failed, Outcome, Snoozed, UnknownHere
from .models import Job
from .payloads import decode, encode_result
from .registry import JobType

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

R = TypeVar("R")

#: Seconds for which a connection that was found usable after a job is not looked at before the next.
STILL_USABLE = 1.0


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


def execute_here(attempt: Attempt, alias: str) -> tuple[Outcome | None, BaseException | None]:
    """Run a handler of either kind in this thread, on its connections and in the transactions open there.

    For tests: the connections are left as they are. Answers with what was raised, too; Ctrl-C passes.
    """
    job_type = registry.find(attempt.job.job_type)
    if job_type is None:
        return UnknownHere(attempt.job), None
    try:
        return contextvars.Context().run(_perform_here, attempt, job_type, alias), None
    except (Exception, SystemExit) as exception:
        return outcome_of(exception, attempt, job_type), exception


async def execute_async(attempt: Attempt) -> Outcome:
    """Run an async handler; the caller gives its task an empty context. Never raises."""
    job_type = registry.find(attempt.job.job_type)
    if job_type is None:
        return UnknownHere(attempt.job)
    try:
        async with ThreadSensitiveContext() as own_thread:
            try:
                return await _perform_async(attempt, job_type)
            except BaseException as exception:
                return await _called(job_type.is_watched, outcome_of, exception, attempt, job_type)
            finally:
                # The ORM's synchronous part ran in a thread of this job alone, which ends with it. asgiref
                # keeps it here once it was used; asking spares a thread for jobs without the ORM.
                if own_thread in SyncToAsync.context_to_thread_executor:
                    await asyncio.shield(sync_to_async(connections.close_all)())
    except BaseException as exception:
        return outcome_of(exception, attempt, job_type)


def outcome_of(exception: BaseException, attempt: Attempt, job_type: JobType | None = None) -> Outcome:
    """What becomes of a job whose handler raised ``exception``. Never raises, whatever that is."""
    started = attempt.since_claim()
    exception = interrupts.ended_by(exception, attempt)
    if isinstance(exception, SnoozeJob) and isinstance(exception.delay, float):
        return Snoozed(attempt.job, started, delay=exception.delay)
    trace = exception.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next  # where the handler begins
    failure = describe(exception, trace or exception.__traceback__, job=attempt.job)
    job_type = job_type or registry.find(attempt.job.job_type)
    outcome = Failed(
        attempt.job, started, failure=failure, delay=next_delay(exception, attempt.job, job_type)
    )
    if job_type is not None:
        job_type.ends(attempt, outcome)
    return outcome


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
        _announce_start(attempt, job_type)
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
        if is_spoiled(connection):
            logs.connection_replaced(connection.alias, attempt.job)
            _replace(connection)
        elif attempt.interruption is not None:  # between any two lines of the driver, perhaps
            _replace(connection)
        else:
            connection.close_if_unusable_or_obsolete()
    _thread.has_connections = any(connection.connection is not None for connection in here)


def _announce_start(attempt: Attempt, job_type: JobType) -> None:
    signals.announce(signals.job_started, Job, attempt.job)
    job_type.begins(attempt)


def _perform(attempt: Attempt, job_type: JobType, alias: str) -> Outcome:
    with restored(attempt.job):
        attempt.runner = threading.get_ident()
        try:
            result = _call(job_type, attempt)
        finally:
            attempt.runner = None
            if attempt.interruption is not None:
                interrupts.absorb(attempt.interruption)
    outcome = _done(job_type, attempt, result)
    job_type.ends(attempt, outcome)
    return outcome


def _perform_here(attempt: Attempt, job_type: JobType, alias: str) -> Outcome | None:
    if job_type.is_async:
        return async_to_sync(_perform_async)(attempt, job_type)
    _announce_start(attempt, job_type)
    return (_perform_atomic if job_type.atomic else _perform)(attempt, job_type, alias)


async def _perform_async(attempt: Attempt, job_type: JobType) -> Outcome:
    in_thread = job_type.is_watched or signals.has_listeners(signals.job_started, Job)
    await _called(in_thread, _announce_start, attempt, job_type)
    with restored(attempt.job):
        attempt.runner = asyncio.current_task()
        try:
            result = await _call(job_type, attempt)
        finally:
            attempt.runner = None
    outcome = _done(job_type, attempt, result)
    await _called(job_type.is_watched, job_type.ends, attempt, outcome)
    return outcome


async def _called(in_thread: bool, function: Callable[..., R], *args: Any) -> R:
    """Call the function, in the job's own thread if it may use the ORM, and otherwise here."""
    if in_thread:
        return await sync_to_async(function)(*args)
    return function(*args)


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
    return job_type.call(attempt, decode(attempt.job.payload_text))


def _done(job_type: JobType, attempt: Attempt, value: Any) -> Done:
    result = encode_result(job_type.result_of(value), conf.current().MAX_RESULT_BYTES)
    return Done(attempt.job, attempt.since_claim(), result)


def _replace(connection: BaseDatabaseWrapper) -> None:
    """No transaction of a handler survives its job: closing the connection rolls it back."""
    with contextlib.suppress(DatabaseError):
        connection.close()
    del connections[connection.alias]  # an atomic block that was entered and never left spoils it for good
