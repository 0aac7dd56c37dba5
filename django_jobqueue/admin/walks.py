"""In which order the jobs are gone through: always along an index, so that a page costs what it shows.

A walk has an order that an index serves as it stands, and a page is a stretch of it: from a key on, so many
rows. Nothing is counted and nothing sorted, and the thousandth page costs what the first one does. Conditions
that no index serves are looked for along the way, in no more than so many rows at once.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from ..databases.clock import as_utc
from ..models import Job, JobStatus
from ..states import FINISHED

#: Rows that are looked through for those that match; more would make the page wait.
LOOK = 50_000

Key = Sequence[Any]
Order = tuple[str, ...]


class BadKey(ValueError):
    """A place in a walk that no page of ours has written."""


@dataclass(frozen=True)
class Walk:
    """An order, the conditions under which its index serves it, and a sentence that tells the order.

    ``along`` is what the index knows by itself, and ``serves`` the list's parameters that it answers: rows
    are only looked through for what goes beyond them.
    """

    order: Order
    told: Any
    along: Mapping[str, Any] = field(default_factory=dict)
    serves: frozenset[str] = frozenset()

    def within(self, bounds: Mapping[str, Any], serves: Iterable[str] = ()) -> Walk:
        """The same walk between bounds of its leading column."""
        return replace(self, along={**self.along, **bounds}, serves=self.serves.union(serves))

    def rows(
        self,
        jobs: QuerySet[Job],
        start: Key | None = None,
        until: Key | None = None,
        *,
        with_start: bool = False,
    ) -> Any:
        """``jobs`` in the walk's order: behind ``start`` or from it on, up to ``until``, included."""
        jobs = jobs.filter(**self.along).order_by(*self.order)
        if start is not None:
            jobs = jobs.filter(self._behind(start, with_it=with_start))
        return jobs if until is None else jobs.filter(self.reversed()._behind(until, with_it=True))

    def stretch(
        self, start: Key | None, look: int, *, with_start: bool = False
    ) -> tuple[Key | None, Key | None]:
        """The keys of the last of ``look`` rows and of the one behind it; Nones if there is none behind."""
        rows = self.rows(Job.objects.all(), start, with_start=with_start).values_list(*self._names)
        found = list(rows[look - 1 : look + 1])
        return (found[0], found[1]) if len(found) == 2 else (None, None)

    def reversed(self) -> Walk:
        """The walk in the opposite direction."""
        turned = (one[1:] if one.startswith("-") else f"-{one}" for one in self.order)
        return replace(self, order=tuple(turned))

    def from_the_oldest(self) -> Walk:
        """The walk in the direction of time: what waits for later comes last, as it does already."""
        return self if "run_after" in self.order else self.reversed()

    def key(self, job: Job) -> Key:
        """Where a job stands in the walk."""
        return tuple(getattr(job, name) for name in self._names)

    @property
    def _names(self) -> Order:
        return tuple(one.removeprefix("-") for one in self.order)

    def _behind(self, key: Key, *, with_it: bool = False) -> Q:
        """The rows that come later than ``key``, or with it too."""
        later, same = Q(), Q()
        for one, value in zip(self.order, key, strict=True):
            name = one.removeprefix("-")
            later |= same & Q(**{f"{name}__{'lt' if one.startswith('-') else 'gt'}": value})
            same &= Q(**{name: value})
        later |= same if with_it else Q()
        # Said once more of the leading column alone: an index can begin there, but not with an OR.
        bound = "lte" if self.order[0].startswith("-") else "gte"
        return Q(**{f"{self._names[0]}__{bound}": key[0]}) & later

    def write(self, key: Key) -> str:
        """A key as it stands in an address."""
        text = json.dumps([_plain(value) for value in key], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def read(self, text: str) -> Key:
        """The key that ``write`` made this text of. Raises ``BadKey``."""
        try:
            values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return tuple(_READERS[name](value) for name, value in zip(self._names, values, strict=True))
        except (ValueError, TypeError, KeyError) as problem:
            raise BadKey(text) from problem


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return as_utc(value).isoformat()
    return value.hex if isinstance(value, UUID) else value


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(value)
    return value


def _time(value: Any) -> datetime:
    return as_utc(datetime.fromisoformat(value))


_READERS: dict[str, Callable[[Any], Any]] = {
    "pk": UUID,
    "queue": _text,
    "worker_id": _text,
    "priority": int,
    "run_after": _time,
    "finished_at": _time,
}

#: The list's parameter for the status.
STATUS = "status__exact"

NEWEST = Walk(("-pk",), _("The newest first."))


def choose(
    status: JobStatus | None,
    *,
    queue: str | None = None,
    worker: str | None = None,
    job_type: str | None = None,
    fingerprint: str | None = None,
) -> Walk:
    """The walk for jobs of a status, along the index that this status has."""
    if status is JobStatus.PENDING:
        lane = {"queue": queue} if queue else {}
        order = ("-priority", "run_after", "pk")
        return Walk(
            order if queue else ("-queue", *order),
            _("In the order in which they are claimed.")
            if queue
            else _("Queue by queue, in the order in which they are claimed."),
            {"status": status, **lane},
            frozenset({STATUS, *lane}),
        )
    if status is JobStatus.RUNNING:
        if worker:
            of_worker = {"status": status, "worker_id": worker}
            return Walk(("-pk",), _("The newest first."), of_worker, frozenset({STATUS, "worker"}))
        return Walk(("worker_id", "-pk"), _("Worker by worker."), {"status": status}, frozenset({STATUS}))
    if status in FINISHED:
        along: dict[str, Any] = {"status": status, "finished_at__isnull": False}
        serves = {STATUS}
        if status is JobStatus.DEAD and job_type and fingerprint is not None:
            along |= {"job_type": job_type, "error_fingerprint": fingerprint}
            serves |= {"type", "fingerprint"}
        told = _("Those that ended last come first.")
        return Walk(("-finished_at", "-pk"), told, along, frozenset(serves))
    return NEWEST
