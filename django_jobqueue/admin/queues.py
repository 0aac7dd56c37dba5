"""Queues of which somebody has said something; one without a row is simply running."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from .. import conf
from ..exceptions import InvalidOption, UnknownQueue
from ..managers.preparing import check_queue
from ..models import Queue
from ..statistics import span_text
from .display import instant
from .readonly import ReadOnlyAdmin

_PAUSED = ngettext_lazy("%(count)d queue is paused.", "%(count)d queues are paused.", "count")
_RESUMED = ngettext_lazy("%(count)d queue is resumed.", "%(count)d queues are resumed.", "count")


class QueueForm(forms.ModelForm):  # type: ignore[type-arg]
    """Names the queue, and says what is to be so with it."""

    paused = forms.BooleanField(label=_("Paused"), required=False, initial=True)
    kept_days = forms.FloatField(
        label=_("Keep finished jobs for"),
        required=False,
        min_value=0,
        max_value=36_525,
        help_text=_(
            'Days for which done and cancelled jobs stay; empty: as JOBQUEUE["RETENTION"] says. Dead letters '
            "stay as that setting says."
        ),
    )

    class Meta:
        model = Queue
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        retention = self.instance.retention
        if retention is not None and "kept_days" in self.fields:
            self.initial["kept_days"] = retention / timedelta(days=1)

    def clean_name(self) -> str:
        """A name that ``enqueue`` would take too."""
        try:
            return check_queue(self.cleaned_data["name"], conf.current())
        except (UnknownQueue, InvalidOption) as problem:
            raise ValidationError(str(problem)) from problem


class QueueAdmin(ReadOnlyAdmin):
    """Pause and resume, and how long finished jobs are kept."""

    list_display = ("name", "paused", "kept", "updated")
    ordering = ("name",)
    actions = ("pause", "resume")
    form = QueueForm

    @admin.display(description=_("finished jobs are kept for"))
    def kept(self, queue: Queue) -> str:
        """Its own retention, if it has one."""
        if queue.retention is None:
            return gettext("as the setting says")
        return span_text(queue.retention.total_seconds())

    @admin.display(description=_("updated at"))
    def updated(self, queue: Queue) -> str:
        """When it was last paused or resumed."""
        return instant(queue.updated_at)

    @admin.action(description=_("Pause: start none of their jobs"), permissions=["pause"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        """Running jobs end; no other is claimed."""
        self._each(request, queryset, Queue.objects.pause, _PAUSED)

    @admin.action(description=_("Resume"), permissions=["pause"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        """Jobs are claimed again."""
        self._each(request, queryset, Queue.objects.resume, _RESUMED)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the person may pause and resume queues."""
        return self.permits(request, "pause_queue")

    def has_retention_permission(self, request: HttpRequest) -> bool:
        """Whether the person may say how long finished jobs of a queue are kept."""
        return self.permits(request, "set_queue_retention")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A row is made by pausing, or by giving it a retention."""
        return self.has_pause_permission(request) or self.has_retention_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What there is to change on the page is the retention; the actions pause and resume."""
        return self.has_retention_permission(request)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Say something of a queue that has no row yet."""
        title = {"title": _("Pause a queue, or keep its jobs for a time of its own")}
        return super().add_view(request, form_url, {**title, **(extra_context or {})})

    def get_fields(self, request: HttpRequest, obj: Queue | None = None) -> Any:
        """Only what the person may say."""
        kept = ("kept_days",) if self.has_retention_permission(request) else ()
        if obj is not None:
            return ("name", "paused", *(kept or ("kept",)), "updated")
        return ("name", *(("paused",) if self.has_pause_permission(request) else ()), *kept)

    def get_readonly_fields(self, request: HttpRequest, obj: Queue | None = None) -> Any:
        """The name is given once; pausing is an action."""
        hidden = () if self.has_retention_permission(request) else ("kept_days",)
        if obj is not None:
            return ("name", "paused", "kept", "updated", *hidden)
        return ("kept", "updated", *hidden, *(() if self.has_pause_permission(request) else ("paused",)))

    def save_model(self, request: HttpRequest, obj: Queue, form: Any, change: bool) -> None:
        """By the moves."""
        said = form.cleaned_data
        if not change:
            (Queue.objects.pause if said.get("paused") else Queue.objects.resume)(obj.name)
        if "kept_days" in said:
            days = said["kept_days"]
            Queue.objects.keep_for(obj.name, None if days is None else timedelta(days=days))

    def _each(
        self, request: HttpRequest, queues: QuerySet[Queue], move: Callable[[str], None], done: Any
    ) -> None:
        moved = []
        for queue in queues:
            try:
                move(queue.name)
            except UnknownQueue as problem:  # it is no longer declared
                self.message_user(request, str(problem), messages.WARNING)
            else:
                moved.append(queue)
        if moved:
            told = done % {"count": len(moved)}
            self.log_moved(request, moved, str(told))
            self.message_user(request, told, messages.SUCCESS)
