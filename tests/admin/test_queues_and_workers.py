"""The other two lists: queues can be paused, workers can be looked at."""

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

ADD = "admin:django_jobqueue_queue_add"


def paused(*names: str) -> list[Queue]:
    for name in names:
        Queue.objects.pause(name)
    return list(Queue.objects.filter(name__in=names).order_by("name"))


def test_a_queue_is_paused_by_its_name(admin_client: Client) -> None:
    enqueue(queue="mail")
    response = admin_client.post(reverse(ADD), {"name": "mail"})
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


def test_a_queue_has_a_page_to_read(admin_client: Client) -> None:
    paused("mail")
    page = reverse("admin:django_jobqueue_queue_change", args=["mail"])
    html = admin_client.get(page).content.decode()
    assert "Name: mail" in words(html)
    assert 'name="_save"' not in html
    assert admin_client.post(reverse("admin:django_jobqueue_queue_delete", args=["mail"])).status_code == 403


def test_workers_are_listed_with_what_they_serve(admin_client: Client) -> None:
    one = WorkerFacts(id="w-1", host="web-1", pid=4711, queues=None, capacity=8, version="1.0")
    two = WorkerFacts(id="w-2", host="web-2", pid=4712, queues=["mail", "reports"], capacity=4, version="1.0")
    Worker.objects.beat([one, two])
    html = admin_client.get(reverse(WORKERS)).content.decode()
    assert "w-1 web-1 4711 all 8 1.0" in words(html)
    assert "w-2 web-2 4712 mail, reports 4 1.0" in words(html)
    assert not INLINE.search(html)


def test_a_worker_can_only_be_looked_at(admin_client: Client) -> None:
    facts = WorkerFacts(id="w-1", host="web-1", pid=4711, queues=None, capacity=8, version="1.0")
    Worker.objects.beat([facts])
    html = admin_client.get(reverse("admin:django_jobqueue_worker_change", args=["w-1"])).content.decode()
    assert "web-1" in html
    assert 'name="_save"' not in html
    assert admin_client.get(reverse("admin:django_jobqueue_worker_add")).status_code == 403
    assert admin_client.post(reverse("admin:django_jobqueue_worker_delete", args=["w-1"])).status_code == 403
