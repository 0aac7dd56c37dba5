"""The workers that are there, by their last beat."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import Worker
from .display import instant
from .readonly import ReadOnlyAdmin


class WorkerAdmin(ReadOnlyAdmin):
    """Looking only; those heard of last come first."""

    list_display = ("id", "host", "pid", "served", "capacity", "version", "started", "beat")
    fields = readonly_fields = list_display
    ordering = ("-last_beat",)
    actions = None

    @admin.display(description=_("queues"))
    def served(self, worker: Worker) -> str:
        """The queues that it serves."""
        return gettext("all") if worker.queues is None else ", ".join(map(str, worker.queues))

    @admin.display(description=_("started at"))
    def started(self, worker: Worker) -> str:
        """When its process started."""
        return instant(worker.started_at)

    @admin.display(description=_("last beat"))
    def beat(self, worker: Worker) -> str:
        """When it was last heard of."""
        return instant(worker.last_beat)
