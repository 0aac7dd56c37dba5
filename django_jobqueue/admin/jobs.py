"""Jobs: the list, the page of one job, and what can be done to those selected."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from ..databases.controlling import ORIGINAL_PAYLOAD
from ..managers import JobQuerySet
from ..models import Job
from . import actions, bulk_views, dead_letters, display, job_page, search
from .actions import Action
from .changelist import JobChangeList
from .filters import (
    DedupeKeyFilter,
    DueFilter,
    FingerprintFilter,
    HasKeyFilter,
    LockKeyFilter,
    QueueFilter,
    TimeRangeFilter,
    TypeFilter,
    WorkerFilter,
)
from .readonly import ReadOnlyAdmin

created, run_after = display.time_column("created_at"), display.time_column("run_after")
started, finished = display.time_column("run_started_at"), display.time_column("finished_at")

TIMES, CLAIM = FOLDED = (_("Times"), _("Claim"))

PAGE: dict[Any, tuple[Any, ...]] = {
    None: (
        display.handler, "queue", "priority", display.attempts, display.progress, display.last_error,
        "error_fingerprint",
    ),
    _("Data"): (
        display.json_column("payload"), display.original_payload, display.json_column("result"),
        display.json_column("context"),
    ),
    _("Options in force"): (display.retry_rule, display.handler_options, "dedupe_key", "lock_key", "id"),
    TIMES: (
        created, run_after, *map(display.time_column, ("expires_at", "claimed_at")), started, finished,
        *map(display.time_column, ("cancel_requested_at", "updated_at")),
    ),
    CLAIM: (
        "worker_id", "fence", display.time_column("lease_until"), "crashes", "snoozes", "releases",
        display.time_column("unknown_since"),
    ),
}  # fmt: skip


class JobAdmin(ReadOnlyAdmin):
    """Every job there is, newest first."""

    list_display = (
        display.status, "job_type", display.lane, display.attempts, run_after, finished,
    )  # fmt: skip
    list_per_page = 50
    list_display_links = ("job_type",)
    list_filter = (
        FingerprintFilter,
        DedupeKeyFilter,
        LockKeyFilter,
        "status",
        DueFilter,
        QueueFilter,
        TypeFilter,
        WorkerFilter,
        ("created_at", TimeRangeFilter),
        ("run_after", TimeRangeFilter),
        ("finished_at", TimeRangeFilter),
        HasKeyFilter,
    )
    search_fields = ("id",)
    search_help_text = search.HELP
    ordering = ("-id",)  # the id carries its time, so this is newest first, by the primary key
    show_full_result_count = False
    actions = ("retry_jobs", "run_jobs_now", "cancel_jobs", "delete_selected")
    fieldsets = [
        (title, {"fields": fields, "classes": ["collapse"] if title in FOLDED else []})
        for title, fields in PAGE.items()
    ]
    change_form_template = "admin/django_jobqueue/job/change_form.html"
    readonly_fields = tuple(field for fields in PAGE.values() for field in fields)

    class Media:
        css = {"all": ["django_jobqueue/jobs.css"]}
        js = [Script("django_jobqueue/jobs.js", defer=True)]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that asks for narrow rows."""
        return JobChangeList

    def get_fieldsets(self, request: HttpRequest, obj: Job | None = None) -> Any:
        """Those above; an original payload only where the job has another one now."""
        if obj is None or ORIGINAL_PAYLOAD in obj.context:
            return self.fieldsets
        hidden: Any = display.original_payload
        return [
            (title, {**rest, "fields": [one for one in rest["fields"] if one is not hidden]})
            for title, rest in self.fieldsets
        ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """What the search field means."""
        found = search.parse(request, search_term)
        if found is None:
            return queryset, False
        return queryset.filter(found.condition), False

    def get_urls(self) -> list[URLPattern]:
        """Django's, and before them the pages of our own."""
        own = [
            path("dead-letters/", self._own(dead_letters.view), name="django_jobqueue_job_dead_letters"),
            path("all/<slug:name>/", self._own(bulk_views.view), name="django_jobqueue_job_bulk"),
            path("live/", self._own(job_page.live), name="django_jobqueue_job_live"),
            path("<uuid:object_id>/payload/", self._own(job_page.edit), name="django_jobqueue_job_payload"),
            path("<uuid:object_id>/do/<slug:name>/", self._own(job_page.do), name="django_jobqueue_job_do"),
        ]
        return [*own, *super().get_urls()]

    def _own(self, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        """A view of ours as the admin's own are: for staff, with the token against forgery, never cached."""

        def serve(request: HttpRequest, **arguments: Any) -> HttpResponse:
            return view(self, request, **{name: str(value) for name, value in arguments.items()})

        return self.admin_site.admin_view(serve)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Job | None = None,
    ) -> HttpResponse:
        """The page of a job."""
        if obj is not None:
            context |= job_page.context(self, request, obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    @admin.action(description=_("Retry dead or cancelled jobs"), permissions=["retry"])
    def retry_jobs(self, request: HttpRequest, queryset: JobQuerySet) -> HttpResponse | None:
        """DEAD, CANCELLED → PENDING."""
        return self._act(actions.RETRY, request, queryset)

    @admin.action(description=_("Run now"), permissions=["run_now"])
    def run_jobs_now(self, request: HttpRequest, queryset: JobQuerySet) -> HttpResponse | None:
        """PENDING jobs that are scheduled for later become due."""
        return self._act(actions.RUN_NOW, request, queryset)

    @admin.action(description=_("Cancel"), permissions=["cancel"])
    def cancel_jobs(self, request: HttpRequest, queryset: JobQuerySet) -> HttpResponse | None:
        """PENDING → CANCELLED; RUNNING jobs are asked to stop."""
        return self._act(actions.CANCEL, request, queryset)

    @admin.action(description=_("Delete finished jobs"), permissions=["delete"])
    def delete_selected(self, request: HttpRequest, queryset: JobQuerySet) -> HttpResponse | None:
        """Django's own, which lists each of them; or the page for all that match."""
        if _is_across(request):
            return self._act(actions.DISCARD, request, queryset)
        return delete_selected(self, request, queryset)

    def _act(self, action: Action, request: HttpRequest, queryset: JobQuerySet) -> HttpResponse | None:
        """On the rows selected now; on all that match step by step, on a page of its own."""
        if _is_across(request):
            return HttpResponseRedirect(bulk_views.url(action.name, request.META["QUERY_STRING"]))
        actions.perform(action, self, request, queryset)
        return None

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

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django's own; of a job that is active, or has become so since it was looked at, it says why not."""
        job: Job | None = self.get_object(request, unquote(object_id))
        may = request.method == "POST" and self.permits(request, "delete_job")
        if job is None or not may:
            return super().delete_view(request, object_id, extra_context)
        if job.is_finished:
            with contextlib.suppress(_Active):
                return super().delete_view(request, object_id, extra_context)
        actions.perform(actions.DISCARD, self, request, [job])
        return HttpResponseRedirect(job_page.url(job))

    def delete_model(self, request: HttpRequest, obj: Job) -> None:
        """Remove a job, unless it has become active meanwhile."""
        if not Job.objects.filter(pk=obj.pk).discard().done:
            raise _Active

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Remove the jobs, but for those that have become active meanwhile."""
        queryset.discard()


class _Active(Exception):
    """The job that was to be deleted is not finished any more."""


def _is_across(request: HttpRequest) -> bool:
    """Whether all that match were chosen, and not just rows of the page."""
    return request.POST.get("select_across") == "1"
