"""The dashboard: what it shows, to whom, and what can be done from there."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from django_jobqueue.managers import Tally, WorkerFacts
from django_jobqueue.models import Job, Queue, Statistic, Worker
from tests.admin.conftest import Person
from tests.admin.pages import INLINE, words
from tests.moves.factories import WORKER, ago, claimed, dead, enqueue, selected

pytestmark = pytest.mark.django_db

PAGE = "/admin/django_jobqueue/dashboard/"
ACT = "/admin/django_jobqueue/dashboard/act/"
EVIL = "<script>alert(1)</script>\u202e\"'&"


def page(client: Client, query: str = "") -> str:
    response = client.get(f"{PAGE}{query}")
    assert response.status_code == 200
    return str(response.content.decode())


def beat(**given: Any) -> None:
    facts = {"host": "box", "pid": 4711, "queues": None, "capacity": 8, "version": "1.2.3", **given}
    Worker.objects.beat([WorkerFacts(WORKER, **facts)])


def ended(queue: str = "mail", *, done: int = 12, failed: int = 0, died: int = 0) -> None:
    tally = Tally(done=done, failed=failed, dead=died)
    tally.took(waited=2.0, ran=0.3)
    Statistic.objects.add([(queue, tally)])


def act(client: Client, deed: str, name: str, **more: str) -> Any:
    return client.post(ACT, {"deed": deed, "name": name, **more}, follow=True)


def test_it_stands_in_the_list_of_the_app(admin_client: Client) -> None:
    assert reverse("admin:django_jobqueue_dashboard_changelist") == PAGE
    html = admin_client.get("/admin/django_jobqueue/").content.decode()
    assert f'href="{PAGE}"' in html


def test_queues_are_shown_with_their_figures_and_where_these_lead(admin_client: Client) -> None:
    beat()
    dead(queue="mail")
    claimed(queue="mail", worker_id=WORKER)
    selected(enqueue(queue="mail")).update(run_after=ago(100))
    ended(done=600, failed=4)
    html = page(admin_client)
    assert "1 worker" in words(html)
    assert "for 1 min 40 s" in words(html)
    assert "95 %: 3.9 s" in words(html)
    assert "4 failed" in words(html)
    for status in (1, 2, 4):
        assert f'href="/admin/django_jobqueue/job/?status__exact={status}&amp;queue=mail"' in html
        assert (
            admin_client.get(f"/admin/django_jobqueue/job/?status__exact={status}&queue=mail").status_code
            == 200
        )


def test_workers_are_shown_with_what_they_run(admin_client: Client) -> None:
    beat(exclude_queues=["slow"])
    job = claimed(job_type="tests:thumbnail")
    html = page(admin_client)
    assert "box:4711 ▶ working" in words(html)
    assert "1 / 8" in words(html)
    assert "all but slow" in words(html)
    assert f'href="/admin/django_jobqueue/job/{job.pk}/change/">tests:thumbnail</a>' in html


def test_an_empty_queue_has_a_page_too(admin_client: Client) -> None:
    html = page(admin_client)
    assert "There is no job, and no queue is declared." in words(html)
    assert "No worker has been heard of for a day." in words(html)
    assert "Nothing has ended in this time." in words(html)


def test_warnings_are_told_by_words(admin_client: Client) -> None:
    enqueue(queue="mail")
    html = page(admin_client)
    assert '<li class="error" data-code="no-worker">No worker serves the queue mail' in html


@pytest.mark.parametrize(("query", "columns"), [("", 60), ("?period=day", 144), ("?period=week", 168)])
def test_charts_are_svg_with_a_text_for_each_step(admin_client: Client, query: str, columns: int) -> None:
    ended(done=600, failed=5, died=2)
    html = page(admin_client, query)
    assert html.count("preserveAspectRatio") == 3
    assert html.count("<title>") == 3 * columns + 1
    assert "to be tried again 3" in html
    assert 'aria-label="Done per minute: at most' in html
    assert 'class="jobqueue-bar-dead"' in html


def test_what_is_no_period_is_an_hour(admin_client: Client) -> None:
    assert page(admin_client, "?period=year").count("<title>") == 3 * 60 + 1


def test_the_charts_can_be_those_of_one_queue(admin_client: Client) -> None:
    ended("mail", done=600)
    ended("other", done=6_000)
    html = page(admin_client, "?queue=mail")
    assert "What ended in the queue mail" in words(html)
    assert "done 600" in html
    assert "done 6,600" not in html
    assert "done 6,600" in page(admin_client)


def test_only_what_changes_is_sent_when_only_that_is_asked_for(admin_client: Client) -> None:
    html = page(admin_client, "?part=content&period=day")
    assert "<html" not in html
    assert "jobqueue-charts" in html
    assert admin_client.get(f"{PAGE}?part=content").headers["Cache-Control"].startswith("max-age=0")


def test_names_are_escaped_and_nothing_is_inline(admin_client: Client) -> None:
    enqueue(queue=EVIL, job_type=f"tests:{EVIL}")
    claimed(queue="other", job_type=f"tests:{EVIL}", worker_id=WORKER)
    beat(host=EVIL, version="<b>", queues=[EVIL])
    ended(EVIL)
    Queue.objects.pause(EVIL)
    html = page(admin_client, f"?queue={EVIL}")
    assert escape(EVIL) in html
    assert "<script>alert" not in html
    assert "<b>" not in html
    assert not INLINE.search(html)


def test_a_queue_is_paused_and_resumed_with_one_button_each(admin_client: Client) -> None:
    enqueue(queue="mail")
    response = act(admin_client, "pause", "mail", period="day", queue="mail")
    assert "The queue mail is paused" in response.content.decode()
    assert response.redirect_chain == [(f"{PAGE}?period=day&queue=mail", 302)]
    assert Queue.objects.get().paused
    assert 'value="resume"' in page(admin_client)
    act(admin_client, "resume", "mail")
    assert not Queue.objects.get().paused
    assert [str(entry.change_message) for entry in LogEntry.objects.order_by("pk")] == ["Paused", "Resumed"]


def test_a_worker_is_asked_to_stop(admin_client: Client) -> None:
    beat()
    response = act(admin_client, "stop", WORKER)
    assert "The worker box:4711 was asked to stop." in response.content.decode()
    assert Worker.objects.beat_again({WORKER: 1.0}) == {WORKER: True}
    assert "◼ stopping" in words(page(admin_client))
    assert LogEntry.objects.get().change_message == "Asked to stop"


def test_a_worker_that_is_gone_is_told(admin_client: Client) -> None:
    assert "The worker nobody is gone already." in act(admin_client, "stop", "nobody").content.decode()
    assert not LogEntry.objects.exists()


def test_a_queue_that_is_not_declared_is_refused_in_words(admin_client: Client, settings: Any) -> None:
    settings.JOBQUEUE |= {"QUEUES": ["mail"]}
    response = act(admin_client, "pause", "new")
    assert "is not one of those declared" in response.content.decode()
    assert not Queue.objects.exists()


def test_looking_takes_a_permission(person: Person) -> None:
    client = person("view_job", "view_queue", "view_worker", "pause_queue", "stop_worker")
    assert client.get(PAGE).status_code == 403
    assert client.post(ACT, {"deed": "pause", "name": "mail"}).status_code == 403
    assert Client().get(PAGE).status_code == 302


def test_who_may_only_look_sees_no_button_and_a_forged_post_is_refused(person: Person) -> None:
    beat()
    job = claimed(queue="mail")
    client = person("view_dashboard")
    html = page(client)
    assert "mail" in html
    assert '<button type="button"' in html
    assert "<form" not in html.partition('id="jobqueue-dashboard"')[2].partition("</main>")[0]
    assert str(job.pk) not in html
    assert "/job/?" not in html
    for deed, name in (("pause", "mail"), ("resume", "mail"), ("stop", WORKER), ("burn", "mail")):
        assert client.post(ACT, {"deed": deed, "name": name}).status_code == 403
    assert not Queue.objects.exists()
    assert Worker.objects.get().stop_requested_at is None


def test_each_deed_takes_its_own_permission(person: Person) -> None:
    beat()
    client = person("view_dashboard", "pause_queue")
    enqueue(queue="mail")
    html = page(client)
    assert 'value="pause"' in html
    assert 'value="stop"' not in html
    assert client.post(ACT, {"deed": "stop", "name": WORKER}).status_code == 403
    assert client.post(ACT, {"deed": "pause", "name": "mail"}).status_code == 302


def test_nothing_is_done_by_get_or_without_a_token(admin_user: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    assert client.get(f"{ACT}?deed=pause&name=mail").status_code == 405
    assert client.post(ACT, {"deed": "pause", "name": "mail"}).status_code == 403
    assert not Queue.objects.exists()


def test_the_page_takes_at_most_twelve_queries_whoever_looks(admin_client: Client, person: Person) -> None:
    beat()
    Job.objects.enqueue_many([("tests:any", {}) for _ in range(50)])
    for number in range(20):
        enqueue(queue=f"q{number}", priority=number)
        ended(f"q{number}")
    dead()
    claimed()
    for client in (admin_client, person("view_dashboard", "view_job", "pause_queue", "stop_worker")):
        with CaptureQueriesContext(connection) as made:
            page(client)
        assert len(made) <= 12, [one["sql"] for one in made]
