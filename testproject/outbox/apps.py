"""Messages that leave exactly when what they tell of is committed."""

from __future__ import annotations

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """The app."""

    name = "testproject.outbox"
