"""The page of an action on all jobs that match: asked first, then carried out step by step."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from . import actions, bulk
from .changelist import NEWER, OLDER, Selection

#: Actions that make sense for many jobs at once.
FOR_ALL = ("retry", "run-now", "cancel", "discard")


class SpeedForm(forms.Form):
    """How fast retried jobs become due."""

    per_minute = forms.IntegerField(
        label=_("Jobs due in a minute"),
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text=_("Evenly spread over time. Leave it empty to have all of them due now."),
    )


def url(action: str, query: str) -> str:
    """The address of the page for the jobs that a query string of the list leaves."""
    return f"{reverse('admin:django_jobqueue_job_bulk', args=[action])}?{without_place(query)}"


def without_place(query: str) -> str:
    """A query string of the list for all its pages."""
    parameters = QueryDict(query, mutable=True)
    for name in (OLDER, NEWER):
        parameters.pop(name, None)
    return parameters.urlencode()


def view(model_admin: Any, request: HttpRequest, name: str) -> HttpResponse:
    """Ask (GET), begin and go on (POST)."""
    action = actions.ACTIONS.get(name) if name in FOR_ALL else None
    if action is None:
        raise Http404(name)
    if not (model_admin.has_view_permission(request) and model_admin.permits(request, action.permission)):
        raise PermissionDenied
    query = without_place(request.META["QUERY_STRING"])
    try:
        selection = Selection(request, model_admin, query)
    except IncorrectLookupParameters:
        return HttpResponseRedirect(reverse("admin:django_jobqueue_job_changelist") + "?e=1")
    if request.method != "POST":
        return _asked(model_admin, request, action, selection, SpeedForm())
    if "operation" in request.POST:
        return _go_on(model_admin, request, action, selection)
    form = SpeedForm(request.POST)
    if not form.is_valid():
        return _asked(model_admin, request, action, selection, form)
    operation = bulk.begin(action, selection, query, request, form.cleaned_data["per_minute"])
    return _carried_on(model_admin, request, action, selection, operation)


def _asked(
    model_admin: Any, request: HttpRequest, action: actions.Action, selection: Selection, form: SpeedForm
) -> HttpResponse:
    found = bulk.count(selection)
    context = {"form": form if action is actions.RETRY else None, "found": found, "cap": bulk.COUNT_CAP}
    return _page(model_admin, request, action, selection, context)


def _go_on(
    model_admin: Any, request: HttpRequest, action: actions.Action, selection: Selection
) -> HttpResponse:
    try:
        operation = bulk.Operation.read(request.POST["operation"], action, request)
    except BadSignature:
        model_admin.message_user(
            request, gettext("This page is too old, or not yours: begin again."), messages.ERROR
        )
        return HttpResponseRedirect(request.get_full_path())
    if operation.query != without_place(request.META["QUERY_STRING"]):
        raise PermissionDenied
    return _carried_on(model_admin, request, action, selection, operation)


def _carried_on(
    model_admin: Any,
    request: HttpRequest,
    action: actions.Action,
    selection: Selection,
    operation: bulk.Operation,
) -> HttpResponse:
    bulk.advance(operation, action, selection, request)
    facts = {
        "operation": "" if operation.is_over else operation.sign(),
        "handled": operation.done + sum(operation.refused.values()),
        "total": operation.total,
        "done": str(action.done % {"count": operation.done}),
        "refused": actions.refusals(operation.refused),
        "is_over": operation.is_over,
    }
    if request.headers.get("Accept") == "application/json":
        return JsonResponse(facts)
    return _page(model_admin, request, action, selection, {"progress": facts})


def _page(
    model_admin: Any,
    request: HttpRequest,
    action: actions.Action,
    selection: Selection,
    more: dict[str, Any],
) -> HttpResponse:
    jobs = reverse("admin:django_jobqueue_job_changelist")
    context = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("%(action)s: all jobs that match") % {"action": action.label},
        "opts": model_admin.opts,
        "media": model_admin.media,
        "action": action,
        "told": selection.told(),
        "back": f"{jobs}?{without_place(request.META['QUERY_STRING'])}",
        **more,
    }
    return TemplateResponse(request, "django_jobqueue/admin/bulk.html", context)
