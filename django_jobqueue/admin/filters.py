"""The list's filters. None looks at the whole table to find out what it could offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rangefilter.filters import DateTimeRangeFilterBuilder

from .. import conf, registry
from ..databases.clock import DatabaseAgo, DatabaseNow, as_utc
from ..models import Job, JobStatus, Queue, Worker
from .walks import Walk

#: So many of the newest jobs are looked at for queues and types that nobody declared.
RECENT = 1_000

#: So many workers are offered.
WORKERS = 50

#: A job that has been due for longer should have been started.
OVERDUE = timedelta(minutes=1)

#: An id carries the time of the process that made it, ``created_at`` that of the database.
CLOCKS_DIFFER = timedelta(days=1)

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
        offered = {name: self.label(name) for name in {*self.names(request), *map(str, chosen)}}
        return sorted(offered.items(), key=lambda one: one[1])

    def label(self, name: str) -> str:
        """What the name is shown as."""
        return name

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


class WorkerFilter(NameFilter):
    """By worker: those that are there, by their last beat."""

    title = _("worker")
    parameter_name = "worker"
    field = "worker_id"

    def names(self, request: HttpRequest) -> set[str]:
        """The workers heard of last."""
        self._workers = {one.id: one for one in Worker.objects.order_by("-last_beat")[:WORKERS]}
        return set(self._workers)

    def label(self, name: str) -> str:
        """Where it runs; and the start of its identity, since a host may use a process id again."""
        return f"{self._workers[name]} ({name[:8]})" if name in self._workers else name


class GivenOnlyFilter(NameFilter):
    """What a link of ours asks for: shown where it is chosen, so that it can be taken back."""

    def names(self, request: HttpRequest) -> set[str]:
        """Nothing to offer."""
        return set()


class FingerprintFilter(GivenOnlyFilter):
    """By the kind of error."""

    title = _("error")
    parameter_name = "fingerprint"
    field = "error_fingerprint"


class DedupeKeyFilter(GivenOnlyFilter):
    """By the whole dedupe key."""

    title = _("dedupe key")
    parameter_name = field = "dedupe_key"


class LockKeyFilter(GivenOnlyFilter):
    """By the whole lock key."""

    title = _("lock key")
    parameter_name = field = "lock_key"


class DueFilter(admin.SimpleListFilter):
    """Pending jobs by the time at which they are due."""

    title = _("due")
    parameter_name = "due"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Now, for long, or later."""
        return [("now", _("Due now")), ("overdue", _("For more than a minute")), ("later", _("Later"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """The pending jobs that are due then."""
        due: dict[str, dict[str, Any]] = {
            "now": {"run_after__lte": DatabaseNow()},
            "overdue": {"run_after__lte": DatabaseAgo(OVERDUE)},
            "later": {"run_after__gt": DatabaseNow()},
        }
        if self.value() not in due:
            return queryset
        return queryset.filter(status=JobStatus.PENDING, **due[str(self.value())])


class HasKeyFilter(admin.SimpleListFilter):
    """Whether a job has a dedupe key."""

    title = _("dedupe key")
    parameter_name = "keyed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Yes or no."""
        return [("1", _("Yes")), ("0", _("No"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """The jobs with or without one."""
        if self.value() not in ("0", "1"):
            return queryset
        return queryset.filter(dedupe_key__isnull=self.value() == "0")


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

    def narrow(self, walk: Walk) -> Walk:
        """The walk between this range's bounds, if it goes by this time (or by the id, which has it too)."""
        given = self.form.cleaned_data if self.form.is_bound and self.form.is_valid() else {}
        low, high = (given.get(name) for name in (self.lookup_kwarg_gte, self.lookup_kwarg_lte))
        leading = walk.order[0].removeprefix("-")
        if leading == self.field_path:
            bounds = {f"{leading}__gte": low, f"{leading}__lte": high}
            served = [f"{bound}_{i}" for bound in self.expected_parameters() for i in range(2)]
        elif leading == "pk" and self.field_path == "created_at":
            served = []
            bounds = {
                "pk__gte": low and first_id(low - CLOCKS_DIFFER),
                "pk__lte": high and first_id(high + CLOCKS_DIFFER),
            }
        else:
            return walk
        return walk.within({name: value for name, value in bounds.items() if value is not None}, served)

    def words(self) -> list[str]:
        """The bounds that were given."""
        bounds = {"≥": self.lookup_kwarg_gte, "≤": self.lookup_kwarg_lte}
        given = {sign: [self._given(f"{bound}_{i}") for i in range(2)] for sign, bound in bounds.items()}
        return [f"{sign} {' '.join(parts).strip()}" for sign, parts in given.items() if parts[0]]

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


def first_id(when: datetime) -> UUID:
    """The least id that a job of that instant may have."""
    return UUID(int=int(max(as_utc(when).timestamp(), 0) * 1_000) << 80)
