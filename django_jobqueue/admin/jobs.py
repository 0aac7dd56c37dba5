"""Jobs: the list, the page of one job, and what can be done to those selected."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..managers import JobQuerySet
from ..models import Job
from . import actions, display
from .changelist import CappedPaginator, JobChangeList
from .filters import QueueFilter, TimeRangeFilter, TypeFilter
from .readonly import ReadOnlyAdmin

#: Jobs in one deletion: Django's page repeats each of them in its form, which may have 1,000 fields.
DELETED_AT_ONCE = 500

created, run_after = display.time_column("created_at"), display.time_column("run_after")
started, finished = display.time_column("run_started_at"), display.time_column("finished_at")

PAGE: dict[Any, tuple[Any, ...]] = {
    None: (
        display.status, "job_type", display.handler, "queue", "priority", display.attempts, display.progress,
    ),
    _("Times"): (
        created, run_after, *map(display.time_column, ("expires_at", "claimed_at")), started, finished,
        *map(display.time_column, ("cancel_requested_at", "updated_at")),
    ),
    _("Data"): tuple(map(display.json_column, ("payload", "result", "context"))),
    _("Errors"): ("last_error", "error_fingerprint", display.errors),
    _("Claim"): (
        "worker_id", "fence", display.time_column("lease_until"), "crashes", "snoozes", "releases",
        display.time_column("unknown_since"),
    ),
    _("Keys"): ("id", "dedupe_key", "lock_key"),
}  # fmt: skip


class JobAdmin(ReadOnlyAdmin):
    """Every job there is, newest first."""

    list_display = (
        display.status, "job_type", "queue", "priority", display.attempts,
        run_after, created, started, finished,
    )  # fmt: skip
    list_display_links = ("job_type",)
    list_filter = (
        "status",
        QueueFilter,
        TypeFilter,
        ("created_at", TimeRangeFilter),
        ("run_after", TimeRangeFilter),
        ("finished_at", TimeRangeFilter),
    )
    search_fields = ("id",)
    search_help_text = _("Id (with or without hyphens), dedupe key, or the beginning of a type.")
    ordering = ("-id",)  # the id carries its time, so this is newest first, by the primary key
    paginator = CappedPaginator
    show_full_result_count = False
    actions = ("retry_jobs", "run_jobs_now", "cancel_jobs", "delete_selected")
    fieldsets = [(title, {"fields": fields}) for title, fields in PAGE.items()]
    readonly_fields = tuple(field for fields in PAGE.values() for field in fields)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that asks for narrow rows."""
        return JobChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """An id, a dedupe key, or the beginning of a type."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if (identity := _as_id(term)) is not None:
            return queryset.filter(Q(pk=identity) | Q(dedupe_key=term)), False
        return queryset.filter(Q(dedupe_key=term) | Q(job_type__startswith=term)), False

    @admin.action(description=_("Retry dead or cancelled jobs"), permissions=["retry"])
    def retry_jobs(self, request: HttpRequest, queryset: JobQuerySet) -> None:
        """DEAD, CANCELLED → PENDING."""
        actions.perform(actions.RETRY, self, request, queryset)

    @admin.action(description=_("Run now"), permissions=["run_now"])
    def run_jobs_now(self, request: HttpRequest, queryset: JobQuerySet) -> None:
        """PENDING jobs that are scheduled for later become due."""
        actions.perform(actions.RUN_NOW, self, request, queryset)

    @admin.action(description=_("Cancel"), permissions=["cancel"])
    def cancel_jobs(self, request: HttpRequest, queryset: JobQuerySet) -> None:
        """PENDING → CANCELLED; RUNNING jobs are asked to stop."""
        actions.perform(actions.CANCEL, self, request, queryset)

    @admin.action(description=_("Delete finished jobs"), permissions=["delete"])
    def delete_selected(self, request: HttpRequest, queryset: JobQuerySet) -> HttpResponse | None:
        """Django's own, for as many jobs as its page can hold."""
        if len(queryset[: DELETED_AT_ONCE + 1]) > DELETED_AT_ONCE:
            text = gettext(
                "At most %(most)d jobs are deleted at once here. Those that are older than "
                'JOBQUEUE["RETENTION"] says are removed by the workers.'
            )
            self.message_user(request, text % {"most": DELETED_AT_ONCE}, messages.ERROR)
            return None
        return delete_selected(self, request, queryset)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Whether the person may retry jobs."""
        return self.permits(request, "retry_job")

    def has_run_now_permission(self, request: HttpRequest) -> bool:
        """Whether the person may make jobs due now."""
        return self.permits(request, "run_job_now")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Whether the person may cancel jobs."""
        return self.permits(request, "cancel_job")

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        """By permission, and only what no worker will touch again."""
        return self.permits(request, "delete_job") and (obj is None or obj.is_finished)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, Any, Any]:
        """What Django's confirmation lists. Nothing refers to a job, so there is nothing to collect."""
        going = [str(job) for job in objs if job.is_finished]
        kept = [str(job) for job in objs if not job.is_finished]
        return going, {self.opts.verbose_name_plural: len(going)}, set(), kept

    def delete_model(self, request: HttpRequest, obj: Job) -> None:
        """Remove a job, unless it has become active meanwhile."""
        Job.objects.filter(pk=obj.pk).prune(timedelta(0))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Remove the jobs, but for those that have become active meanwhile."""
        queryset.prune(timedelta(0))


def _as_id(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None
