"""Messages that leave, and the receipts of those that arrive."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone


class OutboxMessage(models.Model):
    """A message to a webhook, written in the transaction whose news it is. Its id is the idempotency key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    url = models.CharField(max_length=500)
    event = models.CharField(max_length=100)
    body = models.JSONField(default=dict)
    report = models.ForeignKey(
        "reports.Report", models.CASCADE, related_name="messages", null=True, blank=True
    )
    created_at = models.DateTimeField(default=timezone.now)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="outbox_message_created")]

    def __str__(self) -> str:
        return f"{self.event} to {self.url}"


class Delivery(models.Model):
    """The receiver's side: a message that arrived. However often it is sent, it is here once."""

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=200, unique=True)
    receiver = models.CharField(max_length=50)
    body = models.JSONField(default=dict)
    received_at = models.DateTimeField(default=timezone.now)
    repeats = models.IntegerField(default=0)

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = [models.Index(fields=["received_at"], name="outbox_delivery_received")]

    def __str__(self) -> str:
        return f"{self.key} at {self.receiver}"
