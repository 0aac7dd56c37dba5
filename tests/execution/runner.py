"""One job through its whole attempt: enqueued, claimed, executed in a thread, settled."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import monotonic
from typing import Any

from django.db import connections

from django_jobqueue import job, registry
from django_jobqueue.attempts import Attempt
from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.execution import execute, execute_async
from django_jobqueue.managers.outcomes import Outcome
from django_jobqueue.models import Job, JobStatus

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
WORKER = "a worker of the tests"


class Runner:
    """All handlers run in one thread, as they may in a worker; so each sees what the one before has left."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._names: list[str] = []

    def handle(self, function: Callable[..., Any], **options: Any) -> str:
        """Make the function a handler until the end of the test; the type's name."""
        name = f"tests:{len(self._names)}:{function.__qualname__}"
        job(name, **options)(function)
        self._names.append(name)
        return name

    def run(self, function: Callable[..., Any], payload: dict[str, Any] | None = None, **options: Any) -> Job:
        """A new job of this handler, attempted once; how it stands then."""
        return self.attempt(Job.objects.enqueue(self.handle(function, **options), payload))

    def attempt(self, job: Job, *, before_settling: Callable[[Attempt], None] | None = None) -> Job:
        """Attempt the job, due or not."""
        Job.objects.filter(pk=job.pk, status=PENDING).reschedule(timedelta(0))
        attempt = self.claim()
        assert attempt.job.id == job.pk
        outcome = self.execute(attempt)
        if before_settling is not None:
            before_settling(attempt)
        if outcome is not None:
            Job.objects.settle(WORKER, [outcome])
        return Job.objects.get(pk=job.pk)

    def claim(self) -> Attempt:
        """Claim what is due."""
        [claimed] = Job.objects.claim_for_worker(ClaimRequest(worker_id=WORKER, limit=1, lease=60))
        attempt = Attempt(claimed, WORKER, monotonic())
        attempt.started = monotonic()
        return attempt

    def execute(self, attempt: Attempt) -> Outcome | None:
        """Execute it in the runner's thread."""
        job_type = registry.find(attempt.job.job_type)
        if job_type is not None and job_type.is_async:
            return self.in_thread(lambda: contextvars.Context().run(asyncio.run, execute_async(attempt)))
        return self.in_thread(lambda: execute(attempt, Job.objects.db))

    def in_thread(self, function: Callable[[], Any]) -> Any:
        """Call it in the runner's thread."""
        return self._thread.submit(function).result(60)

    def close(self) -> None:
        """End the thread and its connections, forget the handlers."""
        self.in_thread(connections.close_all)
        self._thread.shutdown()
        for name in self._names:
            registry.unregister(name)


def exceptions(job: Job) -> list[str]:
    """The class of the exception of every attempt."""
    return [error["exception"] for error in job.errors]
