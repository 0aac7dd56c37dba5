"""Queues that are paused, or once were; a queue without a row is simply running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from .. import conf
from ..exceptions import InvalidOption, UnknownQueue
from ..managers.preparing import check_queue
from ..models import Queue
from .display import instant
from .readonly import ReadOnlyAdmin

_PAUSED = ngettext_lazy("%(count)d queue is paused.", "%(count)d queues are paused.", "count")
_RESUMED = ngettext_lazy("%(count)d queue is resumed.", "%(count)d queues are resumed.", "count")


class PauseForm(forms.ModelForm):  # type: ignore[type-arg]
    """Names the queue that is to be paused."""

    class Meta:
        model = Queue
        fields = ("name",)

    def clean_name(self) -> str:
        """A name that ``enqueue`` would take too."""
        try:
            return check_queue(self.cleaned_data["name"], conf.current())
        except (UnknownQueue, InvalidOption) as problem:
            raise ValidationError(str(problem)) from problem


class QueueAdmin(ReadOnlyAdmin):
    """Pause and resume."""

    list_display = ("name", "paused", "updated")
    fields = ("name", "paused", "updated")
    readonly_fields = ("paused", "updated")
    ordering = ("name",)
    actions = ("pause", "resume")
    form = PauseForm

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

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A row is made by pausing, so it takes the same permission."""
        return self.has_pause_permission(request)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Pause a queue that has no row yet."""
        return super().add_view(request, form_url, {"title": _("Pause a queue"), **(extra_context or {})})

    def get_fields(self, request: HttpRequest, obj: Queue | None = None) -> Any:
        """Only the name is asked for."""
        return ("name",) if obj is None else self.fields

    def save_model(self, request: HttpRequest, obj: Queue, form: Any, change: bool) -> None:
        """Pause it."""
        Queue.objects.pause(obj.name)

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
