"""outbox: real HTTP, to receivers of all kinds."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from django_jobqueue.models import Job, JobStatus
from testproject.outbox.jobs import deliver, leave, send
from testproject.outbox.models import Delivery, OutboxMessage

from .conftest import Receiver, make_due

pytestmark = pytest.mark.django_db(transaction=True)

Run = Callable[..., int]


def the_job() -> Job:
    return Job.objects.get(job_type="outbox")


def test_a_message_is_posted_with_its_id_as_the_idempotency_key(receiver: Receiver, run_due: Run) -> None:
    message = leave(f"{receiver.url}?x=1", "tested", {"number": 1})
    run_due()
    message.refresh_from_db()
    (request,) = receiver.requests
    assert (request.path, request.key) == ("/hook/?x=1", str(message.pk))
    assert json.loads(request.body) == {"event": "tested", "number": 1}
    assert the_job().status == JobStatus.DONE
    assert message.delivered_at


def test_a_message_and_its_job_are_rolled_back_together() -> None:
    with transaction.atomic():
        leave("http://receiver.example/", "tested", {})
        transaction.set_rollback(True)
    assert not OutboxMessage.objects.exists()
    assert not Job.objects.exists()


@pytest.mark.parametrize("status", [500, 503])
def test_an_answer_of_5xx_is_tried_again_with_the_same_key(
    status: int, receiver: Receiver, run_due: Run
) -> None:
    receiver.answers = [status, 200]
    leave(receiver.url, "tested", {})
    assert run_due() == 1
    job = the_job()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 1)
    assert f"answered {status}" in job.last_error
    make_due()
    assert run_due() == 1
    assert (the_job().status, len({request.key for request in receiver.requests})) == (JobStatus.DONE, 1)


@pytest.mark.parametrize("status", [301, 400, 404, 410])
def test_a_refusal_is_a_dead_letter_at_once_and_can_be_repaired(
    status: int, receiver: Receiver, run_due: Run
) -> None:
    receiver.answers = [status, 200]
    receiver.headers = {"Location": receiver.url}
    message = leave(receiver.url, "tested", {})
    run_due()
    job = the_job()
    assert (job.status, job.attempts, len(receiver.requests)) == (JobStatus.DEAD, 1, 1)
    assert str(status) in job.last_error
    assert Job.objects.filter(job_type="outbox", status=JobStatus.DEAD).retry().done == 1
    run_due()
    message.refresh_from_db()
    assert the_job().status == JobStatus.DONE
    assert message.delivered_at


@pytest.mark.parametrize("status", [408, 429])
def test_a_refusal_for_now_is_tried_again_when_the_receiver_says(
    status: int, receiver: Receiver, run_due: Run
) -> None:
    receiver.answers = [status, 200]
    receiver.headers = {"Retry-After": "1800"}
    leave(receiver.url, "tested", {})
    run_due()
    job = the_job()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 1)
    assert 1_790 < (job.run_after - job.updated_at).total_seconds() < 1_810


def test_a_receiver_that_does_not_answer_in_time_is_tried_again(
    receiver: Receiver, run_due: Run, settings: Settings
) -> None:
    settings.OUTBOX_TIMEOUT = 0.2
    receiver.answers = [0, 200]
    leave(receiver.url, "tested", {})
    run_due()
    assert the_job().status == JobStatus.PENDING
    assert "timed out" in the_job().last_error
    make_due()
    run_due()
    assert the_job().status == JobStatus.DONE


def test_a_receiver_that_is_not_there_is_tried_again_until_no_attempt_is_left(
    closed_port: int, run_due: Run
) -> None:
    leave(f"http://127.0.0.1:{closed_port}/", "tested", {})
    for _ in range(8):
        assert the_job().status == JobStatus.PENDING
        make_due()
        assert run_due() == 1
    job = the_job()
    assert (job.status, len(job.errors)) == (JobStatus.DEAD, 8)
    assert "ConnectionRefusedError" in job.last_error


@pytest.mark.parametrize("message_id", ["5f2f1e4a-0000-4000-8000-000000000000", "no id"])
def test_a_message_that_is_gone_is_dead_at_once(message_id: str, run_due: Run) -> None:
    deliver.enqueue(message_id=message_id)
    run_due()
    assert (the_job().status, the_job().attempts) == (JobStatus.DEAD, 1)


def test_a_message_that_was_delivered_is_not_sent_again(receiver: Receiver, run_due: Run) -> None:
    message = leave(receiver.url, "tested", {})
    run_due()
    deliver.enqueue(message_id=str(message.pk))
    run_due()
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://host.example/",
        "file:///etc/passwd",
        "http://",
        "javascript:alert(1)",
        "http://a/ b",
        "http://a:0/",
    ],
)
def test_only_http_and_https_addresses_get_messages(url: str) -> None:
    with pytest.raises(ValueError, match="no http or https address"):
        leave(url, "tested", {})


def test_the_sites_own_receiver_takes_a_message_once_however_often_it_is_sent(
    live_server: LiveServer, run_due: Run
) -> None:
    message = leave(f"{live_server.url}/webhook/library/", "tested", {"number": 1})
    # A worker that dies after the answer and before it is stored: sent, and nobody knows.
    assert send(message).status == 201
    run_due()
    assert the_job().result == {"answer": "200 OK"}
    delivery = Delivery.objects.get()
    assert (delivery.key, delivery.receiver, delivery.repeats) == (str(message.pk), "library", 1)
    assert delivery.body == {"event": "tested", "number": 1}


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b"{}", ""),
        (b"{}", "k" * 201),
        (b"{", "k"),
        (b"[]", "k"),
        (b'{"a": NaN}', "k"),
        (b'{"a": "\\u0000"}', "k"),
        (b'{"a": "\\ud800"}', "k"),
        (b"\xff", "k"),
        (b"[" * 100_000, "k"),
    ],
)
def test_the_receiver_refuses_what_is_no_message(body: bytes, key: str, client: Client) -> None:
    answer = client.post("/webhook/x/", body, "application/json", headers={"Idempotency-Key": key})
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert not Delivery.objects.exists()


def test_the_receiver_answers_posts_only(client: Client) -> None:
    assert client.get("/webhook/x/").status_code == 405
