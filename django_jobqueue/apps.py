"""Wiring: load the handlers, register the checks."""

from __future__ import annotations

import contextlib
from typing import Any

from django.apps import AppConfig
from django.db import connections, router
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class JobQueueConfig(AppConfig):
    """The app."""

    name = "django_jobqueue"
    label = "django_jobqueue"
    verbose_name = _("Job queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load every app's ``jobs.py``, as the admin does with ``admin.py``.

        Web processes know the types too, so a wrong name is refused where it is enqueued.
        """
        from . import (
            checks,  # noqa: F401 - registers the checks
            registry,
        )

        with contextlib.suppress(ImportError):  # Django 5.2 without the backport: there are no Tasks
            from .backend.types import resolve

            registry.resolve_by(resolve)
        post_migrate.connect(_prepare_database, sender=self)
        autodiscover_modules("jobs")


def _prepare_database(using: str, **kwargs: Any) -> None:
    """Not a migration: test runs without migrations need it too."""
    from .databases import database_for, is_supported
    from .models import Job

    connection = connections[using]
    if is_supported(connection) and router.allow_migrate_model(using, Job):
        database_for(using).prepare(connection)
