"""The other two lists: queues can be paused, workers can be looked at."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from django_jobqueue.managers import WorkerFacts
from django_jobqueue.models import Queue, Worker
from tests.admin.conftest import Person
from tests.admin.pages import INLINE, QUEUES, WORKERS, act, told, words
from tests.moves.factories import claim, enqueue

pytestmark = pytest.mark.django_db

FACTS = WorkerFacts(id="w-1", host="web-1", pid=4711, queues=None, capacity=8, version="1.0")
ADD = "admin:django_jobqueue_queue_add"


def paused(*names: str) -> list[Queue]:
    for name in names:
        Queue.objects.pause(name)
    return list(Queue.objects.filter(name__in=names).order_by("name"))


def test_a_queue_is_paused_by_its_name(admin_client: Client) -> None:
    enqueue(queue="mail")
    response = admin_client.post(reverse(ADD), {"name": "mail", "paused": "on"})
    assert response.status_code == 302
    assert Queue.objects.get().paused
    assert claim() == []


def test_paused_queues_are_resumed_and_paused_again(admin_client: Client) -> None:
    enqueue(queue="mail")
    queues = paused("mail", "reports")
    assert told(act(admin_client, "resume", queues, page=QUEUES)) == ["2 queues are resumed."]
    assert not Queue.objects.filter(paused=True).exists()
    assert told(act(admin_client, "pause", queues[:1], page=QUEUES)) == ["1 queue is paused."]
    assert claim() == []
    assert LogEntry.objects.count() == 3


def test_a_queue_that_is_not_declared_is_refused_and_named(admin_client: Client, settings: Settings) -> None:
    queues = paused("mail", "old")
    settings.JOBQUEUE |= {"QUEUES": ["mail"]}
    refused, done = told(act(admin_client, "resume", queues, page=QUEUES))
    assert "'old' is not one of those declared" in refused
    assert done == "1 queue is resumed."
    html = admin_client.post(reverse(ADD), {"name": "new"}).content.decode()
    assert "is not one of those declared" in html
    assert not Queue.objects.filter(name="new").exists()


def test_pausing_takes_its_own_permission(person: Person) -> None:
    queues = paused("mail")
    client = person("view_queue")
    act(client, "resume", queues, page=QUEUES)
    assert Queue.objects.get().paused
    assert client.get(reverse(ADD)).status_code == 403


def test_whoever_may_pause_may_resume(person: Person) -> None:
    queues = paused("mail")
    act(person("view_queue", "pause_queue"), "resume", queues, page=QUEUES)
    assert not Queue.objects.get().paused


def test_a_queue_has_a_page_to_read(admin_client: Client, person: Person) -> None:
    paused("mail")
    page = reverse("admin:django_jobqueue_queue_change", args=["mail"])
    html = person("view_queue").get(page).content.decode()
    assert "Name: mail" in words(html)
    assert 'name="_save"' not in html
    assert admin_client.post(reverse("admin:django_jobqueue_queue_delete", args=["mail"])).status_code == 403


def test_a_queue_keeps_its_finished_jobs_for_as_long_as_its_page_says(admin_client: Client) -> None:
    paused("mail")
    page = reverse("admin:django_jobqueue_queue_change", args=["mail"])
    assert admin_client.post(page, {"kept_days": "1.5"}).status_code == 302
    queue = Queue.objects.get()
    assert (queue.retention, queue.paused) == (timedelta(hours=36), True)
    assert 'value="1.5"' in admin_client.get(page).content.decode()
    assert admin_client.post(page, {"kept_days": ""}).status_code == 302
    assert Queue.objects.get().retention is None
    assert "greater than or equal to 0" in admin_client.post(page, {"kept_days": "-1"}).content.decode()
    assert LogEntry.objects.count() == 2


def test_a_queue_gets_a_row_with_a_retention_and_is_not_paused_by_it(person: Person) -> None:
    client = person("view_queue", "set_queue_retention")
    html = client.get(reverse(ADD)).content.decode()
    assert 'name="kept_days"' in html
    assert 'name="paused"' not in html
    assert client.post(reverse(ADD), {"name": "mail", "kept_days": "2", "paused": "on"}).status_code == 302
    queue = Queue.objects.get()
    assert (queue.retention, queue.paused) == (timedelta(days=2), False)


def test_whoever_may_only_pause_sets_no_retention(person: Person) -> None:
    client = person("view_queue", "pause_queue")
    assert client.post(reverse(ADD), {"name": "mail", "kept_days": "2", "paused": "on"}).status_code == 302
    queue = Queue.objects.get()
    assert (queue.retention, queue.paused) == (None, True)
    page = reverse("admin:django_jobqueue_queue_change", args=["mail"])
    assert client.post(page, {"kept_days": "2"}).status_code == 403


def test_workers_are_asked_to_stop(admin_client: Client) -> None:
    Worker.objects.beat([FACTS])
    workers = list(Worker.objects.all())
    assert told(act(admin_client, "stop", workers, page=WORKERS)) == ["1 worker was asked to stop."]
    assert Worker.objects.beat_again({"w-1": 1.0}) == {"w-1": True}
    assert LogEntry.objects.get().change_message == "Asked to stop"


def test_asking_a_worker_to_stop_takes_its_own_permission(person: Person) -> None:
    Worker.objects.beat([FACTS])
    act(person("view_worker"), "stop", Worker.objects.all(), page=WORKERS)
    assert Worker.objects.get().stop_requested_at is None


def test_workers_are_listed_with_what_they_serve(admin_client: Client) -> None:
    one = WorkerFacts(id="w-1", host="web-1", pid=4711, queues=None, capacity=8, version="1.0")
    two = WorkerFacts(id="w-2", host="web-2", pid=4712, queues=["mail", "reports"], capacity=4, version="1.0")
    Worker.objects.beat([one, two])
    html = admin_client.get(reverse(WORKERS)).content.decode()
    assert "web-1:4711 all 8 1.0" in words(html)
    assert "web-2:4712 mail, reports 4 1.0" in words(html)
    assert not INLINE.search(html)


def test_a_worker_can_only_be_looked_at(admin_client: Client) -> None:
    facts = WorkerFacts(id="w-1", host="web-1", pid=4711, queues=None, capacity=8, version="1.0")
    Worker.objects.beat([facts])
    html = admin_client.get(reverse("admin:django_jobqueue_worker_change", args=["w-1"])).content.decode()
    assert "web-1" in html
    assert 'name="_save"' not in html
    assert admin_client.get(reverse("admin:django_jobqueue_worker_add")).status_code == 403
    assert admin_client.post(reverse("admin:django_jobqueue_worker_delete", args=["w-1"])).status_code == 403
