"""``cleanup:old-data``: what nobody needs any more goes."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from django_jobqueue import DeadJob, job
from django_jobqueue.models import Job, JobStatus
from testproject.exploration.models import Document, ExplorationSession
from testproject.outbox.models import Delivery, OutboxMessage
from testproject.reports.models import Report

MOST_DAYS = 36_500


# At night nobody minds, and two at once would only be in each other's way.
@job("cleanup:old-data", queue="maintenance", priority=-50, lock_key="cleanup:old-data")
def clean_up(retention_days: int) -> dict[str, int]:
    """Remove sessions, reports, messages, receipts and finished jobs older than ``retention_days``.

    What still waits for somebody stays: dead jobs, messages not delivered yet, and their reports.
    """
    if isinstance(retention_days, bool) or not isinstance(retention_days, int):
        raise DeadJob(f"retention_days={retention_days!r} must be a whole number.")
    if not 0 <= retention_days <= MOST_DAYS:
        raise DeadJob(f"retention_days={retention_days} must be from 0 to {MOST_DAYS}.")
    kept = timedelta(days=retention_days)
    before = timezone.now() - kept
    sessions, documents = remove_sessions(before)
    return {
        "sessions": sessions,
        "documents": documents,
        "messages": OutboxMessage.objects.filter(created_at__lt=before, delivered_at__isnull=False).delete()[
            0
        ],
        "reports": remove_reports(before),
        "deliveries": Delivery.objects.filter(received_at__lt=before).delete()[0],
        "jobs": Job.objects.exclude(status=JobStatus.DEAD).prune(kept),
    }


def remove_sessions(before: datetime) -> tuple[int, int]:
    """Remove old sessions with their documents, each in its own transaction; how many of both went."""
    documents = 0
    old = list(ExplorationSession.objects.filter(created_at__lt=before))
    for session in old:
        removed = session.delete()[1]
        documents += removed.get(Document._meta.label, 0)
    return len(old), documents


def remove_reports(before: datetime) -> int:
    """Remove old reports with their files; how many went."""
    waiting = OutboxMessage.objects.filter(report=OuterRef("pk"), delivered_at__isnull=True)
    old = list(Report.objects.filter(~Exists(waiting), created_at__lt=before))
    for report in old:
        # The file first: should we be stopped in between, the row is still there to be found next time.
        report.file.delete(save=False)
        report.delete()
    return len(old)
