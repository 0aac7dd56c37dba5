"""The workers that are there, by their last beat."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..models import Worker
from .display import instant
from .readonly import ReadOnlyAdmin


class WorkerAdmin(ReadOnlyAdmin):
    """Looking, and asking to stop; those heard of last come first."""

    list_display = ("__str__", "served", "capacity", "version", "started", "beat", "asked")
    fields = ("id", "host", "pid", *list_display[1:])
    readonly_fields = fields
    ordering = ("-last_beat",)
    actions = ("stop",)

    @admin.action(
        description=_("Ask to stop: claim no more, leave when their jobs have ended"), permissions=["stop"]
    )
    def stop(self, request: HttpRequest, queryset: QuerySet[Worker]) -> None:
        """Each sees it at its next beat."""
        asked = [worker for worker in queryset if Worker.objects.ask_to_stop(worker.pk)]
        self.log_moved(request, asked, gettext("Asked to stop"))
        told = ngettext(
            "%(count)d worker was asked to stop.", "%(count)d workers were asked to stop.", len(asked)
        )
        self.message_user(request, told % {"count": len(asked)}, messages.SUCCESS)

    def has_stop_permission(self, request: HttpRequest) -> bool:
        """Whether the person may ask workers to stop."""
        return self.permits(request, "stop_worker")

    @admin.display(description=_("queues"))
    def served(self, worker: Worker) -> str:
        """The queues that it serves."""
        served = gettext("all") if worker.queues is None else _names(worker.queues)
        if not worker.exclude_queues:
            return served
        return gettext("%(queues)s but %(left_out)s") % {
            "queues": served, "left_out": _names(worker.exclude_queues),
        }  # fmt: skip

    @admin.display(description=_("started at"))
    def started(self, worker: Worker) -> str:
        """When its process started."""
        return instant(worker.started_at)

    @admin.display(description=_("last beat"))
    def beat(self, worker: Worker) -> str:
        """When it was last heard of."""
        return instant(worker.last_beat)

    @admin.display(description=_("asked to stop at"))
    def asked(self, worker: Worker) -> str:
        """When somebody asked it to stop."""
        return instant(worker.stop_requested_at)


def _names(value: Any) -> str:
    return ", ".join(map(str, value))
