"""The life of a job as a list of events, the first one first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..databases.clock import as_utc, from_database
from ..models import Job, JobStatus
from . import display


@dataclass(frozen=True)
class Event:
    """Something that happened. ``kind`` is a word for its look."""

    kind: str
    title: str
    when: datetime | None
    note: str = ""
    error: SafeString | str = ""

    @property
    def time(self) -> SafeString | str:
        """When, as a page shows it."""
        return display.instant(self.when)


def events(job: Job) -> list[Event]:
    """All that the row tells of a job's life."""
    found = [*_beginning(job), *_failures(job), *_present(job)]
    # Stable: what has no time, or the same, stays where it was said.
    last = as_utc(job.created_at)
    placed = []
    for event in found:
        last = as_utc(event.when) if event.when else last
        placed.append((last, event))
    return [event for _, event in sorted(placed, key=lambda pair: pair[0])]


def _beginning(job: Job) -> Iterator[Event]:
    note = gettext("queue %(queue)s, priority %(priority)d") % {"queue": job.queue, "priority": job.priority}
    yield Event("created", gettext("Enqueued"), job.created_at, note)


def _failures(job: Job) -> Iterator[Event]:
    for entry in job.errors if isinstance(job.errors, list) else []:
        if not isinstance(entry, Mapping):  # written by hand
            yield Event("failed", gettext("Failed"), None, error=display.pretty_json(entry))
            continue
        started, ended = (_moment(entry.get(key)) for key in ("started_at", "ended_at"))
        facts = [gettext("worker %(worker)s") % {"worker": entry.get("worker") or "?"}]
        if started and ended:
            facts.append(gettext("ran for %(time)s") % {"time": span(ended - started)})
        title = gettext("Attempt %(attempt)s failed") % {"attempt": entry.get("attempt", "?")}
        yield Event("failed", title, ended or started, ", ".join(facts), display.error(entry, job))


def _present(job: Job) -> Iterator[Event]:
    if job.status == JobStatus.PENDING:
        waits = _before(job.run_after, Job.objects.now())
        yield Event("due", gettext("Due") if waits else gettext("Due later"), job.run_after)
        return
    # What failed for good stands among the failures already.
    if job.status in (JobStatus.RUNNING, JobStatus.DONE):
        yield from _last_attempt(job)
    if job.cancel_requested_at:
        yield Event("asked", gettext("Asked to stop"), job.cancel_requested_at)
    if job.status == JobStatus.RUNNING and job.progress_note:
        yield Event("running", display.told(job, job.progress_note), None)
    elif job.status == JobStatus.DONE:
        took = span(job.finished_at - job.run_started_at) if job.finished_at and job.run_started_at else ""
        yield Event(
            "done", gettext("Done"), job.finished_at, took and gettext("ran for %(time)s") % {"time": took}
        )
    elif job.status == JobStatus.DEAD:
        note = gettext("%(attempts)s attempts were made") % {"attempts": display.attempts(job)}
        yield Event("dead", gettext("Dead"), job.finished_at, note)
    elif job.status == JobStatus.CANCELLED:
        reason = display.told(job, job.last_error)
        yield Event("cancelled", gettext("Cancelled"), job.finished_at, reason[: display.VALUE_LIMIT])


def _last_attempt(job: Job) -> Iterator[Event]:
    worker = gettext("worker %(worker)s") % {"worker": job.worker_id or "?"}
    if job.run_started_at is None or (job.claimed_at and _before(job.run_started_at, job.claimed_at)):
        yield Event("running", gettext("Claimed"), job.claimed_at, worker)
        return
    title = gettext("Attempt %(attempt)s started") % {"attempt": job.attempts}
    waited = span(job.run_started_at - job.run_after)
    note = gettext("%(worker)s, %(time)s after it was due") % {"worker": worker, "time": waited}
    yield Event("running", title, job.run_started_at, note)


def span(value: timedelta) -> str:
    """How long, in the two largest units: ``1.20 s``, ``3 min 5 s``, ``2 d 4 h``."""
    seconds = max(value.total_seconds(), 0.0)
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86_400)
    if minutes < 60:
        return f"{minutes} min {int(seconds % 60)} s"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{days} d {hours % 24} h"


def _before(one: datetime, other: datetime) -> bool:
    return as_utc(one) <= as_utc(other)


def _moment(text: Any) -> datetime | None:
    try:
        found = parse_datetime(text) if text else None
    except (TypeError, ValueError):  # written by hand
        return None
    return from_database(found) if found and found.tzinfo else None
