"""Django's signals of tasks, sent by the thread that runs one. They cost little where nobody listens."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from django.dispatch import Signal
from django.utils.log import RequireDebugTrue

from ..compat import (
    TASKS_LOGGER,
    AnyResult,
    TaskResultStatus,
    log_task_finished,
    log_task_started,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from ..managers.outcomes import Done, Failed
from ..payloads import decode
from ..signals import logger
from . import results

_NOBODY: Any = None  # the log does not ask who sends
django_logger = logging.getLogger(TASKS_LOGGER)


def is_watched() -> bool:
    """Whether anybody but Django's own log listens to what a worker sends."""
    return _has_others(task_started, log_task_started) or _has_others(task_finished, log_task_finished)


def enqueued_is_watched() -> bool:
    """The same of ``task_enqueued``, whose receivers are called in the enqueue itself."""
    return len(task_enqueued.receivers) > 1


def enqueued(sender: type, result: AnyResult) -> None:
    """A failing receiver is the caller's to see."""
    if enqueued_is_watched() or django_logger.isEnabledFor(logging.DEBUG):
        task_enqueued.send(sender, task_result=result)


def started(path: str, attempt: Any) -> None:
    """An attempt begins."""
    if _has_others(task_started, log_task_started):
        _send(task_started, results.running(attempt.job, attempt.started))
    elif is_heard(logging.INFO):
        log_task_started(_NOBODY, task_result=Line.of(path, attempt, TaskResultStatus.RUNNING))


def finished(path: str, attempt: Any, outcome: Any) -> None:
    """An attempt has ended, and with it the task; not if it is READY again."""
    status = _final(attempt, outcome)
    if status is None:
        return
    if _has_others(task_finished, log_task_finished):
        result = results.running(attempt.job, attempt.started)
        error = decode(outcome.failure.error) if isinstance(outcome, Failed) else None
        value = decode(outcome.result) if isinstance(outcome, Done) and outcome.result else None
        results.end(result, status, value=value, error=error and results.task_error(error))
        _send(task_finished, result)
    elif is_heard(logging.INFO if status is TaskResultStatus.SUCCESSFUL else logging.ERROR):
        log_task_finished(_NOBODY, task_result=Line.of(path, attempt, status))


def _final(attempt: Any, outcome: Any) -> TaskResultStatus | None:
    if isinstance(outcome, Done):
        return TaskResultStatus.SUCCESSFUL
    if not isinstance(outcome, Failed):
        return None
    job = attempt.job
    again = outcome.delay is not None and job.attempts < job.max_attempts and not attempt.cancelled
    return None if again else TaskResultStatus.FAILED


def is_heard(level: int) -> bool:
    """Whether a line of Django's log would come out anywhere.

    Under Django's default LOGGING and without DEBUG none of this level does, after it has been made for a
    handler whose filter then drops it; and that takes longer than all the rest of a small task.
    """
    if not django_logger.isEnabledFor(level):
        return False
    place: logging.Logger | None = django_logger
    while place is not None:
        if any(one.level <= level and not _is_dropped_by(one) for one in place.handlers):
            return True
        place = place.parent if place.propagate else None
    return not django_logger.hasHandlers() and level >= logging.WARNING  # the handler of last resort


def _is_dropped_by(handler: logging.Handler) -> bool:
    return not settings.DEBUG and any(isinstance(one, RequireDebugTrue) for one in handler.filters)


class Line(NamedTuple):
    """What Django's own log wants to know of a result; to make a whole one takes longer than the log line."""

    id: str
    task: Any
    status: TaskResultStatus

    @classmethod
    def of(cls, path: str, attempt: Any, status: TaskResultStatus) -> Any:
        """Of an attempt."""
        return cls(str(attempt.job.id), _Path(path), status)


class _Path(NamedTuple):
    module_path: str


def _has_others(signal: Signal, known: Callable[..., Any]) -> bool:
    return any(entry[0][0] != id(known) for entry in signal.receivers)


def _send(signal: Signal, result: AnyResult) -> None:
    """To everybody; a receiver that raises is logged and breaks no job."""
    try:
        sender: type = type(task_backends[result.backend])
    except Exception:  # the settings do not have that alias any more
        from .contract import JobQueueBackend

        sender = JobQueueBackend
    for receiver, response in signal.send_robust(sender, task_result=result):
        if isinstance(response, Exception):
            logger.error("A signal receiver %r failed for task %s", receiver, result.id, exc_info=response)
