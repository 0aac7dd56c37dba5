"""The list's filters. None looks at the whole table to find out what it could offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rangefilter.filters import DateTimeRangeFilterBuilder

from .. import conf, registry
from ..models import Job, Queue

#: So many of the newest jobs are looked at for queues and types that nobody declared.
RECENT = 1_000

_PAIRS = "_django_jobqueue_recent_pairs"


def recent_pairs(request: HttpRequest) -> set[tuple[str, str]]:
    """(queue, type) of the newest jobs, read once a request: by primary key, so never a scan."""
    if not hasattr(request, _PAIRS):
        newest = Job.objects.order_by("-pk").values_list("queue", "job_type")[:RECENT]
        setattr(request, _PAIRS, set(newest))
    pairs: set[tuple[str, str]] = getattr(request, _PAIRS)
    return pairs


class NameFilter(ABC, admin.SimpleListFilter):
    """Jobs of one name; a name that is not offered can still be asked for in the address."""

    field: str

    @abstractmethod
    def names(self, request: HttpRequest) -> set[str]:
        """The names to offer."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The names to offer, and the one that is chosen now."""
        chosen = {self.value()} - {None}
        return [(name, name) for name in sorted({*self.names(request), *map(str, chosen)})]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """The jobs of the chosen name."""
        return queryset if self.value() is None else queryset.filter(**{self.field: self.value()})


class QueueFilter(NameFilter):
    """By queue: those declared, those that handlers use, those paused, and those of recent jobs."""

    title = _("queue")
    parameter_name = field = "queue"

    def names(self, request: HttpRequest) -> set[str]:
        """The queues that are known without looking at every job."""
        declared = conf.current().QUEUES or ()
        by_type = {one.queue for one in registry.all_types()}
        paused = Queue.objects.values_list("name", flat=True)
        return {*declared, *by_type, *paused, *(queue for queue, _type in recent_pairs(request))}


class TypeFilter(NameFilter):
    """By type: those registered here, and those of recent jobs."""

    title = _("type")
    parameter_name = "type"
    field = "job_type"

    def names(self, request: HttpRequest) -> set[str]:
        """The types that are known without looking at every job."""
        registered = {one.name for one in registry.all_types()}
        return registered | {job_type for _queue, job_type in recent_pairs(request)}


class TimeRangeFilter(DateTimeRangeFilterBuilder()):  # type: ignore[misc]
    """django-admin-rangefilter's, in a form that needs no script and no style of its own.

    The browser's own date and time fields serve every language, and a strict Content-Security-Policy
    leaves them alone. A bound without a time is the start or the end of its day.
    """

    template = "django_jobqueue/admin/time_range_filter.html"

    def get_form(self, request: HttpRequest) -> Any:
        """The form with the missing times filled in."""
        for bound, time in ((self.lookup_kwarg_gte, "00:00"), (self.lookup_kwarg_lte, "23:59:59.999999")):
            date = self._given(f"{bound}_0")
            if date and not self._given(f"{bound}_1"):
                self.used_parameters[f"{bound}_1"] = time
        return super().get_form(request)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> Any:
        """The jobs within the range. What is no time is refused: ignored, it would widen an action to all."""
        if self.form.is_bound and not self.form.is_valid():
            raise IncorrectLookupParameters(self.form.errors)
        return super().queryset(request, queryset)

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        """One choice: all that the template needs."""
        cleared = changelist.get_query_string({}, remove=self.expected_parameters())
        yield {
            "query_string": cleared,
            "kept": parse_qsl(cleared.removeprefix("?"), keep_blank_values=True),
            "active": bool(self.used_parameters),
            "bounds": [
                self._bound(gettext("From"), self.lookup_kwarg_gte),
                self._bound(gettext("Until"), self.lookup_kwarg_lte),
            ],
        }

    def _bound(self, label: str, name: str) -> dict[str, Any]:
        fields = [(f"{name}_{i}", self._given(f"{name}_{i}")) for i in range(2)]
        return {"label": label, "date": fields[0], "time": (fields[1][0], fields[1][1][:8])}

    def _given(self, parameter: str) -> str:
        value = self.used_parameters.get(parameter, "")
        return str(value[-1] if isinstance(value, list) else value)
