import copy
from collections.abc import Iterator
from typing import Any

import pytest
from django.dispatch import Signal

from django_jobqueue import compat
from django_jobqueue.compat import TaskResult
from django_jobqueue.models import Job
from tests.execution import conftest as execution
from tests.execution.runner import Runner
from tests.tasks import sample

runner = execution.runner
BACKEND = "django_jobqueue.backend.JobQueueBackend"


@pytest.fixture(autouse=True)
def nothing_seen() -> Iterator[None]:
    yield
    sample.asked.clear()
    sample.seen.clear()


@pytest.fixture
def run(runner: Runner) -> Any:
    """Attempt the job of a result once, due or not, and refresh the result."""

    def run(result: Any) -> Any:
        runner.attempt(Job.objects.get(pk=result.id))
        result.refresh()
        return result

    return run


@pytest.fixture
def heard() -> Iterator[list[tuple[str, type, TaskResult]]]:
    """The task signals sent: name, sender, the result as it was then."""
    found: list[tuple[str, type, TaskResult]] = []
    listeners = []
    for name in ("task_enqueued", "task_started", "task_finished"):

        def note(sender: type, task_result: TaskResult, name: str = name, **kwargs: Any) -> None:
            found.append((name, sender, copy.deepcopy(task_result)))

        signal: Signal = getattr(compat, name)
        signal.connect(note)
        listeners.append((signal, note))
    yield found
    for signal, note in listeners:
        signal.disconnect(note)
