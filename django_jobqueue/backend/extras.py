"""What goes beyond Django's contract, as functions: for Tasks of whatever alias has the queue's backend."""

from __future__ import annotations

from collections.abc import Iterable

from asgiref.sync import sync_to_async

from ..compat import AnyResult, AnyTask, InvalidTaskBackend, task_backends
from .contract import JobQueueBackend
from .storing import Call


def enqueue_many(task: AnyTask, calls: Iterable[Call]) -> list[AnyResult]:
    """Enqueue the Task once for each ``(args, kwargs)``; the results come in that order.

    All are stored, or none; a thousand go into one statement. Dedupe keys are honoured call by call.
    Raises like ``Task.enqueue``.
    """
    return _backend(task.backend).enqueue_many(task, calls)


async def aenqueue_many(task: AnyTask, calls: Iterable[Call]) -> list[AnyResult]:
    """``enqueue_many`` for async code."""
    return await sync_to_async(enqueue_many)(task, calls)


def cancel(result: AnyResult, reason: str = "cancelled by code") -> bool:
    """Cancel a task that is READY; ask one that is RUNNING to stop. False if it had ended, or was asked.

    A RUNNING task sees it within 2 s in ``context.cancelled``. Of an id alone:
    ``task_backends["default"].cancel(result_id)``. Raises ``TaskResultDoesNotExist``.
    """
    return _backend(result.backend).cancel(result.id, reason)


async def acancel(result: AnyResult, reason: str = "cancelled by code") -> bool:
    """``cancel`` for async code."""
    return await sync_to_async(cancel)(result, reason)


def _backend(alias: str) -> JobQueueBackend:
    backend = task_backends[alias]
    if not isinstance(backend, JobQueueBackend):
        raise InvalidTaskBackend(
            f"TASKS[{alias!r}] is a {type(backend).__qualname__}, which cannot do this. "
            "Use the task with an alias of django_jobqueue.backend.JobQueueBackend: task.using(backend=…)."
        )
    return backend
