"""``report:generate``: a report becomes a file, and the news of it a message, in one transaction."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldError
from django.core.files.base import ContentFile
from django.db import transaction
from django.utils import timezone

from django_jobqueue import DeadJob, job
from testproject.outbox.jobs import leave

from .figures import collect
from .formats import FORMATS
from .models import Report


# Atomic: the file's place, the message and its job, and the completion of this job are committed together
# or not at all. Nobody hears of a report that there is not, and no report goes unheard of.
@job(
    "report:generate",
    queue="reports",
    atomic=True,
    never_retry=[Report.DoesNotExist],
    dedupe_key=lambda report_id, **others: f"report:{report_id}",
)
def generate_report(report_id: int, format: str, filters: dict[str, Any]) -> dict[str, Any]:
    """Write the report's file and, if somebody is to be told, the message."""
    report = Report.objects.get(pk=report_id)
    if format not in FORMATS:
        raise DeadJob(f"format={format!r} must be one of {', '.join(FORMATS)}.")
    try:
        figures = collect(filters)
    except (ValueError, TypeError, FieldError) as problem:
        raise DeadJob(f"filters: {problem}") from problem
    store(report, f"report-{report.pk}.{format}", FORMATS[format](figures))
    if report.notify_url:
        body = {"report": report.pk, "file": report.file.name, "totals": figures.totals}
        leave(report.notify_url, "report.made", body, report)
    return {"file": report.file.name, "size": report.file.size, **figures.totals}


def store(report: Report, name: str, text: str) -> None:
    """Put the file into place. Always the same name, so that a second attempt leaves no file behind."""
    storage, path = report.file.storage, report.file.field.generate_filename(report, name)
    storage.delete(path)
    report.file.name = storage.save(path, ContentFile(text.encode()))
    report.made_at = timezone.now()
    report.save(update_fields=["file", "made_at"])


def request_report(format: str, filters: dict[str, Any], notify_url: str = "") -> Report:
    """A new report, and the job that makes it."""
    with transaction.atomic():
        report = Report.objects.create(format=format, filters=filters, notify_url=notify_url)
        generate_report.enqueue(report_id=report.pk, format=format, filters=filters)
    return report
