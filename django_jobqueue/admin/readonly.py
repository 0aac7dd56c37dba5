"""Rows that only the queue itself writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Looking is by permission; adding, changing and deleting by hand is for nobody, superusers included."""

    sortable_by = ()
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["django_jobqueue/admin.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows are made by the queue."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows are changed by the moves alone."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows leave when the queue needs them no more."""
        return False

    def permits(self, request: HttpRequest, codename: str) -> bool:
        """Whether the person has the app's permission of that name."""
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")

    def log_moved(self, request: HttpRequest, rows: Sequence[Any], text: str) -> None:
        """A line in the history of each row."""
        user: Any = request.user
        LogEntry.objects.log_actions(user.pk, rows, CHANGE, text)
