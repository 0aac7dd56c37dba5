"""Dead letters by kind: counted with a bound, with what the last one said, and dealt with as one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_jobqueue.admin import bulk_views, dead_letters
from django_jobqueue.managers import deaths
from django_jobqueue.models import Job, JobStatus
from tests.admin.conftest import Person
from tests.admin.pages import INLINE, words
from tests.moves.factories import ago, claimed, dead, enqueue, selected, statuses, stored, write

pytestmark = pytest.mark.django_db


def died(job_type: str, fingerprint: str, seconds_ago: float, message: str = "no") -> Job:
    job = dead(job_type=f"tests:{job_type}")
    write(job, error_fingerprint=fingerprint, finished_at=ago(seconds_ago), last_error=message)
    return job


def page(client: Client, **query: Any) -> str:
    response = client.get(dead_letters.url(**query))
    assert response.status_code == 200
    return str(response.content.decode())


def kinds(**options: Any) -> list[tuple[str, str, int]]:
    return [(one.job_type, one.fingerprint, one.count) for one in Job.objects.dead_letters(**options)]


def test_the_same_fault_a_thousand_times_is_one_line_the_last_to_die_first() -> None:
    first, *_, last = [died("a", "x", 50 - n) for n in range(5)]
    died("a", "y", 20)
    died("b", "x", 10)
    enqueue()
    assert kinds() == [("tests:b", "x", 1), ("tests:a", "y", 1), ("tests:a", "x", 5)]
    kind = Job.objects.dead_letters()[2]
    assert (kind.first, kind.last) == (stored(first).finished_at, stored(last).finished_at)
    assert (kind.example, kind.is_capped) == (last.pk, False)


def test_kinds_are_narrowed_by_type_and_time_and_cut_into_pages() -> None:
    for n in range(5):
        died("a", f"f{n}", 100 - n)
    died("b", "x", 200)
    assert kinds(job_type="tests:b") == [("tests:b", "x", 1)]
    assert kinds(job_type="tests:none") == []
    assert [one[1] for one in kinds(since=ago(98.5))] == ["f4", "f3", "f2"]
    assert [one[1] for one in kinds(most=2, start=3)] == ["f1", "f0"]


def test_counting_and_looking_stop_at_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deaths, "COUNT_CAP", 3)
    monkeypatch.setattr(deaths, "MOST_KINDS", 2)
    for n in range(4):
        died("a", "x", n)
    for name in ("b", "c"):
        died(name, "x", 0)
    assert {(one.job_type, one.count, one.is_capped) for one in Job.objects.dead_letters()} == {
        ("tests:a", 3, True),
        ("tests:b", 1, False),
    }


def test_without_dead_letters_there_are_no_kinds() -> None:
    enqueue()
    assert kinds() == []


def test_the_page_shows_kind_count_times_and_what_the_last_one_said(admin_client: Client) -> None:
    died("mail", "smtplib.SMTPError in mail.send", 90, "old")
    last = died("mail", "smtplib.SMTPError in mail.send", 30, "server <b>away</b>")
    html = page(admin_client)
    shown = words(html)
    assert "tests:mail smtplib.SMTPError in mail.send server &lt;b&gt;away&lt;/b&gt;" in shown
    assert f"{stored(last).finished_at:%Y-%m-%d %H:%M:%S}" in shown
    assert reverse("admin:django_jobqueue_job_change", args=[last.pk]) in html
    assert not INLINE.search(html)


def test_a_kind_leads_to_its_jobs_and_to_what_can_be_done_with_them(admin_client: Client) -> None:
    mine, other = [died("a", "x=1&y", 1) for _ in range(3)], died("a", "z", 1)
    html = page(admin_client)
    query = "status__exact=4&type=tests%3Aa&fingerprint=x%3D1%26y"
    for address in (bulk_views.url("retry", query), bulk_views.url("discard", query)):
        assert address.replace("&", "&amp;") in html
    admin_client.post(bulk_views.url("retry", query))
    assert statuses(*mine, other) == [JobStatus.PENDING] * 3 + [JobStatus.DEAD]


def test_all_that_the_filter_leaves_can_be_retried_at_once(admin_client: Client) -> None:
    died("a", "x", 1)
    morning = datetime(2026, 3, 4, tzinfo=UTC)
    job = died("b", "x", 1)
    write(job, finished_at=morning - timedelta(days=3))
    html = page(admin_client, type="tests:a", since="2026-03-04")
    query = "status__exact=4&type=tests%3Aa&finished_at__range__gte_0=2026-03-04"
    assert bulk_views.url("retry", query).replace("&", "&amp;") in html
    assert "tests:b" not in words(html)
    assert "No dead letter matches." in page(admin_client, type="tests:b", since="2026-03-04")
    admin_client.post(bulk_views.url("retry", query))
    assert Job.objects.get(job_type="tests:a").status == JobStatus.PENDING


def test_many_kinds_are_cut_into_pages(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "PAGE", 2)
    for n in range(5):
        died("a", f"kind-{n}", n)
    for start, shown in ((0, "01"), (2, "23"), (4, "4")):
        html = page(admin_client, start=start)
        assert {n for n in "01234" if f"kind-{n}</span>" in html} == set(shown)
        assert ('rel="next"' in html, 'rel="prev"' in html) == (start < 4, start > 0)


def test_secrets_in_messages_are_hidden_long_ones_cut_and_strange_characters_written_out(
    admin_client: Client, settings: Any
) -> None:
    settings.JOBQUEUE |= {"REDACT": ["password"]}
    died("a", "x", 1, "password=hunter22 " + "long " * 1_000)
    died("a", "y", 1, "\u202eevil")
    html = page(admin_client)
    assert "hunter22" not in html
    assert "long " * 100 not in html
    assert "\u202e" not in html


@pytest.mark.parametrize(
    "query", ["?since=yesterday", "?start=-1", "?start=x", "?type=%00", "?type=" + "x" * 500]
)
def test_a_filter_that_makes_no_sense_breaks_nothing(admin_client: Client, query: str) -> None:
    dead()
    assert admin_client.get(dead_letters.url() + query).status_code == 200


def test_whoever_may_only_look_sees_no_buttons(person: Person) -> None:
    died("a", "x", 1)
    html = page(person("view_job"))
    assert "tests:a" in html
    assert "/all/" not in html


def test_without_the_permission_to_view_there_is_no_page(person: Person) -> None:
    assert person("retry_job").get(dead_letters.url()).status_code == 403
    assert Client().get(dead_letters.url()).status_code == 302


def test_the_page_takes_few_queries_however_many_kinds_there_are(person: Person) -> None:
    client = person("view_job", "retry_job")
    for n in range(30):
        died("a", f"kind-{n}", n)
    with CaptureQueriesContext(connection) as captured:
        page(client)
    assert len(captured) <= 8


def test_an_error_that_has_no_fingerprint_is_a_kind_too(admin_client: Client) -> None:
    job = claimed()
    selected(job).cancel()
    Job.objects.release(job)
    write(job, status=JobStatus.DEAD)
    assert kinds() == [(job.job_type, "", 1)]
    query = f"status__exact=4&type={job.job_type}&fingerprint="
    admin_client.post(bulk_views.url("retry", query))
    assert stored(job).status == JobStatus.PENDING
