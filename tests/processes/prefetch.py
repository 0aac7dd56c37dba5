"""Bring a worker to hold jobs that have not started: it takes them only once it knows that jobs are short."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django_jobqueue.models import Job, JobStatus
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DONE, PENDING, RUNNING, status
from tests.waiting import equals, eventually

#: So many short jobs, and their mean says so.
WARM_UP = 300
#: How often it is tried: on a busy machine a short job takes long now and then.
TRIES = 50


@dataclass
class Held:
    """A job that runs until the gate is opened, and those that wait behind it in the same process."""

    first: Job
    others: list[Job]
    gate: Path

    def __iter__(self) -> Iterator[Job]:
        return iter([self.first, *self.others])

    def standing(self) -> dict[JobStatus, int]:
        """How many of these jobs stand where."""
        jobs = Job.objects.filter(pk__in=[job.pk for job in self])
        return dict(Counter(JobStatus(one) for one in jobs.values_list("status", flat=True)))


def prefetched(ledger: Ledger, folder: Path, behind: int, **options: Any) -> Held:
    """Of a worker with one thread: a job that runs in it, and so many that wait there."""
    for attempt in range(TRIES):
        Job.objects.enqueue_many([("tests:nothing", {})] * WARM_UP)
        equals(False, Job.objects.exclude(status=DONE).exists)
        gate = folder / f"gate-{attempt}"
        payloads = [("tests:wait", {"gate": str(gate)})] + [("tests:touch", {"n": n}) for n in range(behind)]
        first, *others = Job.objects.enqueue_many(payloads, **options)
        equals(RUNNING, lambda first=first: status(first), every=0.005)
        if not Job.objects.filter(status=PENDING).exists():
            eventually(lambda first=first: ledger.runs(first), every=0.005)
            return Held(first, others, gate)
        gate.touch()
    raise AssertionError(f"it never took {behind} jobs beforehand, in {TRIES} tries")
