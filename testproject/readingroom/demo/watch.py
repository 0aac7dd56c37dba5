"""What the jobs are doing, read from their table: figures for each kind, and what happened."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django_jobqueue.models import Job, JobStatus

from .stage import KINDS


@dataclass
class Figures:
    """The jobs of one kind."""

    statuses: Counter[JobStatus] = field(default_factory=Counter)
    progress: float = 0.0  # of those that run, added up
    retries: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.statuses.total()

    @property
    def active(self) -> int:
        """Those that are not finished."""
        return self.statuses[JobStatus.PENDING] + self.statuses[JobStatus.RUNNING]


@dataclass(frozen=True)
class Event:
    """Something that happened to a job."""

    what: str  # done, retry, dead
    kind: str
    text: str


class Watch:
    """Remembers how jobs stood, to tell what changed."""

    def __init__(self) -> None:
        self.figures = {kind: Figures() for kind in KINDS}
        self._known: dict[UUID, tuple[int, int]] = {}
        self._retries: Counter[str] = Counter()

    def look(self) -> list[Event]:
        """Read the table; what happened."""
        figures = {kind: Figures() for kind in KINDS}
        changed = []
        rows = Job.objects.filter(job_type__in=KINDS).order_by("finished_at", "pk")
        for pk, kind, status, attempts, progress in rows.values_list(
            "pk", "job_type", "status", "attempts", "progress"
        ):
            figures[kind].statuses[JobStatus(status)] += 1
            if status == JobStatus.RUNNING:
                figures[kind].progress += progress or 0
            if self._known.get(pk) != (status, attempts):
                changed.append(pk)
        events = self._events(changed)
        self._retries.update(event.kind for event in events if event.what == "retry")
        for kind, retries in self._retries.items():
            figures[kind].retries = retries
        self.figures = figures
        return events

    def _events(self, changed: list[UUID]) -> list[Event]:
        jobs = Job.objects.in_bulk(changed)
        events = []
        for job in (jobs[pk] for pk in changed if pk in jobs):
            # As it is now: it may have gone on since its row was read for the figures.
            standing = (job.status, job.attempts)
            before = self._known.get(job.pk)
            event = event_of(job) if before != standing else None
            self._known[job.pk] = standing
            if event is not None:
                events.append(event)
        return events

    @property
    def active(self) -> int:
        """Jobs that are not finished."""
        return sum(one.active for one in self.figures.values())


def event_of(job: Job) -> Event | None:
    """What became of a job, if it is worth a line."""
    match job.status:
        case JobStatus.DONE:
            failed = f" (after {len(job.errors)} failed)" if job.errors else ""
            return Event("done", job.job_type, describe(job.job_type, job.payload, job.result) + failed)
        case JobStatus.DEAD:
            return Event("dead", job.job_type, reason(job))
        case JobStatus.PENDING if job.attempts:
            seconds = (job.run_after - job.updated_at).total_seconds()
            return Event("retry", job.job_type, f"again in {max(seconds, 0):.1f} s: {reason(job)}")
    return None


def describe(kind: str, payload: dict[str, Any], result: Any) -> str:
    """A finished job's result in a few words."""
    match kind:
        case "exploration:run":
            config = payload["config"]
            part = f" ({config['part']} of {config['parts']})" if config["parts"] > 1 else ""
            return f"{config['package']}{part}: {result['files']} files, {result['lines']:,} lines"
        case "search":
            best = f", best {result['hits'][0]['path']}" if result["hits"] else ""
            return f"{result['query']}: {len(result['hits'])} hits{best}"
        case "report:generate":
            return f"{result['file']}: {result['files']:,} documents in {result['size']:,} bytes"
        case "outbox":
            return f"delivered: {result['answer']}"
        case _:
            return "removed " + ", ".join(f"{name}: {count}" for name, count in result.items() if count)


def reason(job: Job) -> str:
    """The last error without the path of its class."""
    return job.last_error.partition(": ")[2] or job.last_error
