"""Dead letters by kind: the same fault a thousand times is one line, and is dealt with as one."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.http import urlencode
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import registry
from ..managers import DeadKind
from ..models import Job, JobStatus
from ..redaction import redact_text
from . import actions, bulk_views
from .display import instant, readable

#: Kinds on a page.
PAGE = 25
#: Characters of an example's message.
MESSAGE = 300

#: What can be done to a kind, or to all that the filter leaves.
FOR_KINDS = (actions.RETRY, actions.DISCARD)


class FilterForm(forms.Form):
    """Which kinds are shown."""

    type = forms.CharField(label=_("Type"), required=False)
    since = forms.DateField(
        label=_("Died since"), required=False, widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d")
    )
    start = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)


def url(**parameters: Any) -> str:
    """The address of the page."""
    given = {name: value for name, value in parameters.items() if value}
    return reverse("admin:django_jobqueue_job_dead_letters") + (f"?{urlencode(given)}" if given else "")


def view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The page."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    form = FilterForm(request.GET)
    given = form.cleaned_data if form.is_valid() else {}
    job_type, since, start = given.get("type") or None, given.get("since"), given.get("start") or 0
    kinds = Job.objects.dead_letters(job_type, since=_morning(since), start=start, most=PAGE + 1)
    allowed = [one for one in FOR_KINDS if model_admin.permits(request, one.permission)]
    examples = _examples([kind.example for kind in kinds[:PAGE]])
    place = {"type": job_type, "since": since and since.isoformat()}
    context = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Dead letters"),
        "opts": model_admin.opts,
        "media": model_admin.media,
        "form": form,
        "types": sorted({one.name for one in registry.all_types()} | {kind.job_type for kind in kinds}),
        "is_filtered": bool(job_type or since),
        "kinds": [_row(kind, examples, since, allowed) for kind in kinds[:PAGE]],
        "for_all": _buttons(allowed, _query(since, type=job_type)),
        "list_url": _list(_query(since, type=job_type)),
        "back_url": url(**place, start=max(start - PAGE, 0)) if start else None,
        "further_url": url(**place, start=start + PAGE) if len(kinds) > PAGE else None,
        "clear_url": url(),
    }
    return TemplateResponse(request, "django_jobqueue/admin/dead_letters.html", context)


def _row(
    kind: DeadKind, examples: dict[UUID, str], since: date | None, allowed: list[actions.Action]
) -> dict[str, Any]:
    query = _query(since, type=kind.job_type, fingerprint=kind.fingerprint)
    return {
        "kind": kind,
        "count": number_format(kind.count, force_grouping=True) + ("+" if kind.is_capped else ""),
        "first": instant(kind.first),
        "last": instant(kind.last),
        "message": examples.get(kind.example, ""),
        "example_url": reverse("admin:django_jobqueue_job_change", args=[kind.example]),
        "list_url": _list(query),
        "buttons": _buttons(allowed, query),
    }


def _buttons(allowed: list[actions.Action], query: str) -> list[dict[str, Any]]:
    return [{"action": one, "url": bulk_views.url(one.name, query)} for one in allowed]


def _query(since: date | None, **names: str | None) -> str:
    """The list's query string for dead letters."""
    query: dict[str, Any] = {"status__exact": int(JobStatus.DEAD)}
    query |= {name: value for name, value in names.items() if value is not None}
    if since:
        query["finished_at__range__gte_0"] = since.isoformat()
    return urlencode(query)


def _list(query: str) -> str:
    return f"{reverse('admin:django_jobqueue_job_changelist')}?{query}"


def _examples(ids: list[UUID]) -> dict[UUID, str]:
    """What each of these said last."""
    found = Job.objects.filter(pk__in=ids).values_list("pk", "last_error")
    return {pk: Truncator(readable(redact_text(text))).chars(MESSAGE) for pk, text in found}


def _morning(day: date | None) -> datetime | None:
    if day is None:
        return None
    midnight = datetime.combine(day, time.min)
    return timezone.make_aware(midnight) if settings.USE_TZ else midnight
