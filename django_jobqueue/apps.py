"""Wiring: load the handlers, register the checks."""

from __future__ import annotations

from django.apps import AppConfig
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
        from . import checks  # noqa: F401 - registers the checks

        autodiscover_modules("jobs")
