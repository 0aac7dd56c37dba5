"""Short ways to the pages of the admin and back."""

import re
from collections.abc import Iterable
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.test import Client
from django.urls import reverse

from django_jobqueue.models import Job, Queue

JOBS = "admin:django_jobqueue_job_changelist"
QUEUES = "admin:django_jobqueue_queue_changelist"
WORKERS = "admin:django_jobqueue_worker_changelist"

#: What a Content-Security-Policy of 'self' forbids.
INLINE = re.compile(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=|javascript:")


def job_list(client: Client, query: str = "") -> Any:
    return client.get(f"{reverse(JOBS)}{query}")


def listed(client: Client, query: str = "") -> list[Job]:
    """The jobs that the list shows, in its order."""
    response = job_list(client, query)
    assert response.status_code == 200, response
    return list(response.context["cl"].result_list)


def job_page(client: Client, job: Job) -> str:
    response = client.get(reverse("admin:django_jobqueue_job_change", args=[job.pk]))
    assert response.status_code == 200
    return str(response.content.decode())


def words(html: str) -> str:
    """What a reader sees, with single spaces."""
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def act(client: Client, action: str, rows: Iterable[Job | Queue], *, page: str = JOBS, **more: Any) -> Any:
    """Choose an action for the rows selected; the answer is the page that follows."""
    address = reverse(page) + more.pop("query", "")
    data = {"action": action, ACTION_CHECKBOX_NAME: [row.pk for row in rows], **more}
    return client.post(address, data, follow=True)


def told(response: Any) -> list[str]:
    """The messages that the person gets."""
    return [str(message) for message in response.context["messages"]]
