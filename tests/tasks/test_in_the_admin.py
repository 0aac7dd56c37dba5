"""A task's job in the admin: what it says of it, what it hides, and what may be written into it."""

import json
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from django_jobqueue.admin.job_page import url
from django_jobqueue.models import Job
from django_jobqueue.redaction import HIDDEN
from tests.admin.pages import job_page, listed, words
from tests.tasks import sample

pytestmark = pytest.mark.django_db

SECRETS = ("hunter22", "code-one", "code-two")


@pytest.fixture
def failed(run: Any) -> Job:
    """Its secrets stand in its arguments by position only, and in what it raised."""
    return Job.objects.get(pk=run(sample.login.enqueue("ada", *SECRETS)).id)


def edit(client: Client, job: Job, payload: Any) -> str:
    address = url(job, "payload")
    response = client.post(address, {"payload": json.dumps(payload)}, follow=True)
    return str(response.content.decode())


def test_the_options_in_force_are_those_of_the_task(admin_client: Client, failed: Job) -> None:
    shown = words(job_page(admin_client, failed))
    assert "Retry(base=7, factor=2, cap=60, jitter=0.1)" in shown
    assert "timeout: 30 s, expires_after: 300 s" in shown


def test_what_a_call_said_of_its_options_is_shown(admin_client: Client) -> None:
    result = sample.login.using(timeout=12, dedupe_key="k", dedupe="replace").enqueue("ada")
    shown = words(job_page(admin_client, Job.objects.get(pk=result.id)))
    assert "timeout: 12 s" in shown


def test_hidden_arguments_without_a_name_are_hidden_in_errors_and_pages(
    admin_client: Client, run: Any, settings: Settings
) -> None:
    settings.JOBQUEUE = {"REDACT": ["password", "codes"]}
    job = Job.objects.get(pk=run(sample.login.enqueue("ada", *SECRETS)).id)
    for text in (json.dumps(job.errors), job.last_error, job_page(admin_client, job)):
        assert "ada may not come in with" in text
        assert not [secret for secret in SECRETS if secret in text]

    edit(admin_client, job, {"args": ["eve", HIDDEN, HIDDEN, "new"], "kwargs": {}})
    assert Job.objects.get(pk=job.pk).payload["args"] == ["eve", "hunter22", "code-one", "new"]


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({"args": "abc", "kwargs": {}}, "of a task must be"),
        ({"args": [], "kwargs": None}, "of a task must be"),
        ({"user": "ada"}, "of a task must be"),
        ({"args": [], "kwargs": {"password": "x"}}, "missing a required argument"),
        ({"args": ["ada"], "kwargs": {"nobody": 1}}, "unexpected keyword argument"),
    ],
)
def test_what_the_task_could_not_take_is_refused(
    admin_client: Client, failed: Job, payload: Any, problem: str
) -> None:
    assert problem in edit(admin_client, failed, payload)
    assert Job.objects.get(pk=failed.pk).payload == failed.payload


def test_the_list_is_searched_by_the_arguments_of_a_task(admin_client: Client, settings: Settings) -> None:
    named = sample.noop.enqueue("ada", user_id=7)
    sample.noop.enqueue("eve", user_id=8)
    assert [str(job.pk) for job in listed(admin_client, "?q=user_id%3D7")] == [named.id]
    assert [str(job.pk) for job in listed(admin_client, "?q=args.0%3Dada")] == [named.id]

    settings.JOBQUEUE = {"REDACT": ["password"]}
    assert listed(admin_client, "?q=args.0%3Dada") == []


def test_all_arguments_may_be_hidden(admin_client: Client, failed: Job, settings: Settings) -> None:
    settings.JOBQUEUE = {"REDACT": ["args", "password", "codes", "user"]}
    shown = job_page(admin_client, failed)
    assert HIDDEN in shown
    assert not [secret for secret in SECRETS if secret in words(shown)]
