"""One action on all jobs that the list's filters leave: in steps, so that no request takes long.

What is done and what is left stands in the page itself, signed; the server keeps nothing. Whoever closes the
page stops the operation where it is. Jobs are moved by guarded statements, so two people may be at the same
ones: each is moved once, and the second is told what was refused and why.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core import signing
from django.http import HttpRequest

from ..databases.clock import as_utc
from ..managers.control import CHUNK
from ..models import Job
from .actions import RETRY, Action, refusals
from .changelist import Selection
from .walks import LOOK

#: Seconds after which a step is over, whatever is left.
STEP = 0.5
#: Jobs that match are counted up to here before anything is done.
COUNT_CAP = 10_000
#: Seconds for which a page may be left lying about before it is continued.
MAX_AGE = 86_400

_SALT = "django_jobqueue.admin.bulk"


@dataclass
class Operation:
    """How far it has come."""

    action: str
    query: str  # the list's, without a place
    user: str
    began: str  # by the database's clock: what is made or ends later is not meant
    log: int
    per_minute: float | None = None
    after: str | None = None  # a key of the walk
    done: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    total: int | None = None  # how many there were; None: more than were counted
    is_over: bool = False

    def sign(self) -> str:
        """As a page carries it."""
        return signing.dumps(asdict(self), salt=_SALT, compress=True)

    @classmethod
    def read(cls, text: str, action: Action, request: HttpRequest) -> Operation:
        """From a page of the same person. Raises ``BadSignature``."""
        operation = cls(**signing.loads(text, salt=_SALT, max_age=MAX_AGE))
        if operation.action != action.name or operation.user != str(request.user.pk):
            raise signing.BadSignature("of another action, or another person")
        return operation


def count(selection: Selection) -> int | None:
    """How many jobs match; None if they are more than are counted, or than are looked through for that."""
    end, _behind = selection.walk.stretch(None, LOOK) if selection.look else (None, None)
    jobs = selection.walk.rows(selection.queryset, until=end)
    found = int(jobs.values("pk")[: COUNT_CAP + 1].count())
    return None if found > COUNT_CAP or end is not None else found


def begin(
    action: Action, selection: Selection, query: str, request: HttpRequest, per_minute: float | None
) -> Operation:
    """Note in the log that it begins."""
    user: Any = request.user
    entry = LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(Job),
        object_repr=str(Job._meta.verbose_name_plural),
        action_flag=CHANGE,
    )
    return Operation(
        action=action.name,
        query=query,
        user=str(user.pk),
        began=_now().isoformat(),
        log=entry.pk,
        per_minute=per_minute,
        total=count(selection),
    )


def advance(operation: Operation, action: Action, selection: Selection, request: HttpRequest) -> None:
    """Go on for about half a second, and bring the log up to date."""
    deadline = time.monotonic() + STEP
    _chunk(operation, action, selection, request)
    while not operation.is_over and time.monotonic() < deadline:
        _chunk(operation, action, selection, request)
    LogEntry.objects.filter(pk=operation.log).update(change_message=summary(operation, action, selection))


def summary(operation: Operation, action: Action, selection: Selection) -> str:
    """What was done, to which jobs, and what was refused."""
    told = [action.done % {"count": operation.done}, refusals(operation.refused), *selection.told()]
    return f"{action.logged}: {'; '.join(filter(None, map(str, told)))}"


def _chunk(operation: Operation, action: Action, selection: Selection, request: HttpRequest) -> None:
    walk = selection.walk.from_the_oldest()
    jobs = selection.queryset.filter(created_at__lte=datetime.fromisoformat(operation.began))
    if "finished_at" in walk.order:  # who dies again meanwhile is not retried again
        jobs = jobs.filter(finished_at__lte=datetime.fromisoformat(operation.began))
    after = walk.read(operation.after) if operation.after else None
    end, _behind = walk.stretch(after, LOOK) if selection.look else (None, None)
    found = list(walk.rows(jobs, after, end)[:CHUNK])
    last = walk.key(found[-1]) if len(found) == CHUNK else end
    if found:
        chosen = Job.objects.filter(pk__in=[job.pk for job in found])
        report = action.move(chosen, request, **_speed(operation, action))
        operation.done += report.done
        operation.refused = dict(Counter(operation.refused) + report.refused)
    operation.is_over = last is None
    operation.after = None if last is None else walk.write(last)


def _speed(operation: Operation, action: Action) -> dict[str, Any]:
    """For a retry: when the next one is due, so that the whole operation keeps to its speed."""
    if action is not RETRY or operation.per_minute is None:
        return {}
    elapsed = (_now() - datetime.fromisoformat(operation.began)).total_seconds()
    delay = max(0.0, operation.done * 60 / operation.per_minute - elapsed)
    return {"delay": delay, "per_minute": operation.per_minute}


def _now() -> datetime:
    return as_utc(Job.objects.now())
