"""cleanup:old-data: exactly what is old goes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from django_jobqueue.models import Job, JobStatus
from testproject.exploration.models import Document, ExplorationSession
from testproject.outbox.models import Delivery, OutboxMessage
from testproject.readingroom.jobs import clean_up
from testproject.reports.models import Report

pytestmark = pytest.mark.django_db(transaction=True)

Run = Callable[..., int]

URL = "http://receiver.example/"


def days_ago(days: float) -> object:
    return timezone.now() - timedelta(days=days)


def make_session(days: float) -> ExplorationSession:
    session = ExplorationSession.objects.create(root="/x", created_at=days_ago(days))
    Document.objects.create(session=session, path="a")
    Document.objects.create(session=session, path="b")
    return session


def make_report(days: float) -> Report:
    report = Report.objects.create(format="csv", created_at=days_ago(days))
    report.file.save(f"{days}.csv", ContentFile(b"x"))
    return report


def make_message(days: float, report: Report, delivered: bool) -> OutboxMessage:
    when = days_ago(days)
    return OutboxMessage.objects.create(
        url=URL, event="tested", report=report, created_at=when, delivered_at=when if delivered else None
    )


def test_old_sessions_reports_and_receipts_go_and_younger_ones_stay(run_due: Run, media: Path) -> None:
    make_session(31)
    young_session = make_session(29)
    make_message(31, make_report(31), delivered=True)
    young_report = make_report(29)
    young_message = make_message(29, young_report, delivered=True)
    Delivery.objects.create(key="old", receiver="x", received_at=days_ago(31))
    young_delivery = Delivery.objects.create(key="young", receiver="x", received_at=days_ago(29))

    job = clean_up.enqueue(retention_days=30)
    run_due()

    job.refresh_from_db()
    assert job.result == {
        "sessions": 1,
        "documents": 2,
        "reports": 1,
        "messages": 1,
        "deliveries": 1,
        "jobs": 0,
    }
    assert list(ExplorationSession.objects.all()) == [young_session]
    assert Document.objects.count() == 2
    assert list(Report.objects.all()) == [young_report]
    assert [file.name for file in (media / "reports").iterdir()] == ["29.csv"]
    assert list(OutboxMessage.objects.all()) == [young_message]
    assert list(Delivery.objects.all()) == [young_delivery]


def test_a_report_that_somebody_is_still_to_be_told_of_stays_with_its_file(run_due: Run, media: Path) -> None:
    report = make_report(90)
    message = make_message(90, report, delivered=False)
    clean_up.enqueue(retention_days=30)
    run_due()
    assert list(Report.objects.all()) == [report]
    assert list(OutboxMessage.objects.all()) == [message]
    assert (media / "reports" / "90.csv").exists()


def test_a_report_whose_file_is_gone_already_goes_too(run_due: Run, media: Path) -> None:
    make_report(90)
    (media / "reports" / "90.csv").unlink()
    clean_up.enqueue(retention_days=30)
    run_due()
    assert not Report.objects.exists()


def test_finished_jobs_go_and_dead_and_active_ones_stay(run_due: Run) -> None:
    done = Job.objects.enqueue("search", {"query": "x"})
    dead = Job.objects.enqueue("search", {"query": "x", "limit": 0})
    run_due()
    waiting = Job.objects.enqueue("search", {"query": "x"}, run_after=timedelta(days=1))
    job = clean_up.enqueue(retention_days=0)
    run_due()
    job.refresh_from_db()
    assert job.result["jobs"] == 1
    assert set(Job.objects.all()) == {dead, waiting, job}
    assert not Job.objects.filter(pk=done.pk).exists()


@pytest.mark.parametrize("days", [-1, 36_501, 1.5, "30", None, True])
def test_a_retention_that_makes_no_sense_is_dead_at_once_and_removes_nothing(
    days: object, run_due: Run
) -> None:
    make_session(1_000)
    job = Job.objects.enqueue("cleanup:old-data", {"retention_days": days})
    run_due()
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.DEAD, 1)
    assert ExplorationSession.objects.count() == 1


def test_two_cleanups_never_run_at_the_same_time() -> None:
    clean_up.enqueue(retention_days=30)
    clean_up.enqueue(retention_days=60)
    assert len(Job.objects.claim(worker_id="a", limit=5)) == 1
    assert Job.objects.claim(worker_id="b", limit=5) == []
