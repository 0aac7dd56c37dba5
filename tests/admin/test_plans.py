"""No page of the admin reads the whole table, whatever the filters: asked of the database itself."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_jobqueue.admin import bulk, bulk_views, changelist, dead_letters, job_page, search
from django_jobqueue.admin.jobs import JobAdmin
from django_jobqueue.models import Job, JobStatus
from tests.admin.pages import job_list
from tests.databases.test_plans import big_table, plan

__all__ = ["big_table"]

pytestmark = pytest.mark.django_db

LISTS = [
    "",
    *(f"?status__exact={status}" for status in JobStatus),
    *(f"?status__exact={status}&queue=q1&type=tests:any&worker=worker-1" for status in JobStatus),
    "?queue=nowhere",
    "?type=tests:nothing",
    "?worker=worker-1",
    "?worker=nobody",
    "?keyed=1",
    "?due=now",
    "?due=overdue&queue=q1",
    "?due=later",
    "?status__exact=4&type=tests:any&fingerprint=boom",
    "?dedupe_key=none",
    "?lock_key=none",
    "?q=tests:nothing",
    "?q=n=7",
    "?q=00000000-0000-7000-8000-000000000000",
    "?status__exact=3&finished_at__range__gte_0=2020-01-01&finished_at__range__lte_0=2020-02-01",
    "?created_at__range__gte_0=2020-01-01&created_at__range__lte_0=2020-02-01",
    "?run_after__range__gte_0=2020-01-01",
]


@pytest.fixture(autouse=True)
def narrow_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As narrow beside this table as the real ones are beside a large one."""
    for module in (changelist, search, bulk):
        monkeypatch.setattr(module, "LOOK", 500)
    monkeypatch.setattr(search, "LOOK_INTO_PAYLOADS", 500)
    monkeypatch.setattr(JobAdmin, "list_per_page", 20)


@pytest.fixture
def client(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def asked_by(act: Any) -> list[str]:
    """The reads of the table of jobs that a page makes."""
    with CaptureQueriesContext(connection) as captured:
        assert act().status_code in (200, 302)
    assert len(captured) <= 12
    statements = (one["sql"].strip() for one in captured)
    return [sql for sql in statements if "django_jobqueue_job" in sql and sql.startswith(("SELECT", "WITH"))]


def assert_by_index(statements: list[str]) -> None:
    assert statements
    for sql in statements:
        assert "everything" not in plan(sql.replace("%", "%%") if connection.vendor == "sqlite" else sql), sql


@pytest.mark.parametrize("query", LISTS)
def test_a_list_goes_by_an_index(client: Client, query: str) -> None:
    assert_by_index(asked_by(lambda: job_list(client, query)))


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.DONE])
def test_the_fiftieth_page_costs_what_the_first_one_does(client: Client, status: JobStatus) -> None:
    query = f"?status__exact={status}"
    first = asked_by(lambda: job_list(client, query))
    walk = job_list(client, query).context["cl"].walk
    last_seen = walk.rows(Job.objects.all())[50 * JobAdmin.list_per_page]
    place = f"{query}&{changelist.OLDER}={walk.write(walk.key(last_seen))}"
    later = asked_by(lambda: job_list(client, place))
    assert len(job_list(client, place).context["cl"].result_list) == JobAdmin.list_per_page
    assert len(later) == len(first)
    assert_by_index(later)


def test_dead_letters_go_by_an_index(client: Client) -> None:
    assert_by_index(asked_by(lambda: client.get(dead_letters.url())))
    assert_by_index(asked_by(lambda: client.get(dead_letters.url(type="tests:any", since="2020-01-01"))))


def test_a_jobs_page_and_the_state_of_many_go_by_an_index(client: Client) -> None:
    jobs = list(Job.objects.order_by("pk")[:100])
    assert_by_index(asked_by(lambda: client.get(job_page.url(jobs[0]))))
    ids = ",".join(str(job.pk) for job in jobs)
    assert_by_index(asked_by(lambda: client.get(f"/admin/django_jobqueue/job/live/?ids={ids}")))


@pytest.mark.parametrize("query", ["", "status__exact=4", "status__exact=1&due=now", "queue=nowhere"])
def test_an_action_on_all_that_match_goes_by_an_index(
    client: Client, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "STEP", 0.0)
    address = bulk_views.url("retry", query)
    assert_by_index(asked_by(lambda: client.get(address)))
    with CaptureQueriesContext(connection) as captured:
        client.post(address)
    reads = [one["sql"].strip() for one in captured if one["sql"].strip().startswith("SELECT")]
    assert_by_index([sql for sql in reads if "django_jobqueue_job" in sql])
