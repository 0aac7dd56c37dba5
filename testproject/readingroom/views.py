"""The site's pages. What takes time becomes a job; a page never waits for one."""

from __future__ import annotations

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from django_jobqueue.models import Job, JobStatus
from testproject.exploration.folders import standard_library
from testproject.exploration.jobs import start_session
from testproject.exploration.models import Document, ExplorationSession
from testproject.outbox.models import OutboxMessage
from testproject.reports import jobs as reports
from testproject.reports.models import Report
from testproject.search.jobs import search as search_job

SHOWN = 10


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """What there is: sessions, reports, messages, jobs."""
    sessions = list(ExplorationSession.objects.order_by("-pk")[:SHOWN])
    context = {
        "sessions": [(one, one.documents.totals(), _standing(one)) for one in sessions],
        "documents": Document.objects.count(),
        "reports": Report.objects.order_by("-pk")[:SHOWN],
        "messages": OutboxMessage.objects.order_by("-created_at")[:SHOWN],
        "formats": Report.Format.choices,
        "statuses": [status.label for status in JobStatus],
        "kinds": [(name, counts.values()) for name, counts in sorted(Job.objects.counts("job_type").items())],
    }
    return render(request, "readingroom/index.html", context)


@require_POST
def explore(request: HttpRequest) -> HttpResponse:
    """Explore the standard library once more. No other folder: visitors don't choose what is read."""
    start_session(standard_library())
    return redirect("index")


@require_POST
def search(request: HttpRequest) -> HttpResponse:
    """Enqueue the search and go to the page that shows its result."""
    query = request.POST.get("query", "").replace("\0", "").strip()[:200]
    return (
        redirect("search-result", search_job.enqueue(query=query, limit=20).pk)
        if query
        else redirect("index")
    )


@require_safe
def search_result(request: HttpRequest, job_id: str) -> HttpResponse:
    """The result; until it is there, a page that asks again each second."""
    job = get_object_or_404(Job.objects.filter(job_type="search"), pk=job_id)
    context = {
        "job": job,
        "query": job.payload["query"],
        "hits": (job.result or {}).get("hits", []),
        "failed": job.is_finished and job.status != JobStatus.DONE,
    }
    return render(request, "readingroom/search.html", context)


@require_POST
def request_report(request: HttpRequest) -> HttpResponse:
    """Enqueue a report on the newest session; the site's own webhook is told when it is made."""
    kind = request.POST.get("format", "")
    if kind not in Report.Format.values:
        return HttpResponse(f"There is no format {kind!r}.", status=400, content_type="text/plain")
    newest = ExplorationSession.objects.order_by("-pk").first()
    filters = {"session_id": newest.pk} if newest else {}
    webhook = request.build_absolute_uri(reverse("webhook", args=["site"]))
    reports.request_report(kind, filters, webhook)
    return redirect("index")


@require_safe
def report_file(request: HttpRequest, report_id: int) -> FileResponse:
    """The file of a report: HTML to look at, all else to keep."""
    report = get_object_or_404(Report, pk=report_id)
    try:
        file = report.file.open("rb")
    except (ValueError, FileNotFoundError):
        raise Http404("The report is still to be made, or its file is gone.") from None
    response = FileResponse(file, as_attachment=report.format != Report.Format.HTML)
    # The file has nothing to load or to run, so nothing gets the chance.
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return response


@require_safe
def document(request: HttpRequest, document_id: int) -> HttpResponse:
    """A document as it was read."""
    found = get_object_or_404(Document.objects.select_related("session"), pk=document_id)
    return render(request, "readingroom/document.html", {"document": found})


def _standing(session: ExplorationSession) -> dict[str, int]:
    """How many of a session's jobs are done, and how many there are (finished ones are removed some day)."""
    counts = Job.objects.filter(job_type="exploration:run", payload__session_id=session.pk).counts()
    return {"done": counts[JobStatus.DONE], "all": sum(counts.values())}
