"""The list of jobs: what it shows, how it is narrowed, and what it asks of the database."""

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from django_jobqueue.admin import filters
from django_jobqueue.admin.changelist import LISTED
from django_jobqueue.models import Job, JobStatus, Queue
from django_jobqueue.registry import JobType
from tests.admin.conftest import Person
from tests.admin.pages import INLINE, job_list, listed, words
from tests.moves.factories import TYPE, enqueue, in_status, stored, write

pytestmark = pytest.mark.django_db

HUGE = {"payload", "result", "context", "errors", "last_error", "progress_note"}


def many(count: int, **options: Any) -> list[Job]:
    return Job.objects.enqueue_many([(TYPE, {"n": n}) for n in range(count)], **options)


def queries_of(client: Client, query: str = "", alias: str = "default") -> list[str]:
    with CaptureQueriesContext(connections[alias]) as captured:
        assert job_list(client, query).status_code == 200
    return [one["sql"] for one in captured]


def test_a_row_shows_status_type_queue_priority_attempts_and_times(admin_client: Client) -> None:
    job = in_status(JobStatus.DONE, queue="mail", priority=7, max_attempts=3)
    row = words(re.search(r"<tbody>.*</tbody>", job_list(admin_client).content.decode(), re.DOTALL)[0])
    assert row.startswith(f"✓ done {TYPE} mail priority 7 1 / 3")
    for when in (stored(job).run_after, stored(job).finished_at):
        assert f"{when:%Y-%m-%d %H:%M:%S}" in row


@pytest.mark.parametrize("status", JobStatus)
def test_a_status_is_told_by_a_word_and_not_by_its_colour_alone(
    admin_client: Client, status: JobStatus
) -> None:
    in_status(status)
    html = job_list(admin_client).content.decode()
    badge = re.search(r'<span class="jobqueue-status jobqueue-(\w+)">(.*?)</span> (\w+)</span>', html)
    assert badge
    assert (badge[1], badge[3]) == (status.name.lower(), status.label)


def test_the_newest_job_comes_first_and_nothing_else_can_be_sorted_by(admin_client: Client) -> None:
    jobs = many(3)
    assert listed(admin_client, "?o=2.-3") == jobs[::-1]
    assert "sortable" not in job_list(admin_client).content.decode()


def test_a_job_whose_type_nobody_knows_any_more_is_listed(admin_client: Client, settings: Settings) -> None:
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["removed:*"]}
    job = enqueue(job_type="removed:by-a-deploy")
    settings.JOBQUEUE = {}
    assert listed(admin_client) == [job]
    assert listed(admin_client, "?type=removed:by-a-deploy") == [job]


def test_hostile_names_are_escaped_everywhere(admin_client: Client, settings: Settings) -> None:
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["*"]}
    enqueue(job_type="<script>alert(1)</script>", queue='"><b onclick=alert(2)>')
    html = job_list(admin_client).content.decode()
    assert "<script>alert" not in html
    assert "<b onclick" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;</a>") == 2  # in its row and as a filter


def test_nothing_in_the_page_needs_more_than_a_policy_of_self(admin_client: Client) -> None:
    in_status(JobStatus.DEAD)
    html = job_list(admin_client, "?created_at__range__gte_0=2020-01-01").content.decode()
    assert "jobqueue-range" in html
    assert not INLINE.search(html)


def test_the_number_of_queries_does_not_depend_on_the_number_of_jobs(admin_client: Client) -> None:
    many(3)
    few = queries_of(admin_client)
    many(200)
    assert len(queries_of(admin_client)) == len(few) <= 8


@pytest.mark.parametrize(
    "query", ["", "?q=tests", "?status__exact=1&queue=default&type=tests:any", "?due=now"]
)
def test_the_list_asks_for_no_column_that_may_be_huge(admin_client: Client, query: str) -> None:
    many(101)
    assert not HUGE & set(LISTED)
    asked = [sql for sql in queries_of(admin_client, query) if "django_jobqueue_job" in sql]
    assert asked
    assert not [sql for sql in asked for column in HUGE if f'"{column}"' in sql]


def test_the_queue_filter_offers_what_is_declared_used_paused_or_recent(
    admin_client: Client, settings: Settings, registered: JobType
) -> None:
    enqueue(queue="recent")
    Queue.objects.pause("paused")
    settings.JOBQUEUE = {"QUEUES": ["declared"]}
    names = _offered(admin_client, filters.QueueFilter)
    assert {"declared", "paused", "recent", registered.queue} <= names


def test_the_type_filter_offers_what_is_registered_or_recent(
    admin_client: Client, registered: JobType
) -> None:
    enqueue()
    assert {TYPE, registered.name} <= _offered(admin_client, filters.TypeFilter)


def test_only_the_newest_jobs_are_looked_at_for_names(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue(queue="long-ago")
    many(3, queue="recent")
    monkeypatch.setattr(filters, "RECENT", 3)
    names = _offered(admin_client, filters.QueueFilter)
    assert "recent" in names
    assert "long-ago" not in names
    assert "long-ago" in _offered(admin_client, filters.QueueFilter, "?queue=long-ago")
    assert len(listed(admin_client, "?queue=long-ago")) == 1


def _offered(client: Client, kind: type, query: str = "") -> set[str]:
    [spec] = [one for one in job_list(client, query).context["cl"].filter_specs if isinstance(one, kind)]
    return {name for name, _ in spec.lookup_choices}


def test_status_queue_and_type_narrow_the_list(admin_client: Client) -> None:
    mail = enqueue(queue="mail", job_type="tests:mail")
    other = enqueue(job_type="tests:other")
    done = in_status(JobStatus.DONE)
    assert listed(admin_client, "?queue=mail") == [mail]
    assert listed(admin_client, "?type=tests:other") == [other]
    assert listed(admin_client, f"?status__exact={JobStatus.DONE}") == [done]
    assert listed(admin_client, "?queue=mail&type=tests:other") == []


def done_at(moment: datetime, field: str) -> Job:
    """A job whose id and one of whose times are of that moment."""
    job = in_status(JobStatus.DONE)
    identity = UUID(int=filters.first_id(moment).int | job.pk.int & (1 << 80) - 1)
    write(job, id=identity, **{field: moment})
    job.pk = identity
    return job


@pytest.mark.parametrize("field", ["created_at", "run_after", "finished_at"])
def test_a_range_of_times_narrows_the_list(admin_client: Client, field: str) -> None:
    moment = timezone.now().replace(year=2020, month=5, day=6, hour=12, minute=0, second=0)
    inside, before, after = (
        done_at(moment + timedelta(days=days), field) for days in (0, -1, 1)
    )  # fmt: skip
    low, high = f"{field}__range__gte", f"{field}__range__lte"
    day = f"?{low}_0=2020-05-06&{high}_0=2020-05-06"  # without times: the whole day
    assert listed(admin_client, day) == [inside]
    assert listed(admin_client, f"?{low}_0=2020-05-06&{low}_1=12:01") == [after]
    assert listed(admin_client, f"?{high}_0=2020-05-06&{high}_1=11:59:59") == [before]
    assert len(listed(admin_client, f"?{low}_0=&{low}_1=")) == 3


def test_a_range_that_is_no_time_is_refused_and_not_ignored(admin_client: Client) -> None:
    job = enqueue()
    query = "?created_at__range__gte_0=yesterday"
    assert job_list(admin_client, query).status_code == 302
    data = {"action": "cancel_jobs", "select_across": "1", "_selected_action": [str(job.pk)]}
    admin_client.post(reverse("admin:django_jobqueue_job_changelist") + query, data)
    assert stored(job).status == JobStatus.PENDING


def test_the_range_form_keeps_the_other_filters_and_shows_what_was_chosen(admin_client: Client) -> None:
    html = job_list(admin_client, "?queue=mail&q=tests&finished_at__range__lte_0=2020-05-06").content.decode()
    forms = re.findall(r'<form method="get" class="jobqueue-range">.*?</form>', html, re.DOTALL)
    form = forms[-1]  # after created and run after
    assert '<input type="hidden" name="queue" value="mail">' in form
    assert '<input type="hidden" name="q" value="tests">' in form
    assert 'name="finished_at__range__lte_0" value="2020-05-06"' in form
    assert 'name="finished_at__range__lte_1" value="23:59:59"' in form


def test_a_job_is_found_by_its_id_with_or_without_hyphens(admin_client: Client) -> None:
    job, _other = many(2)
    assert listed(admin_client, f"?q={job.pk}") == [job]
    assert listed(admin_client, f"?q={job.pk.hex}") == [job]
    assert listed(admin_client, f"?q=%20{job.pk.hex.upper()}%20") == [job]
    assert listed(admin_client, f"?q={uuid4()}") == []


def test_a_job_is_found_by_its_whole_dedupe_key(admin_client: Client) -> None:
    job = enqueue(dedupe_key="report-7")
    like_an_id = enqueue(dedupe_key=uuid4().hex)
    assert listed(admin_client, "?q=report-7") == [job]
    assert listed(admin_client, f"?q={like_an_id.dedupe_key}") == [like_an_id]
    assert listed(admin_client, "?q=report-") == []


def test_jobs_are_found_by_the_beginning_of_their_type(admin_client: Client) -> None:
    mail, more = enqueue(job_type="tests:mail"), enqueue(job_type="tests:mailing")
    enqueue(job_type="tests:other")
    assert listed(admin_client, "?q=tests:mail") == [more, mail]
    assert listed(admin_client, "?q=mail") == []
    assert listed(admin_client, "?q=tests%25") == []


def test_without_the_permission_to_view_there_is_no_list(person: Person) -> None:
    assert job_list(person("retry_job")).status_code == 403


def test_whoever_may_only_view_sees_no_actions_and_no_way_to_add(person: Person) -> None:
    enqueue()
    html = job_list(person("view_job")).content.decode()
    assert "action-select" not in html
    assert reverse("admin:django_jobqueue_job_changelist") + "add/" not in html


@pytest.mark.django_db(databases=["default", "other"])
def test_the_list_is_of_the_queues_database_wherever_that_is(
    admin_client: Client, settings: Settings
) -> None:
    enqueue()
    settings.JOBQUEUE |= {"DATABASE": "other"}
    elsewhere = many(2)
    assert listed(admin_client) == elsewhere[::-1]
    assert [sql for sql in queries_of(admin_client, alias="other") if "django_jobqueue_job" in sql]
