"""Which Tasks API there is: Django's own from 6.0 on, before it the backport ``django_tasks``.

The only file that knows. Everything else imports the names from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import (
        Task,
        TaskContext,
        TaskError,
        TaskResult,
        TaskResultStatus,
    )
    from django.tasks.base import task as django_task
    from django.tasks.exceptions import (
        InvalidTask,
        InvalidTaskBackend,
        TaskResultDoesNotExist,
        TaskResultMismatch,
    )
    from django.tasks.signals import (
        log_task_finished,
        log_task_started,
        task_enqueued,
        task_finished,
        task_started,
    )
    from django.utils.json import normalize_json
else:
    try:
        from django_tasks import task_backends
        from django_tasks.backends.base import BaseTaskBackend
        from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
        from django_tasks.base import task as django_task
        from django_tasks.exceptions import InvalidTaskBackendError as InvalidTaskBackend
        from django_tasks.exceptions import InvalidTaskError as InvalidTask
        from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
        from django_tasks.signals import (
            log_task_finished,
            log_task_started,
            task_enqueued,
            task_finished,
            task_started,
        )
        from django_tasks.utils import normalize_json
    except ModuleNotFoundError as missing:
        raise ImportError(
            "Django has its Tasks API from 6.0 on. On Django 5.2 install the backport: "
            'pip install "django-jobqueue[tasks]", and add "django_tasks" to INSTALLED_APPS.'
        ) from missing

if TYPE_CHECKING:
    AnyTask = Task[..., Any]
    AnyResult = TaskResult[..., Any]
    AnyContext = TaskContext[..., Any]
else:  # Django's own are no generic classes
    AnyTask, AnyResult, AnyContext = Task, TaskResult, TaskContext

#: The logger of Django's own lines about tasks.
TASKS_LOGGER = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"

__all__ = [
    "TASKS_LOGGER",
    "AnyContext",
    "AnyResult",
    "AnyTask",
    "BaseTaskBackend",
    "InvalidTask",
    "InvalidTaskBackend",
    "Task",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "django_task",
    "log_task_finished",
    "log_task_started",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
