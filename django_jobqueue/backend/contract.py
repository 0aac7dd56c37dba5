"""The backend: what Django's contract names, and nothing else; each method is one call elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.checks import CheckMessage, Error

from ..compat import (
    AnyResult,
    AnyTask,
    BaseTaskBackend,
    InvalidTask,
    InvalidTaskBackend,
    TaskResultDoesNotExist,
)
from ..conf import current
from ..exceptions import InvalidOption
from ..states import JOB_TYPE_LENGTH, QUEUE_LENGTH
from . import results, signals
from .options import DEFAULTS, WORDS, JobQueueTask, check_options, known
from .storing import Call, store
from .types import type_of


class JobQueueBackend(BaseTaskBackend):
    """Tasks as jobs: in the same table, run by the same workers, seen in the same admin.

    ``TASKS = {"default": {"BACKEND": "django_jobqueue.backend.JobQueueBackend"}}``. OPTIONS may have
    ``max_attempts``, ``backoff``, ``timeout`` and ``expires_after``: for tasks that do not say otherwise.
    """

    task_class = JobQueueTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        where = f"OPTIONS of TASKS[{alias!r}]"
        try:
            known(self.options, DEFAULTS, where)
            check_options(self.options, where)
        except (TypeError, InvalidTask) as problem:
            raise InvalidTaskBackend(str(problem)) from None

    def validate_task(self, task: AnyTask) -> None:
        """Raise ``InvalidTask``, first for what the contract names and then for the queue's own rules."""
        super().validate_task(task)
        if len(task.module_path) > JOB_TYPE_LENGTH:
            raise InvalidTask(f"{task.module_path}: a task's path has at most {JOB_TYPE_LENGTH} characters.")
        _check_queue(task.queue_name)
        if isinstance(task, JobQueueTask):
            check_options({word: getattr(task, word) for word in WORDS}, f"The task {task.module_path}")
            type_of(task)

    def enqueue(  # type: ignore[override]
        self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AnyResult:
        """Make a job and return its result, READY; or that of the active job with the same dedupe key.

        Raises ``InvalidTask``, ``TypeError`` for what is no JSON, or ``InvalidPayload`` for what JSON would
        not give back; then nothing is stored.
        """
        return self.enqueue_many(task, [(args, kwargs)])[0]

    def enqueue_many(self, task: AnyTask, calls: Iterable[Call]) -> list[AnyResult]:
        """A job for each ``(args, kwargs)``; the results come in that order. All are stored, or none."""
        self.validate_task(task)
        try:
            made = store(task, self.alias, calls)
        except InvalidOption as problem:  # a key that a function made
            raise InvalidTask(str(problem)) from None
        for result, is_new in made:
            if is_new:
                signals.enqueued(type(self), result)
        return [result for result, _ in made]

    async def aenqueue_many(self, task: AnyTask, calls: Iterable[Call]) -> list[AnyResult]:
        """``enqueue_many`` for async code."""
        return await sync_to_async(self.enqueue_many)(task, calls)

    def get_result(self, result_id: str) -> AnyResult:
        """The result by its id, in one query. Raises ``TaskResultDoesNotExist``."""
        from ..models import Job

        try:
            job = Job.objects.filter(pk=UUID(result_id)).first()
        except (ValueError, TypeError, AttributeError):
            job = None
        facts = results.facts_of(job.context) if job is not None else None
        if job is None or facts is None:
            raise TaskResultDoesNotExist(result_id)
        return results.stored(job, facts)

    def cancel(self, result_id: str, reason: str = "cancelled by code") -> bool:
        """Cancel a task that is READY; ask one that is RUNNING to stop. False if it had ended, or was asked.

        The task sees it within 2 s in ``context.cancelled``. Raises ``TaskResultDoesNotExist``.
        """
        from ..models import Job

        self.get_result(result_id)
        return bool(Job.objects.filter(pk=result_id).cancel(reason).done)

    async def acancel(self, result_id: str, reason: str = "cancelled by code") -> bool:
        """``cancel`` for async code."""
        return await sync_to_async(self.cancel)(result_id, reason)

    def check(self, **kwargs: Any) -> Iterator[CheckMessage]:  # type: ignore[override]
        """Whether the app is there; its own checks say the rest."""
        if not apps.is_installed("django_jobqueue"):
            yield Error(
                f"TASKS[{self.alias!r}] uses the job queue, whose app is not installed.",
                hint='Add "django_jobqueue" to INSTALLED_APPS and run manage.py migrate. '
                "See docs/reference/checks.md#jobqueue-e009",
                id="jobqueue.E009",
            )


def _check_queue(name: Any) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= QUEUE_LENGTH:
        raise InvalidTask(f"queue_name={name!r:.300} must be text of 1 to {QUEUE_LENGTH} characters.")
    declared = current().QUEUES
    if declared is not None and name not in declared:
        raise InvalidTask(
            f'Queue {name!r} is not one of those declared in JOBQUEUE["QUEUES"] '
            f"({', '.join(sorted(declared))}). Add it there, or correct the name."
        )
