"""Handlers of a test's own, and how the jobs of a test stand."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from django_jobqueue import job
from django_jobqueue.models import Job, JobStatus

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


class Handlers:
    """Registers functions as handlers."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def add(self, function: Callable[..., Any], **options: Any) -> str:
        name = f"tests:{len(self.names)}:{function.__qualname__}"
        job(name, **options)(function)
        self.names.append(name)
        return name


def touches(count: int, **options: Any) -> list[Job]:
    return Job.objects.enqueue_many([("tests:touch", {"n": n}) for n in range(count)], **options)


def standing() -> dict[JobStatus, int]:
    return dict(Counter(JobStatus(one) for one in Job.objects.values_list("status", flat=True)))


def status(job: Job) -> JobStatus:
    return JobStatus(Job.objects.values_list("status", flat=True).get(pk=job.pk))


def fresh(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)
