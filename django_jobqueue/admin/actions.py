"""What a person may do to jobs: one move of the query set each, with the words to tell and to log it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from ..managers import JobQuerySet, Report
from ..models import Job, JobStatus
from .readonly import ReadOnlyAdmin


@dataclass(frozen=True)
class Action:
    """A move, who may make it, and how the person and the log are told about it."""

    name: str
    label: Any  # on a button
    permission: str
    move: Callable[..., Report]  # of a query set and the request
    done: Any  # the sentence for "count" jobs
    logged: Any  # the line in the log
    takes: frozenset[JobStatus]  # jobs in these can be moved
    is_destructive: bool = False

    def fits(self, job: Job) -> bool:
        """Whether it would change this job as it stands."""
        return job.status in self.takes


def _cancel(jobs: JobQuerySet, request: HttpRequest) -> Report:
    return jobs.cancel(reason=gettext("cancelled by %(user)s") % {"user": request.user.get_username()})


RETRY = Action(
    name="retry",
    label=_("Retry"),
    permission="retry_job",
    move=lambda jobs, request, **speed: jobs.retry(**speed),
    done=ngettext_lazy("%(count)d job runs again.", "%(count)d jobs run again.", "count"),
    logged=_("Retried"),
    takes=frozenset({JobStatus.DEAD, JobStatus.CANCELLED}),
)
RUN_NOW = Action(
    name="run-now",
    label=_("Run now"),
    permission="run_job_now",
    move=lambda jobs, request: jobs.reschedule(timedelta(0)),
    done=ngettext_lazy("%(count)d job is due now.", "%(count)d jobs are due now.", "count"),
    logged=_("Due now"),
    takes=frozenset({JobStatus.PENDING}),
)
SNOOZE = Action(
    name="snooze",
    label=_("Snooze"),
    permission="snooze_job",
    move=lambda jobs, request, by: jobs.reschedule(by),
    done=ngettext_lazy("%(count)d job waits for later.", "%(count)d jobs wait for later.", "count"),
    logged=_("Snoozed"),
    takes=frozenset({JobStatus.PENDING}),
)
CANCEL = Action(
    name="cancel",
    label=_("Cancel"),
    permission="cancel_job",
    move=_cancel,
    done=ngettext_lazy(
        "%(count)d job is cancelled, or asked to stop if it was running.",
        "%(count)d jobs are cancelled, or asked to stop if they were running.",
        "count",
    ),
    logged=_("Cancelled, or asked to stop"),
    takes=frozenset({JobStatus.PENDING, JobStatus.RUNNING}),
)
DISCARD = Action(
    name="discard",
    label=_("Delete"),
    permission="delete_job",
    move=lambda jobs, request: jobs.discard(),
    done=ngettext_lazy("%(count)d job is deleted.", "%(count)d jobs are deleted.", "count"),
    logged=_("Deleted"),
    takes=frozenset({JobStatus.DONE, JobStatus.DEAD, JobStatus.CANCELLED}),
    is_destructive=True,
)

#: By their names in addresses.
ACTIONS = {one.name: one for one in (RETRY, RUN_NOW, SNOOZE, CANCEL, DISCARD)}


def perform(
    action: Action, model_admin: ReadOnlyAdmin, request: HttpRequest, jobs: Iterable[Job], **how: Any
) -> Report:
    """Move the jobs one by one, so that each one's history says truly what was done to it, and tell."""
    total = Report()
    moved = []
    for job in jobs:
        report = action.move(Job.objects.filter(pk=job.pk), request, **how)
        total.done += report.done
        total.refused += report.refused
        if report.done:
            moved.append(job)
    model_admin.log_moved(request, moved, str(action.logged))
    if total.done:
        model_admin.message_user(request, action.done % {"count": total.done}, messages.SUCCESS)
    if total.refused:
        model_admin.message_user(request, refusals(total.refused), messages.WARNING)
    return total


def refusals(refused: Mapping[str, int]) -> str:
    """Why jobs were left as they are, the most frequent reason first."""
    reasons = (
        gettext("%(count)d refused: %(reason)s") % {"count": count, "reason": reason}
        for reason, count in sorted(refused.items(), key=lambda pair: -pair[1])
    )
    return "; ".join(reasons)
