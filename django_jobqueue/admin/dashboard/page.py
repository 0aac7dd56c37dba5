"""What the dashboard shows: figures as text, and the addresses behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from ...managers.base import queue_alias
from ...models import Job, JobStatus
from ...statistics import (
    PERIODS,
    Alert,
    Count,
    Overview,
    QueueFigures,
    RunningJob,
    Times,
    WorkerFigures,
    alerts_of,
    look,
    look_back,
    span_text,
)
from .charts import charts, labels_of, rate_text

#: Codes of alerts that tell of something that hurts now; the others can wait.
GRAVE = frozenset({"no-worker", "worker-stands-still", "late", "dead-letters-grow"})


class Figure(NamedTuple):
    """A number with its words, and where it leads."""

    label: str
    text: str
    address: str = ""
    kind: str = ""
    note: str = ""


class QueueRow(NamedTuple):
    """A line of the table of queues."""

    queue: QueueFigures
    address: str
    state: Figure
    figures: list[Figure]


class WorkerRow(NamedTuple):
    """A line of the table of workers."""

    worker: WorkerFigures
    state: Figure
    queues: str
    beat: str
    up: str
    jobs: list[tuple[RunningJob, str, str]]


class Choice(NamedTuple):
    """A link that chooses a period."""

    label: str
    address: str
    is_chosen: bool


def content(period_name: str, queue: str | None, links_to_jobs: bool) -> dict[str, Any]:
    """The context of the part of the page that is refreshed."""
    alias = queue_alias(Job)
    period = PERIODS.get(period_name, PERIODS["hour"])
    all_queues = look_back(period, alias)
    overview = look(all_queues, alias)
    shown = all_queues.of(queue) if queue is not None else all_queues
    labels = labels_of(shown)
    jobs = job_list if links_to_jobs else _nowhere
    return {
        "taken_at": timezone.localtime() if timezone.is_aware(timezone.now()) else timezone.now(),
        "period": period,
        "periods": [_choice(one.name, str(one.label), queue, one is period) for one in PERIODS.values()],
        "chosen_queue": queue,
        "all_queues_address": address(period.name),
        "query": urlencode(_parameters(period.name, queue)),
        "alerts": [(one, _tone(one)) for one in alerts_of(overview, alias)],
        "totals": _totals(overview, jobs),
        "queues": [_queue_row(one, period.name, jobs) for one in overview.queues],
        "more_queues": overview.more_queues,
        "workers": [_worker_row(one) for one in overview.workers],
        "more_workers": overview.more_workers,
        "links_to_jobs": links_to_jobs,
        "charts": charts(shown, labels),
        "has_history": not shown.is_empty,
        "points": [
            (
                label, point.done, point.failed, point.dead,
                span_text(point.waiting.mean), span_text(point.waiting.p95),
            )
            for label, point in zip(reversed(labels), reversed(shown.points), strict=True)
            if point.done or point.failed
        ],
    }  # fmt: skip


def address(period: str, queue: str | None = None) -> str:
    """Of the dashboard, so looked at."""
    parameters = _parameters(period, queue)
    page = reverse("admin:django_jobqueue_dashboard_changelist")
    return f"{page}?{urlencode(parameters)}" if parameters else page


def _parameters(period: str, queue: str | None) -> dict[str, str]:
    chosen = {} if period == "hour" else {"period": period}
    return chosen if queue is None else {**chosen, "queue": queue}


def job_list(**filters: str | int) -> str:
    """The address of the list of jobs, so filtered."""
    return f"{reverse('admin:django_jobqueue_job_changelist')}?{urlencode(filters)}"


def _nowhere(**filters: str | int) -> str:
    return ""


def _choice(name: str, label: str, queue: str | None, is_chosen: bool) -> Choice:
    return Choice(label, address(name, queue), is_chosen)


def _tone(alert: Alert) -> str:
    return "error" if alert.code in GRAVE else "warning"


def _totals(overview: Overview, jobs: Callable[..., str]) -> list[Figure]:
    total = overview.total
    pending, running, dead = (int(one) for one in (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.DEAD))
    living = len(overview.living)
    capacity = sum(one.capacity for one in overview.living)
    held = sum(one.held for one in overview.living)
    load = gettext("%(held)d of %(capacity)d busy") % {"held": held, "capacity": capacity}
    return [
        Figure(gettext("Due now"), str(total.due), jobs(status__exact=pending), note=_since(total)),
        Figure(gettext("Running"), str(total.running), jobs(status__exact=running)),
        Figure(gettext("Scheduled"), str(total.scheduled), jobs(status__exact=pending)),
        Figure(gettext("Dead"), str(total.dead), jobs(status__exact=dead), _if(total.dead, "dead")),
        Figure(gettext("Done/min"), rate_text(total.done_per_minute)),
        Figure(gettext("Workers"), f"{living}", kind="" if living else "dead", note=load),
    ]


def _if(count: Count, kind: str) -> str:
    return kind if count else ""


def _queue_row(queue: QueueFigures, period: str, jobs: Callable[..., str]) -> QueueRow:
    def count(label: str, there: Count, status: JobStatus, kind: str = "", note: str = "") -> Figure:
        address = jobs(status__exact=int(status), queue=queue.name) if there else ""
        return Figure(label, str(there), address, kind, note)

    failed = gettext("%(count)s failed") % {"count": Count(queue.failed)} if queue.failed else ""
    figures = [
        count(gettext("Due"), queue.due, JobStatus.PENDING, note=_since(queue)),
        count(gettext("Scheduled"), queue.scheduled, JobStatus.PENDING),
        count(gettext("Running"), queue.running, JobStatus.RUNNING),
        count(gettext("Dead"), queue.dead, JobStatus.DEAD, _if(queue.dead, "dead")),
        Figure(gettext("Done/min"), rate_text(queue.done_per_minute), note=failed),
        _times(gettext("Waiting time"), queue.waiting),
        _times(gettext("Running time"), queue.taking),
    ]  # fmt: skip
    return QueueRow(queue, address(period, queue.name), _queue_state(queue), figures)


def _since(queue: QueueFigures) -> str:
    return "" if queue.oldest is None else gettext("for %(span)s") % {"span": span_text(queue.oldest)}


def _times(label: str, times: Times) -> Figure:
    note = "" if times.p95 is None else gettext("95 %%: %(span)s") % {"span": span_text(times.p95)}
    return Figure(label, span_text(times.mean), note=note)


def _queue_state(queue: QueueFigures) -> Figure:
    note = ngettext("%(count)d worker", "%(count)d workers", queue.workers) % {"count": queue.workers}
    if queue.paused:
        return Figure("‖", gettext("paused"), kind="paused", note=note)
    if queue.due and not queue.workers:
        return Figure("✕", gettext("no worker"), kind="dead")
    if queue.running:
        return Figure("▶", gettext("working"), kind="running", note=note)
    return Figure("○", gettext("idle"), kind="idle", note=note)


def _worker_row(worker: WorkerFigures) -> WorkerRow:
    left_out = ", ".join(worker.exclude_queues)
    queues = gettext("all") if worker.queues is None else ", ".join(worker.queues)
    if left_out:
        queues = gettext("%(queues)s but %(left_out)s") % {"queues": queues, "left_out": left_out}
    jobs = [
        (one, span_text(one.seconds), reverse("admin:django_jobqueue_job_change", args=[one.id]))
        for one in worker.jobs
    ]
    beat = gettext("%(span)s ago") % {"span": span_text(worker.silent)}
    return WorkerRow(worker, _worker_state(worker), queues, beat, span_text(worker.up), jobs)


def _worker_state(worker: WorkerFigures) -> Figure:
    if not worker.is_living:
        return Figure("✕", gettext("silent"), kind="dead")
    if worker.asked_to_stop:
        return Figure("◼", gettext("stopping"), kind="paused")
    if worker.stands_still:
        return Figure("✕", gettext("stands still"), kind="dead")
    if worker.held:
        return Figure("▶", gettext("working"), kind="running")
    return Figure("○", gettext("idle"), kind="idle")
