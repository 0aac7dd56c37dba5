"""What people have said about a queue: that it is paused, how long its finished jobs are kept."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..databases.base import QUEUE_TABLE
from ..managers import QueueManager
from ..states import QUEUE_LENGTH
from .fields import InstantField


class Queue(models.Model):
    """Whether jobs of a queue are being claimed, and how long those that ended stay.

    A queue without a row here is not paused, and JOBQUEUE["RETENTION"] says how long its jobs are kept.
    """

    name = models.CharField(_("name"), max_length=QUEUE_LENGTH, primary_key=True)
    paused = models.BooleanField(_("paused"), default=False, db_default=False)
    #: DONE and CANCELLED jobs are kept for so long; null: as JOBQUEUE["RETENTION"] says.
    retention = models.DurationField(_("retention"), null=True, blank=True)
    updated_at = InstantField(_("updated at"))

    objects: ClassVar[QueueManager] = QueueManager()

    class Meta:
        db_table = QUEUE_TABLE
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        base_manager_name = "objects"
        default_permissions = ("view",)
        permissions = [
            ("pause_queue", _("Can pause and resume queues")),
            ("set_queue_retention", _("Can set how long jobs of a queue are kept")),
        ]

    def __str__(self) -> str:
        return self.name


class Dashboard(Queue):
    """No rows of its own: gives the dashboard its place in the admin, and its permission."""

    class Meta:
        proxy = True
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")
        default_permissions = ("view",)
