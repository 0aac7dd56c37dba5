"""Looking at what was enqueued."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from .. import registry
from ..handlers import Handler
from ..models import Job
from ..states import JobStatus

#: Seconds between the ``run_after`` asked for and the job's, where it is given as a timedelta.
TOLERANCE = 5.0


def assert_enqueued(
    job_type: str | Handler[Any, Any] | Any | None = None,
    payload: Mapping[str, Any] | None = None,
    *,
    times: int | None = None,
    queue: str | None = None,
    run_after: datetime | timedelta | None = None,
    **fields: Any,
) -> list[Job]:
    """Assert that such jobs were enqueued, whatever became of them, and return them, oldest first.

    ``job_type``: its name, a handler made by ``@job``, or a task of Django's Tasks API; None: any.
    ``payload``: what the payload has to contain, objects in it likewise in part; of a task, its arguments by
    their names, or ``{"args": […]}``, ``{"kwargs": {…}}`` as they were given. ``times``: how often
    exactly, 0 for never; None: at least once. ``run_after``: a datetime, or a timedelta from now, met within
    five seconds. ``fields``: other fields of the job, ``priority=10``, ``dedupe_key="k"``.

    Raises ``AssertionError``, which lists the jobs that there are.
    """
    name = _name(job_type)
    if name is not None:
        fields["job_type"] = name
    if queue is not None:
        fields["queue"] = queue
    found = [
        job
        for job in Job.objects.filter(**fields).order_by("pk")
        if (payload is None or any(_contains(one, payload) for one in _payloads(job)))
        and _is_at(job, run_after)
    ]
    if len(found) == times or (times is None and found):
        return found
    wanted = {**fields, "payload": payload, "run_after": run_after}
    asked = ", ".join(f"{key}={value!r}" for key, value in wanted.items() if value is not None) or "any"
    expected = "at least one such job" if times is None else f"{times} such jobs"
    raise AssertionError(f"Expected {expected} ({asked}), found {len(found)}. {_all_jobs()}")


def _name(job_type: Any) -> str | None:
    if job_type is None or isinstance(job_type, str):
        return job_type
    if isinstance(job_type, Handler):
        return job_type.job_type.name
    return str(job_type.module_path)


def _payloads(job: Job) -> Iterator[Mapping[str, Any]]:
    """The payload as it is, and that of a task by the names of its arguments."""
    yield job.payload
    if job.payload.keys() == {"args", "kwargs"}:
        names = registry.positions(job.job_type, job.payload)
        yield {**dict(zip(names, job.payload["args"], strict=False)), **job.payload["kwargs"]}


def _contains(value: Any, part: Any) -> bool:
    """Whether ``value`` has all that is in ``part``."""
    if isinstance(part, Mapping):
        return isinstance(value, dict) and all(
            key in value and _contains(value[key], one) for key, one in part.items()
        )
    return bool(value == (list(part) if isinstance(part, tuple) else part))


def _is_at(job: Job, run_after: datetime | timedelta | None) -> bool:
    if run_after is None:
        return True
    if isinstance(run_after, datetime):
        return bool(job.run_after == run_after)
    return bool(abs((job.run_after - timezone.now() - run_after).total_seconds()) <= TOLERANCE)


def _all_jobs() -> str:
    jobs = list(Job.objects.order_by("pk")[:21])
    if not jobs:
        return "No job was enqueued at all."
    lines = [
        f"  {job.job_type} {job.payload} in {job.queue!r}, {JobStatus(job.status).label}, {job.run_after}"
        for job in jobs[:20]
    ]
    return "\n".join(["There are:", *lines, *["  …"][: len(jobs) - 20 if len(jobs) > 20 else 0]])
