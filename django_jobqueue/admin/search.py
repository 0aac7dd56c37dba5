"""The search field: an id, a dedupe key, the beginning of a type, or a value in the payload."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Q, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.db.models.lookups import Exact
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import Job
from ..redaction import HIDDEN, hides_anything, redact
from ..states import ACTIVE
from .walks import LOOK

#: Jobs whose payloads are looked into at once.
LOOK_INTO_PAYLOADS = 100_000

HELP = _("Id, dedupe key, beginning of a type, or a value in the payload: report_id=7, filters.year=2026.")


@dataclass(frozen=True)
class Search:
    """What a term means. ``look``: how many jobs may be looked through; None: the primary key finds it."""

    condition: Q
    look: int | None
    holder: UUID | None = None  # the active job with this dedupe key, wherever in the list it stands
    refused: str = ""


def parse(request: HttpRequest, term: str) -> Search | None:
    """What a person typed, found out once a request; None for nothing."""
    known: dict[str, Search | None] = request.__dict__.setdefault("_django_jobqueue_searches", {})
    if term not in known:
        known[term] = _parse(term)
    return known[term]


def _parse(term: str) -> Search | None:
    term = term.strip().replace("\0", "")
    if not term:
        return None
    identity = _as_id(term)
    if identity is not None and Job.objects.filter(pk=identity).exists():
        return Search(Q(pk=identity), look=None)
    key, equals, value = term.partition("=")
    if equals and key.strip():
        return _in_payload(key.strip(), value.strip())
    return Search(Q(dedupe_key=term) | Q(job_type__startswith=term), look=LOOK, holder=_active(term))


def _in_payload(key: str, value: str) -> Search:
    path = key.split(".")
    ways = [path] if len(path) == 1 else [path, [key]]
    ways += [["kwargs", *way] for way in ways]  # of a task
    # Of a task's arguments without a name, it depends on the task which are hidden.
    if HIDDEN in redact(dict.fromkeys(path, "")).values() or (path[0] == "args" and hides_anything()):
        refused = gettext('%(key)s is hidden by JOBQUEUE["REDACT"], so it cannot be searched.') % {"key": key}
        return Search(Q(pk__in=[]), look=None, refused=refused)
    condition = Q()
    for way in ways:
        condition |= Q(_is(way, value))
    return Search(condition, look=LOOK_INTO_PAYLOADS)


def _is(path: list[str], value: str) -> Exact:
    found: KeyTextTransform | F = F("payload")
    for name in path:
        found = KeyTextTransform(name, found)
    # As text, since nobody says in a search field whether 7 is a number. In JSON true is a word.
    return Exact(Cast(found, TextField()), Value(value))


def _active(key: str) -> UUID | None:
    holders = Job.objects.filter(dedupe_key=key, dedupe_key__isnull=False, status__in=sorted(ACTIVE))
    return holders.values_list("pk", flat=True).first()


def _as_id(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None
