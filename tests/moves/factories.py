"""Short ways to bring jobs to where a test needs them; by the moves alone, unless a test says so."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue.databases.claiming import Mark
from django_jobqueue.models import Job, JobStatus

#: Any type of this pattern may be enqueued: the conftest.py here lets "tests:*" pass.
TYPE = "tests:any"
WORKER = "worker-1"
LATE = "worker-late"

_numbers = itertools.count(1)


def enqueue(payload: dict[str, Any] | None = None, *, job_type: str = TYPE, **options: Any) -> Job:
    return Job.objects.enqueue(job_type, payload, **options)


def claim(limit: int = 1, *, worker_id: str = WORKER, **options: Any) -> list[Job]:
    return Job.objects.claim(worker_id=worker_id, limit=limit, **options)


def claimed(worker_id: str = WORKER, **options: Any) -> Job:
    """A new job, held by the worker. In a queue of its own: no other job is in the way."""
    job = enqueue(**{"queue": f"claimed-{next(_numbers)}", **options})
    return claim_again(job, worker_id)


def claim_again(job: Job, worker_id: str = WORKER) -> Job:
    """The due job, held by the worker."""
    make_due(job)
    [held] = claim(queues=[job.queue], worker_id=worker_id)
    assert held.id == job.id
    return held


def in_status(status: JobStatus, **options: Any) -> Job:
    """A job that WORKER claimed once and that stands in ``status`` now: its token fits, whatever it is."""
    job = claimed(**options)
    match status:
        case JobStatus.PENDING:
            assert Job.objects.release(job)
        case JobStatus.DONE:
            assert Job.objects.complete(job)
        case JobStatus.DEAD:
            assert Job.objects.fail(job, "no", delay=None)
        case JobStatus.CANCELLED:
            assert selected(job).cancel().done == 1
            assert Job.objects.release(job)
    fresh = stored(job)
    assert (fresh.status, fresh.token) == (status, job.token)
    return fresh


def dead(**options: Any) -> Job:
    return in_status(JobStatus.DEAD, **options)


def selected(*jobs: Job) -> Any:
    return Job.objects.filter(pk__in=[job.pk for job in jobs])


def stored(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def row(job: Job) -> dict[str, Any]:
    """Every column, to see that nothing at all was written."""
    return selected(job).values().get()


def statuses(*jobs: Job) -> list[JobStatus]:
    return [JobStatus(stored(job).status) for job in jobs]


def write(job: Job, **values: Any) -> None:
    """Write columns by hand: what no move can do."""
    assert selected(job).update(**values) == 1


def ago(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)


def make_due(*jobs: Job) -> None:
    selected(*jobs).update(run_after=ago(60))


def lose_lease(*jobs: Job) -> None:
    """As if the worker had not renewed for a minute."""
    assert selected(*jobs).update(lease_until=ago(60)) == len(jobs)


def seconds_from_now(instant: datetime | None) -> float:
    """At least so many: SQLite rounds an instant by up to half a millisecond."""
    assert instant is not None
    return (instant - timezone.now()).total_seconds() - 0.0005


def ids(jobs: list[Job]) -> list[Any]:
    return [job.id for job in jobs]


def in_order(jobs: list[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (-job.priority, job.run_after, job.id))


def heads() -> list[Mark]:
    """The first pending job of each lane."""
    first: dict[tuple[str, int], Mark] = {}
    for job in in_order(list(Job.objects.filter(status=JobStatus.PENDING))):
        first.setdefault((job.queue, job.priority), Mark(job.queue, job.priority, job.run_after, job.id))
    return list(first.values())


@contextmanager
def statements(alias: str = DEFAULT_DB_ALIAS) -> Iterator[list[str]]:
    """The statements of the block that are about data: no BEGIN, COMMIT or savepoints."""
    found: list[str] = []
    with CaptureQueriesContext(connections[alias]) as captured:
        yield found
    words = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
    found += [one["sql"] for one in captured if not one["sql"].strip().upper().startswith(words)]
