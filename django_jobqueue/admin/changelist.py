"""The list, a stretch of a walk: no count, narrow rows, and a bound to what is looked through for a page."""

from __future__ import annotations

from copy import copy
from typing import Any

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict

from ..models import Job, JobStatus
from . import filters
from .search import Search, parse
from .walks import LOOK, BadKey, Key, Walk, choose

#: Where a page begins: behind this key; or it ends with that one.
OLDER, NEWER = "after", "before"

#: The columns of a list's row, and of every walk's key.
LISTED = (
    "id",
    "job_type",
    "queue",
    "status",
    "priority",
    "attempts",
    "max_attempts",
    "run_after",
    "created_at",
    "worker_id",
    "run_started_at",
    "finished_at",
    "cancel_requested_at",
    "progress",
)


class JobChangeList(ChangeList):
    """Django's, with pages that go from key to key."""

    #: How many rows were looked through without filling the page; None: the walk ended.
    looked: int | None = None
    older_url: str | None = None
    newer_url: str | None = None

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Job]:
        """The jobs that all filters leave, as narrow rows, in the order of the walk."""
        place = {name: self.params.pop(name, None) for name in (OLDER, NEWER)}
        for name in place:
            self.filter_params.pop(name, None)
        if not hasattr(self, "place"):
            self.place = place
            self.search: Search | None = parse(request, self.query)
        jobs: QuerySet[Job] = super().get_queryset(request, exclude_parameters)
        self.walk = self._walk()
        return self.walk.rows(jobs.only(*LISTED))  # type: ignore[no-any-return]

    def apply_select_related(self, qs: QuerySet[Job]) -> QuerySet[Job]:
        """Nothing is related to a job."""
        return qs

    def get_results(self, request: HttpRequest) -> None:
        """The rows of this page, and where the pages beside it begin."""
        older, newer = (self._read(self.place[name]) for name in (OLDER, NEWER))
        if newer is None:
            rows, last, _next = self._stretch(self.walk, older)
            self._link(newer=older, older=last)
        else:
            rows, _last, next_one = self._stretch(self.walk.reversed(), newer, with_start=True)
            rows.reverse()
            self._link(newer=next_one, older=newer)
        self._as_django_expects(rows)
        if self.search and self.search.refused:
            messages.warning(request, self.search.refused)

    @property
    def is_one_page(self) -> bool:
        """Whether all that matches is on this page."""
        return not (self.older_url or self.newer_url)

    @property
    def look(self) -> int | None:
        """How many rows may be looked through for a page; None: there is nothing to look for."""
        if self.search is not None:
            return self.search.look
        return LOOK if self.get_filters_params().keys() - self.walk.serves else None

    def _stretch(
        self, walk: Walk, start: Key | None, *, with_start: bool = False
    ) -> tuple[list[Job], Key | None, Key | None]:
        """The rows of a page; the key where it ends and the one behind that, if there is more."""
        last = behind = None
        if self.look is not None:
            last, behind = walk.stretch(start, self.look, with_start=with_start)
        rows = list(walk.rows(self.queryset, start, last, with_start=with_start)[: self.list_per_page + 1])
        if len(rows) > self.list_per_page:
            last, behind = (walk.key(job) for job in rows[-2:])
        elif last is not None:
            self.looked = self.look
        return rows[: self.list_per_page], last, behind

    def _link(self, *, newer: Key | None, older: Key | None) -> None:
        """The pages beside this one: a newer one ends with its key, an older one begins behind it."""
        self.newer_url = None if newer is None else self._at(NEWER, newer)
        self.older_url = None if older is None else self._at(OLDER, older)

    def _walk(self) -> Walk:
        """The order that serves the filters best."""
        given = {name: values[-1] for name, values in self.get_filters_params().items()}
        walk = choose(
            _status(given),
            queue=given.get("queue"),
            worker=given.get("worker"),
            job_type=given.get("type"),
            fingerprint=given.get("fingerprint"),
        )
        for spec in self.filter_specs:
            if isinstance(spec, filters.TimeRangeFilter):
                walk = spec.narrow(walk)
        return walk

    def _read(self, text: str | None) -> Key | None:
        try:
            return self.walk.read(text) if text else None
        except BadKey as problem:
            raise IncorrectLookupParameters(str(problem)) from problem

    def _at(self, name: str, key: Key) -> str:
        return str(self.get_query_string({name: self.walk.write(key)}))

    def _as_django_expects(self, rows: list[Job]) -> None:
        """What its templates and its view read of a list."""
        self.result_list = rows
        self.result_count = self.full_result_count = len(rows)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = bool(rows)
        self.paginator = None


class Selection(JobChangeList):
    """The jobs that a query string of the list leaves, without a page of them."""

    def __init__(self, request: HttpRequest, model_admin: Any, query: str) -> None:
        asked = copy(request)
        asked.GET = QueryDict(query)
        super().__init__(
            asked, Job, model_admin.list_display, (), model_admin.list_filter, None,
            model_admin.search_fields, False, 1, 1, (), model_admin, (), "",
        )  # fmt: skip

    def get_results(self, request: HttpRequest) -> None:
        """None are asked for."""

    def told(self) -> list[str]:
        """The filters in words: ``status: dead``."""
        chosen = {str(spec.title): self._chosen(spec) for spec in self.filter_specs}
        words = [f"{title}: {', '.join(values)}" for title, values in chosen.items() if values]
        return [*words, f'"{self.query}"'] if self.query else words

    def _chosen(self, spec: Any) -> list[str]:
        if isinstance(spec, filters.TimeRangeFilter):
            return spec.words()
        _everything, *choices = spec.choices(self)
        return [str(one["display"]) for one in choices if one["selected"]]


def _status(given: dict[str, str]) -> JobStatus | None:
    if given.get("due"):
        return JobStatus.PENDING
    try:
        return JobStatus(int(given["status__exact"]))
    except (KeyError, ValueError):
        return None
