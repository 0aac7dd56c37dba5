"""The dashboard's addresses: the page, the part of it that is refreshed, and what can be done from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.forms import Script
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from ...exceptions import JobQueueError
from ...models import Queue, Worker
from ..readonly import ReadOnlyAdmin
from .page import address, content

#: Seconds between two looks of an open page.
REFRESH = 5


class Deed(NamedTuple):
    """What can be done to a queue or a worker from here: its permission, the move, and the words for it."""

    model: type[Queue] | type[Worker]
    permission: str
    move: Callable[[str], Any]
    told: Any
    logged: Any


DEEDS = {
    "pause": Deed(
        Queue,
        "pause_queue",
        Queue.objects.pause,
        _("The queue %(name)s is paused: what runs there ends, and nothing else starts."),
        _("Paused"),
    ),
    "resume": Deed(
        Queue,
        "pause_queue",
        Queue.objects.resume,
        _("The queue %(name)s is resumed."),
        _("Resumed"),
    ),
    "stop": Deed(
        Worker,
        "stop_worker",
        Worker.objects.ask_to_stop,
        _("The worker %(name)s was asked to stop. It sees it at its next beat, and ends when its jobs have."),
        _("Asked to stop"),
    ),
}


class DashboardAdmin(ReadOnlyAdmin):
    """In place of a list: queues, workers and charts on one page."""

    class Media:
        css = {"all": ["django_jobqueue/admin.css", "django_jobqueue/dashboard.css"]}
        js = [Script("django_jobqueue/dashboard.js", defer=True)]

    def get_urls(self) -> list[Any]:
        """The page, and where its buttons send to. There is nothing to add or to change."""
        return [
            path(
                "",
                self.admin_site.admin_view(self.changelist_view),
                name="django_jobqueue_dashboard_changelist",
            ),
            path("act/", self.admin_site.admin_view(self.act_view), name="django_jobqueue_dashboard_act"),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """The page; with ``?part=content`` only what changes."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **content(
                request.GET.get("period", "hour"),
                request.GET.get("queue"),
                self.permits(request, "view_job"),
            ),
            "may_pause": self.permits(request, "pause_queue"),
            "may_stop": self.permits(request, "stop_worker"),
        }
        if request.GET.get("part") == "content":
            template = "admin/django_jobqueue/dashboard_content.html"
        else:
            template = "admin/django_jobqueue/dashboard.html"
            context |= {
                **self.admin_site.each_context(request),
                "title": gettext("Dashboard"),
                "opts": self.opts,
                "media": self.media,
                "refresh": REFRESH,
            }
        return self._fresh(request, template, context | (extra_context or {}))

    @method_decorator(never_cache)
    def _fresh(self, request: HttpRequest, template: str, context: dict[str, Any]) -> TemplateResponse:
        return TemplateResponse(request, template, context)

    @method_decorator(require_POST)
    def act_view(self, request: HttpRequest) -> HttpResponse:
        """Do one thing to one queue or worker, log it, and go back."""
        deed = DEEDS.get(request.POST.get("deed", ""))
        if (
            deed is None
            or not self.has_view_permission(request)
            or not self.permits(request, deed.permission)
        ):
            raise PermissionDenied
        name = request.POST.get("name", "")
        try:
            found = deed.move(name)
        except JobQueueError as problem:
            self.message_user(request, str(problem), messages.ERROR)
        else:
            self._tell(request, deed, name, found is not False)
        return HttpResponseRedirect(address(request.POST.get("period", "hour"), request.POST.get("queue")))

    def _tell(self, request: HttpRequest, deed: Deed, name: str, found: bool) -> None:
        row = deed.model.objects.filter(pk=name).first() if found else None
        if row is None:
            text = gettext("The worker %(name)s is gone already.") % {"name": name}
            self.message_user(request, text, messages.WARNING)
            return
        user: Any = request.user
        LogEntry.objects.log_actions(user.pk, [row], CHANGE, str(deed.logged))
        self.message_user(request, deed.told % {"name": row}, messages.SUCCESS)
