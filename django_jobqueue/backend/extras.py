"""What goes beyond Django's contract, as functions: for Tasks of whatever alias has the queue's backend."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import timedelta

from asgiref.sync import sync_to_async

from ..compat import AnyResult, AnyTask, InvalidTaskBackend, TaskResultDoesNotExist, task_backends
from ..exceptions import JobNotFound
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


def wait(result: AnyResult, timeout: float | timedelta) -> AnyResult:
    """Wait until the task has finished, FAILED or SUCCESSFUL; the same result, refreshed.

    ``timeout``: seconds or timedelta. Woken by NOTIFY on PostgreSQL and by ``data_version`` on SQLite, as
    ``django_jobqueue.waiting.wait``. Raises ``WaitTimeout``; ``WaitInsideTransaction`` in an open
    transaction, which may be the one that holds the enqueue; ``TaskResultDoesNotExist``.
    """
    from .. import waiting

    with _of_a_task(result):
        waiting.wait(result.id, timeout)
    result.refresh()
    return result


async def wait_async(result: AnyResult, timeout: float | timedelta) -> AnyResult:
    """``wait`` for async code; occupies no thread."""
    from .. import waiting

    with _of_a_task(result):
        await waiting.wait_async(result.id, timeout)
    await result.arefresh()
    return result


@contextlib.contextmanager
def _of_a_task(result: AnyResult) -> Iterator[None]:
    try:
        yield
    except JobNotFound as gone:
        raise TaskResultDoesNotExist(result.id) from gone


def _backend(alias: str) -> JobQueueBackend:
    backend = task_backends[alias]
    if not isinstance(backend, JobQueueBackend):
        raise InvalidTaskBackend(
            f"TASKS[{alias!r}] is a {type(backend).__qualname__}, which cannot do this. "
            "Use the task with an alias of django_jobqueue.backend.JobQueueBackend: task.using(backend=…)."
        )
    return backend
