"""The state in which the demo begins."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.utils import timezone

from django_jobqueue.models import Job
from testproject.exploration.folders import plan
from testproject.exploration.jobs import explore, store
from testproject.exploration.models import ExplorationSession
from testproject.outbox.models import Delivery, OutboxMessage
from testproject.reports import jobs as reports
from testproject.reports.figures import collect
from testproject.reports.formats import as_csv
from testproject.reports.models import Report

KINDS = ("exploration:run", "search", "report:generate", "outbox", "cleanup:old-data")

NAME = PASSWORD = "admin"


def prepare(folder: Path) -> None:
    """Migrate, remove what the last demo left, and put something old on the shelf."""
    call_command("migrate", verbosity=0, interactive=False)
    Job.objects.filter(job_type__in=KINDS).delete()
    for report in Report.objects.all():
        report.file.delete(save=False)
    for model in (OutboxMessage, Delivery, Report, ExplorationSession):
        model.objects.all().delete()
    leave_something_old(folder)


def leave_something_old(folder: Path) -> None:
    """A session and a report of last season, for the cleanup to find."""
    when = timezone.now() - timedelta(days=90)
    session = ExplorationSession.objects.create(root=str(folder), created_at=when)
    read = (explore(session, folder, file) for file in plan(folder)[-1].files(folder))
    store([document for document in read if document is not None])
    report = Report.objects.create(format="csv", filters={"session_id": session.pk}, created_at=when)
    reports.store(report, f"report-{report.pk}.csv", as_csv(collect(report.filters)))


def admit_admin() -> str:
    """Let somebody into the admin; says how. Only the demo does this: a password that everybody knows."""
    users = get_user_model()._default_manager
    if users.filter(username=NAME).exists():
        return f"as {NAME}, whom this database has already"
    users.create_superuser(NAME, password=PASSWORD)
    return f"as {NAME} with the password {PASSWORD}; made for this demo only"
