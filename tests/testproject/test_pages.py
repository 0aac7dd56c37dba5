"""The site's pages, and the admin of its rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_jobqueue.models import Job, JobStatus
from testproject.exploration.folders import plan, standard_library
from testproject.exploration.jobs import start_session
from testproject.exploration.models import Document, ExplorationSession
from testproject.outbox.models import Delivery, OutboxMessage
from testproject.readingroom.templatetags.excerpts import marked
from testproject.reports.models import Report

pytestmark = pytest.mark.django_db(transaction=True)

Run = Callable[..., int]


def test_the_first_page_of_an_empty_site_says_so(client: Client) -> None:
    page = client.get("/").content.decode()
    assert "0 documents" in page
    assert "Nothing was explored yet." in page


def test_the_first_page_shows_sessions_reports_messages_and_jobs(
    client: Client, folder: Path, run_due: Run
) -> None:
    start_session(folder)
    run_due()
    client.post("/reports/", {"format": "html"})
    run_due(limit=1)
    page = client.get("/").content.decode()
    assert "7 documents" in page
    assert "3 of 3" in page
    assert f"reports/report-{Report.objects.get().pk}.html" in page
    assert "http://testserver/webhook/site/" in page
    assert "exploration:run" in page


def test_exploring_from_the_page_enqueues_the_standard_library(client: Client) -> None:
    assert client.post("/explore/").status_code == 302
    assert ExplorationSession.objects.get().root == str(standard_library())
    assert Job.objects.filter(job_type="exploration:run").count() == len(plan(standard_library()))


def test_a_search_asks_again_until_its_job_is_done_and_then_shows_the_hits(
    client: Client, folder: Path, run_due: Run
) -> None:
    start_session(folder)
    run_due()
    address = client.post("/search/", {"query": "carp"})["Location"]
    assert 'http-equiv="refresh"' in client.get(address).content.decode()
    run_due()
    page = client.get(address).content.decode()
    assert 'http-equiv="refresh"' not in page
    assert "<mark>carp</mark>" in page
    document = Document.objects.get(path="birds/heron.py")
    assert f'href="/documents/{document.pk}/"' in page
    assert "def Heron.fish" in client.get(f"/documents/{document.pk}/").content.decode()


def test_a_search_for_nothing_makes_no_job_and_one_that_was_cancelled_says_so(client: Client) -> None:
    assert client.post("/search/", {"query": " "})["Location"] == "/"
    assert not Job.objects.exists()
    address = client.post("/search/", {"query": "carp"})["Location"]
    Job.objects.all().cancel()
    assert "The search was not made" in client.get(address).content.decode()


def test_what_was_read_and_what_was_typed_is_escaped(client: Client, run_due: Run) -> None:
    session = ExplorationSession.objects.create(root="/<b>")
    bad = "<script>alert(1)</script> marsh"
    document = Document.objects.create(
        session=session, path=bad, title=bad, outline=bad, text=bad, urls=[bad]
    )
    address = client.post("/search/", {"query": "<script> marsh"})["Location"]
    run_due()
    for page in ("/", address, f"/documents/{document.pk}/"):
        text = client.get(page).content.decode()
        assert "<script" not in text
        assert "<b>" not in text


def test_marks_are_made_of_pairs_only_and_all_else_is_escaped() -> None:
    assert marked("«a» «b <i> » c»") == "<mark>a</mark> <mark>b &lt;i&gt; </mark> c»"


def test_a_report_is_served_as_a_file_that_can_run_nothing(client: Client, run_due: Run) -> None:
    for format in ("html", "csv"):
        client.post("/reports/", {"format": format})
    assert client.get(f"/reports/{Report.objects.get(format='csv').pk}/").status_code == 404
    run_due(limit=2)
    page = client.get(f"/reports/{Report.objects.get(format='html').pk}/")
    file = client.get(f"/reports/{Report.objects.get(format='csv').pk}/")
    assert page["Content-Type"].startswith("text/html")
    assert "sandbox" in page["Content-Security-Policy"]
    assert page.getvalue().startswith(b"<!doctype html>")
    assert file["Content-Disposition"].startswith("attachment")
    assert file.getvalue().startswith(b"package,files,")
    page.close()
    file.close()


def test_a_format_that_there_is_not_is_refused(client: Client) -> None:
    assert client.post("/reports/", {"format": "<pdf>"}).status_code == 400
    assert not Report.objects.exists()


@pytest.mark.parametrize("path", ["/explore/", "/reports/", "/search/"])
def test_what_enqueues_needs_a_post_with_a_token(path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.get(path).status_code == 405
    assert client.post(path).status_code == 403
    assert not Job.objects.exists()


def test_the_admin_shows_every_row_of_the_site(client: Client, folder: Path, run_due: Run) -> None:
    client.force_login(User.objects.create_superuser("reader"))
    start_session(folder)
    run_due()
    Report.objects.create(format="csv")
    OutboxMessage.objects.create(url="http://x.example/", event="tested")
    Delivery.objects.create(key="k", receiver="x")
    for model in (ExplorationSession, Document, Report, OutboxMessage, Delivery):
        one = model.objects.order_by("pk").first()
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        assert client.get(reverse(f"{name}_changelist")).status_code == 200
        assert client.get(reverse(f"{name}_change", args=[one.pk])).status_code == 200
    assert Job.objects.counts()[JobStatus.DONE] == 3
