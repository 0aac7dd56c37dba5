"""What a person does to many jobs at once: one move of the query set, told and logged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from ..managers import JobQuerySet, Report
from ..models import Job
from .readonly import ReadOnlyAdmin

#: Up to so many jobs each get a line in their own history; more share one.
LOGGED_EACH = 100


@dataclass(frozen=True)
class Action:
    """A move, and how the person and the log are told about it."""

    move: Callable[[JobQuerySet, HttpRequest], Report]
    done: Any  # the sentence for "count" jobs
    logged: Any  # the line in the log


def _cancel(jobs: JobQuerySet, request: HttpRequest) -> Report:
    return jobs.cancel(reason=gettext("cancelled by %(user)s") % {"user": request.user.get_username()})


RETRY = Action(
    move=lambda jobs, request: jobs.retry(),
    done=ngettext_lazy("%(count)d job runs again.", "%(count)d jobs run again.", "count"),
    logged=_("Retried"),
)
RUN_NOW = Action(
    move=lambda jobs, request: jobs.reschedule(timedelta(0)),
    done=ngettext_lazy("%(count)d job is due now.", "%(count)d jobs are due now.", "count"),
    logged=_("Due now"),
)
CANCEL = Action(
    move=_cancel,
    done=ngettext_lazy(
        "%(count)d job is cancelled, or asked to stop if it was running.",
        "%(count)d jobs are cancelled, or asked to stop if they were running.",
        "count",
    ),
    logged=_("Cancelled, or asked to stop"),
)


def perform(action: Action, model_admin: ReadOnlyAdmin, request: HttpRequest, jobs: JobQuerySet) -> None:
    """Move the selected jobs, log it, and tell the person what was done, what was refused, and why."""
    few = list(jobs[: LOGGED_EACH + 1])
    report = (
        _each(action, model_admin, request, few) if len(few) <= LOGGED_EACH else _all(action, request, jobs)
    )
    if report.done:
        model_admin.message_user(request, action.done % {"count": report.done}, messages.SUCCESS)
    if report.refused:
        model_admin.message_user(request, refusals(report), messages.WARNING)


def refusals(report: Report) -> str:
    """Why jobs were left as they are, the most frequent reason first."""
    reasons = (
        gettext("%(count)d refused: %(reason)s") % {"count": count, "reason": reason}
        for reason, count in report.refused.most_common()
    )
    return "; ".join(reasons)


def _each(action: Action, model_admin: ReadOnlyAdmin, request: HttpRequest, jobs: Sequence[Job]) -> Report:
    """One by one, so that each job's history says truly what was done to it."""
    total = Report()
    moved = []
    for job in jobs:
        report = action.move(Job.objects.filter(pk=job.pk), request)
        total.done += report.done
        total.refused += report.refused
        if report.done:
            moved.append(job)
    model_admin.log_moved(request, moved, str(action.logged))
    return total


def _all(action: Action, request: HttpRequest, jobs: JobQuerySet) -> Report:
    """All with one move, which works chunk by chunk, and one line in the log."""
    report = action.move(jobs, request)
    told = [action.done % {"count": report.done}, refusals(report)]
    user: Any = request.user
    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(Job),
        object_repr=str(Job._meta.verbose_name_plural),
        action_flag=CHANGE,
        change_message=f"{action.logged}: {'; '.join(filter(None, told))}",
    )
    return report
