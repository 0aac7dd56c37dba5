"""``outbox``: one message is sent to its webhook, until the receiver has said that it has it."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from django_jobqueue import DeadJob, Retry, RetryJob, job
from testproject.reports.models import Report

from .models import OutboxMessage
from .posting import Answer, NotDelivered, address, post

#: Refusals that are about now, not about the message.
_LATER = {408, 425, 429}


@job(
    "outbox",
    queue="outbox",
    max_attempts=8,
    retry=Retry(base=1, cap=300),
    never_retry=[OutboxMessage.DoesNotExist, ValidationError, ValueError],
    dedupe_key=lambda message_id: f"outbox:{message_id}",
)
def deliver(message_id: str) -> dict[str, str]:
    """POST the message with its id as the Idempotency-Key.

    If the worker dies between the receiver's answer and ours being stored, the message is sent again: with
    the same key, so a receiver that honours it takes the message once.
    """
    message = OutboxMessage.objects.get(pk=message_id)
    if message.delivered_at is not None:
        return {"answer": "delivered before"}
    answer = send(message)
    if answer.status >= 500:
        raise NotDelivered(f"{message.url} answered {answer}")
    if answer.status in _LATER:
        raise RetryJob(answer.retry_after, f"{message.url} answered {answer}")
    if answer.status >= 300:
        raise DeadJob(f"{message.url} refused the message: {answer}")
    OutboxMessage.objects.filter(pk=message.pk).update(delivered_at=timezone.now())
    return {"answer": str(answer)}


def send(message: OutboxMessage) -> Answer:
    """One try. Raises ``NotDelivered`` where there is no answer."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(message.pk)}
    body = json.dumps({"event": message.event, **message.body}).encode()
    return post(message.url, body, headers, settings.OUTBOX_TIMEOUT)


def leave(url: str, event: str, body: dict[str, Any], report: Report | None = None) -> OutboxMessage:
    """Write a message and the job that delivers it, in the transaction of whatever the message tells of.

    Raises ``ValueError`` for what is no http or https URL.
    """
    address(url)
    with transaction.atomic():
        message = OutboxMessage.objects.create(url=url, event=event, body=body, report=report)
        deliver.enqueue(message_id=str(message.pk))
    return message
