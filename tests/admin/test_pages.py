"""The list page by page: in the order of an index, from key to key, and never through the whole table."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_jobqueue.admin import changelist, search
from django_jobqueue.admin.jobs import JobAdmin
from django_jobqueue.admin.walks import NEWEST, BadKey
from django_jobqueue.managers import WorkerFacts
from django_jobqueue.models import Job, JobStatus, Worker
from tests.admin.conftest import Person
from tests.admin.pages import job_list, listed, told, words
from tests.moves.factories import TYPE, ago, claim, dead, enqueue, in_status, selected

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobAdmin, "list_per_page", 3)


def many(count: int, **options: Any) -> list[Job]:
    return Job.objects.enqueue_many([(TYPE, {"n": n}) for n in range(count)], **options)


def through(client: Client, query: str, link: str = "older_url") -> list[list[Job]]:
    """The pages from one on, by a link of theirs."""
    pages = []
    while query:
        cl = job_list(client, query).context["cl"]
        pages.append(list(cl.result_list))
        query = getattr(cl, link)
        assert len(pages) < 100
    return pages


def joined(pages: list[list[Job]]) -> list[Job]:
    return [job for page in pages for job in page]


def last_address(client: Client, query: str) -> str:
    while further := job_list(client, query).context["cl"].older_url:
        query = further
    return query


def test_pages_lead_through_all_jobs_and_back_again(admin_client: Client) -> None:
    jobs = many(10)[::-1]
    pages = through(admin_client, "?")
    assert [len(page) for page in pages] == [3, 3, 3, 1]
    assert joined(pages) == jobs
    back = through(admin_client, last_address(admin_client, "?"), "newer_url")
    assert joined(back[::-1])[-4:] == jobs[-4:]
    assert back[-1] == jobs[:3]
    assert joined(back[::-1]) == jobs


def test_a_page_keeps_its_place_while_new_jobs_come(admin_client: Client) -> None:
    jobs = many(6)[::-1]
    older = job_list(admin_client).context["cl"].older_url
    many(4)
    assert listed(admin_client, older) == jobs[3:]


def rows_of(status: JobStatus) -> list[Job]:
    """Seven of a status, in the order in which the list shows them."""
    if status is RUNNING:
        many(7)
        by_worker = [claim(worker_id=f"w-{n % 3}")[0] for n in range(7)]
        return sorted(by_worker, key=lambda job: (job.worker_id, -job.pk.int))
    if status is PENDING:
        jobs = [
            enqueue(queue=f"q-{n % 2}", priority=n % 3, run_after=timedelta(hours=9 - n)) for n in range(7)
        ]
        return sorted(
            sorted(jobs, key=lambda job: (-job.priority, job.run_after)),
            key=lambda job: job.queue,
            reverse=True,
        )
    jobs = many(7)
    for n, job in enumerate(jobs):  # three of them at the same instant
        selected(job).update(status=status, finished_at=jobs[0].created_at + timedelta(seconds=max(n, 2)))
    by_end = Job.objects.in_bulk([job.pk for job in jobs]).values()
    return sorted(by_end, key=lambda job: (job.finished_at, job.pk), reverse=True)


@pytest.mark.parametrize("status", JobStatus)
def test_each_status_has_an_order_of_its_own_and_says_so(admin_client: Client, status: JobStatus) -> None:
    jobs = rows_of(status)
    query = f"?status__exact={status}"
    assert joined(through(admin_client, query)) == jobs
    back = through(admin_client, last_address(admin_client, query), "newer_url")
    assert joined(back[::-1]) == jobs
    html = words(job_list(admin_client, query).content.decode())
    assert str(job_list(admin_client, query).context["cl"].walk.told) in html


def test_a_queue_is_listed_as_its_jobs_will_run(admin_client: Client) -> None:
    late, soon, first = (
        enqueue(queue="mail", priority=p, run_after=timedelta(hours=h)) for p, h in ((0, 2), (0, 1), (5, 3))
    )
    enqueue(queue="other")
    assert listed(admin_client, "?status__exact=1&queue=mail") == [first, soon, late]


def test_dead_letters_of_a_kind_are_listed_the_last_one_first(admin_client: Client) -> None:
    mine = [dead() for _ in range(4)]
    selected(*mine).update(error_fingerprint="boom")
    dead()
    query = f"?status__exact=4&type={TYPE}&fingerprint=boom"
    assert joined(through(admin_client, query)) == mine[::-1]
    assert "error" in words(job_list(admin_client, query).content.decode())


def test_what_matches_seldom_is_looked_for_piece_by_piece(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelist, "LOOK", 10)
    old = enqueue(queue="mail")
    many(25)
    first = job_list(admin_client, "?queue=mail")
    assert list(first.context["cl"].result_list) == []
    assert "10 jobs were looked through" in words(first.content.decode())
    pages = through(admin_client, "?queue=mail")
    assert pages == [[], [], [old]]


def test_pages_that_fill_before_the_bound_say_nothing_of_it(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelist, "LOOK", 10)
    jobs = many(25, queue="mail")[::-1]
    assert joined(through(admin_client, "?queue=mail")) == jobs
    assert "looked through" not in words(job_list(admin_client, "?queue=mail").content.decode())


def test_going_back_through_pieces_finds_what_going_on_found(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelist, "LOOK", 4)
    jobs = [enqueue(queue="mail" if n % 5 == 0 else "other") for n in range(20)]
    wanted = [job for job in jobs if job.queue == "mail"][::-1]
    assert joined(through(admin_client, "?queue=mail")) == wanted
    back = through(admin_client, last_address(admin_client, "?queue=mail"), "newer_url")
    assert joined(back[::-1]) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?status__exact=1",
        "?status__exact=4",
        "?queue=default",
        "?q=n=7",
        "?q=tests",
        "?due=now&worker=w-1",
    ],
)
def test_a_page_takes_few_queries_and_counts_nothing(person: Person, query: str) -> None:
    many(5)
    client = person("view_job", "retry_job", "cancel_job")
    with CaptureQueriesContext(connection) as captured:
        assert job_list(client, query).status_code == 200
    assert len(captured) <= 12
    assert not [one for one in captured if "COUNT(" in one["sql"]]
    asked = [one["sql"] for one in captured if 'FROM "django_jobqueue_job"' in one["sql"]]
    assert [sql for sql in asked if "LIMIT" not in sql] == []


@pytest.mark.parametrize(
    "place", ["after=nonsense", "before=W10", "after=WyJ4Il0", "after=%00", "after=bnVsbA"]
)
def test_a_place_that_no_page_wrote_is_refused(admin_client: Client, place: str) -> None:
    assert job_list(admin_client, f"?{place}").status_code == 302


def test_a_key_is_read_as_it_was_written() -> None:
    job = enqueue()
    assert NEWEST.read(NEWEST.write(NEWEST.key(job))) == (job.pk,)
    with pytest.raises(BadKey):
        NEWEST.read("")


def test_filters_lead_to_the_first_page_and_links_keep_the_filters(admin_client: Client) -> None:
    many(7)
    older = job_list(admin_client, "?queue=default").context["cl"].older_url
    html = job_list(admin_client, older).content.decode()
    assert "queue=default" in older
    assert 'href="?queue=default&amp;status__exact=4"' in html


def test_due_overdue_and_later(admin_client: Client) -> None:
    later, due, overdue = enqueue(run_after=timedelta(hours=1)), enqueue(), enqueue()
    selected(overdue).update(run_after=ago(120))
    in_status(DONE)
    assert listed(admin_client, "?due=now") == [overdue, due]
    assert listed(admin_client, "?due=overdue") == [overdue]
    assert listed(admin_client, "?due=later") == [later]
    assert len(listed(admin_client, "?due=nonsense")) == 3  # a page full


def test_with_or_without_a_dedupe_key_and_by_worker(admin_client: Client) -> None:
    keyed, plain = enqueue(dedupe_key="k"), enqueue()
    assert listed(admin_client, "?keyed=1") == [keyed]
    assert listed(admin_client, "?keyed=0") == [plain]
    held = claim(worker_id="w-9")
    assert listed(admin_client, "?worker=w-9") == held
    assert listed(admin_client, "?worker=w-9&status__exact=2") == held


def test_payloads_are_searched_by_key_and_value(admin_client: Client) -> None:
    seven = enqueue({"n": 7, "to": {"city": "Köln", "ok": True}, "a.b": "x"})
    enqueue({"n": 77, "to": {"city": "Bonn"}})
    for term in ("n=7", " n = 7", "to.city=Köln", "to.ok=true", "a.b=x"):
        assert listed(admin_client, f"?q={term}") == [seven], term
    assert listed(admin_client, "?q=n=70") == listed(admin_client, "?q=city=Bonn") == []
    assert listed(admin_client, "?q=n=7&queue=other") == []


def test_payloads_are_looked_into_up_to_a_bound(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = enqueue({"n": 7})
    many(5, queue="other")
    monkeypatch.setattr(search, "LOOK_INTO_PAYLOADS", 5)
    html = words(job_list(admin_client, "?q=n=7").content.decode())
    assert "5 jobs were looked through" in html
    assert joined(through(admin_client, "?q=n=7"))[-1] == job


def test_a_hidden_key_cannot_be_guessed_by_searching(admin_client: Client, settings: Any) -> None:
    settings.JOBQUEUE |= {"REDACT": ["password"]}
    enqueue({"password": "hunter22", "inner": {"Password": "x"}})
    for term in ("password=hunter22", "inner.Password=x"):
        response = job_list(admin_client, f"?q={term}")
        assert list(response.context["cl"].result_list) == []
        assert "cannot be searched" in told(response)[0]


def test_the_active_holder_of_a_key_is_named_however_old_it_is(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = enqueue(dedupe_key="report-7")
    many(5)
    monkeypatch.setattr(search, "LOOK", 2)
    html = job_list(admin_client, "?q=report-7").content.decode()
    assert reverse("admin:django_jobqueue_job_change", args=[holder.pk]) in html


def test_workers_are_offered_by_where_they_run(admin_client: Client) -> None:
    facts = {"host": "web-1", "queues": None, "capacity": 8, "version": "1.0"}
    Worker.objects.beat(
        [WorkerFacts("deadbeef0001", pid=7, **facts), WorkerFacts("beefdead0002", pid=9, **facts)]
    )
    offered = words(job_list(admin_client, "?worker=gone").content.decode())
    places = ["gone", "web-1:7 (deadbeef)", "web-1:9 (beefdead)"]
    assert [offered.count(place) for place in places] == [1, 1, 1]
    assert sorted(places, key=offered.index) == places
