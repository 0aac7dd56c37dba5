"""What the page of one job offers: the actions that fit it now, another payload, and its relatives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import conf, registry
from ..exceptions import InvalidPayload
from ..models import Job, JobStatus, Queue
from ..payloads import encode_payload
from ..redaction import HIDDEN, restore
from . import actions, display, timeline
from .changelist import LISTED

EDIT_PERMISSION = "edit_job_payload"

#: How long a job may be put off by a click, in minutes.
SNOOZES = {5: _("5 minutes"), 60: _("1 hour"), 1_440: _("1 day"), 10_080: _("1 week")}

#: Jobs whose state is asked for at once: more than a page has.
LIVE = 200


def url(job: Job, name: str = "change", *more: str) -> str:
    """The address of one of a job's pages."""
    return reverse(f"admin:django_jobqueue_job_{name}", args=[job.pk, *more])


def context(model_admin: Any, request: HttpRequest, job: Job) -> dict[str, Any]:
    """What the page shows besides the fields."""
    allowed = [one for one in _fitting(job) if model_admin.permits(request, one.permission)]
    may_edit = _may_edit(model_admin, request) and actions.RETRY.fits(job)
    return {
        "events": timeline.events(job),
        "badge": display.status(job),
        "buttons": [
            {"action": one, "url": url(job, "do", one.name), "is_snooze": one is actions.SNOOZE}
            for one in allowed
            if one is not actions.DISCARD
        ],
        "snoozes": SNOOZES.items(),
        "edit_url": url(job, "payload") if may_edit else None,
        "delete_url": url(job, "delete") if actions.DISCARD in allowed else None,
        "links": list(_links(job)),
        "is_live": not job.is_finished,
        "state": _cells(job)["state"],
        "is_asked": job.status == JobStatus.RUNNING and job.cancel_requested_at is not None,
        "is_held_back": job.status == JobStatus.PENDING and _is_paused(job.queue),
    }


def _fitting(job: Job) -> Iterator[actions.Action]:
    """The actions that would change this job as it stands now."""
    for one in actions.ACTIONS.values():
        if one is actions.CANCEL and job.status == JobStatus.RUNNING and job.cancel_requested_at:
            continue
        if one is actions.RUN_NOW and job.status == JobStatus.PENDING and job.run_after <= Job.objects.now():
            continue
        if one.fits(job):
            yield one


def _is_paused(queue: str) -> bool:
    return Queue.objects.filter(name=queue, paused=True).exists()


def _links(job: Job) -> Iterator[tuple[Any, str]]:
    """Lists of this job's relatives."""
    jobs = reverse("admin:django_jobqueue_job_changelist")

    def listed(**query: Any) -> str:
        return f"{jobs}?{urlencode(query)}"

    yield gettext("Jobs of this type"), listed(type=job.job_type)
    yield gettext("Jobs of this queue"), listed(queue=job.queue)
    if job.dedupe_key is not None:
        yield gettext("Jobs with this dedupe key"), listed(dedupe_key=job.dedupe_key)
    if job.lock_key is not None:
        yield gettext("Jobs with this lock key"), listed(lock_key=job.lock_key)
    if job.status == JobStatus.DEAD:
        same = {"type": job.job_type, "fingerprint": job.error_fingerprint}
        yield gettext("Dead of the same"), listed(status__exact=int(JobStatus.DEAD), **same)
    if job.status == JobStatus.RUNNING and job.worker_id:
        yield (
            gettext("What this worker runs"),
            listed(status__exact=int(JobStatus.RUNNING), worker=job.worker_id),
        )


def found(model_admin: Any, request: HttpRequest, object_id: str) -> Job:
    """The job of an address, for somebody who may see it."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    job: Job | None = model_admin.get_object(request, unquote(object_id))
    if job is None:
        raise Http404(object_id)
    return job


def do(model_admin: Any, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
    """An action on one job, by POST alone."""
    action = actions.ACTIONS.get(name)
    if action is None or action is actions.DISCARD:  # that one asks first, on a page of its own
        raise Http404(name)
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    job = found(model_admin, request, object_id)
    if not model_admin.permits(request, action.permission):
        raise PermissionDenied
    how = {"by": _chosen_snooze(request)} if action is actions.SNOOZE else {}
    actions.perform(action, model_admin, request, [job], **how)
    return HttpResponseRedirect(url(job))


def _chosen_snooze(request: HttpRequest) -> timedelta:
    try:
        minutes = int(request.POST.get("minutes", ""))
    except ValueError:
        minutes = 0
    if minutes not in SNOOZES:
        raise Http404("minutes")
    return timedelta(minutes=minutes)


class PayloadForm(forms.Form):
    """A payload as a person writes it."""

    payload = forms.CharField(
        label=_("Payload"),
        strip=False,
        widget=forms.Textarea({"rows": 20, "cols": 80, "spellcheck": "false", "class": "jobqueue-code"}),
        help_text=_(
            'A JSON object. What JOBQUEUE["REDACT"] hides is shown as dots; where they stay, it stays too.'
        ),
    )

    def __init__(self, job: Job, data: QueryDict | None) -> None:
        self.job = job
        shown = json.dumps(display.hidden_payload(job, job.payload), indent=2, ensure_ascii=False)
        super().__init__(data, initial={"payload": shown})

    def clean_payload(self) -> dict[str, Any]:
        """A payload that ``enqueue`` would take for this type too."""
        text = self.cleaned_data["payload"]
        try:
            payload = restore(json.loads(text), self.job.payload)
            encode_payload(payload, conf.current().MAX_PAYLOAD_BYTES)
            if job_type := registry.find(self.job.job_type):
                job_type.check_call(payload)
        except json.JSONDecodeError as problem:
            raise ValidationError(
                gettext("This is no JSON: line %(line)d, column %(column)d: %(problem)s")
                % {"line": problem.lineno, "column": problem.colno, "problem": problem.msg}
            ) from problem
        except RecursionError as problem:
            raise ValidationError(gettext("Nested too deeply.")) from problem
        except InvalidPayload as problem:
            raise ValidationError(str(problem)) from problem
        if HIDDEN in json.dumps(payload, ensure_ascii=False):
            raise ValidationError(gettext("Dots stand where the payload had nothing that is hidden."))
        result: dict[str, Any] = payload
        return result


def edit(model_admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Retry a job with another payload."""
    job = found(model_admin, request, object_id)
    if not _may_edit(model_admin, request):
        raise PermissionDenied
    if not actions.RETRY.fits(job):
        told = gettext("Only a dead or cancelled job can be retried with another payload.")
        model_admin.message_user(request, told, messages.WARNING)
        return HttpResponseRedirect(url(job))
    form = PayloadForm(job, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        payload = form.cleaned_data["payload"]
        how = {} if payload == job.payload else {"payload": payload}
        action = RETRY_EDITED if how else actions.RETRY
        actions.perform(action, model_admin, request, [job], **how)
        return HttpResponseRedirect(url(job))
    page = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Retry with another payload"),
        "opts": model_admin.opts,
        "media": model_admin.media,
        "job": job,
        "form": form,
        "back": url(job),
    }
    return TemplateResponse(request, "django_jobqueue/admin/payload.html", page)


RETRY_EDITED = actions.Action(
    name="retry-edited",
    label=_("Retry with another payload"),
    permission=EDIT_PERMISSION,
    move=actions.RETRY.move,
    done=actions.RETRY.done,
    logged=_("Retried with another payload"),
    takes=actions.RETRY.takes,
)


def _may_edit(model_admin: Any, request: HttpRequest) -> bool:
    return bool(
        model_admin.permits(request, EDIT_PERMISSION)
        and model_admin.permits(request, actions.RETRY.permission)
    )


def live(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """How the jobs of a page stand now: the cells of their rows that change, as HTML."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    try:
        ids = [Job._meta.pk.to_python(one) for one in request.GET.get("ids", "").split(",")[:LIVE] if one]
    except ValidationError as problem:
        raise Http404 from problem
    jobs = Job.objects.filter(pk__in=ids).only(*LISTED)
    return JsonResponse({str(job.pk): _cells(job) for job in jobs})


def _cells(job: Job) -> dict[str, Any]:
    times = {name: display.instant(getattr(job, name)) for name in display.CHANGING_TIMES}
    state = (job.status, job.attempts, job.cancel_requested_at, *times.values())
    return {
        "is_live": not job.is_finished,
        "state": " ".join(map(str, state)),
        "cells": {"status": display.status(job), "attempts": display.attempts(job), **times},
    }
