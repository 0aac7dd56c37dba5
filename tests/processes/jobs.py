"""Short ways to enqueue what the tests' workers run, and to look at how it stands."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django_jobqueue.models import Job, JobStatus

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def touches(count: int, **options: Any) -> list[Job]:
    """Jobs that take no time."""
    return Job.objects.enqueue_many([("tests:touch", {"n": n}) for n in range(count)], **options)


def waits(count: int, gate: Path, *, job_type: str = "tests:wait", **options: Any) -> list[Job]:
    """Jobs that run until the gate is opened."""
    return Job.objects.enqueue_many([(job_type, {"gate": str(gate)})] * count, **options)


def wait_for(gate: Path, **options: Any) -> Job:
    return waits(1, gate, **options)[0]


def sleeps(seconds: float, **options: Any) -> Job:
    return Job.objects.enqueue("tests:sleep", {"seconds": seconds}, **options)


def standing() -> dict[JobStatus, int]:
    """How many jobs stand where; those that are nowhere are left out."""
    return dict(Counter(JobStatus(one) for one in Job.objects.values_list("status", flat=True)))


def status(job: Job) -> JobStatus:
    return JobStatus(Job.objects.values_list("status", flat=True).get(pk=job.pk))


def row(job: Job) -> dict[str, Any]:
    """Every column."""
    return Job.objects.filter(pk=job.pk).values().get()


def ids(jobs: Iterable[Job]) -> set[str]:
    return {str(job.pk) for job in jobs}


def errors(job: Job) -> list[str]:
    """The exception of every recorded attempt."""
    return [error["exception"] for error in row(job)["errors"]]
