"""A queue that somebody paused, or once did."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..databases.base import QUEUE_TABLE
from ..managers import QueueManager
from ..states import QUEUE_LENGTH
from .fields import InstantField


class Queue(models.Model):
    """Whether jobs of a queue are being claimed. A queue without a row here is not paused."""

    name = models.CharField(_("name"), max_length=QUEUE_LENGTH, primary_key=True)
    paused = models.BooleanField(_("paused"), default=False, db_default=False)
    updated_at = InstantField(_("updated at"))

    objects: ClassVar[QueueManager] = QueueManager()

    class Meta:
        db_table = QUEUE_TABLE
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        base_manager_name = "objects"
        default_permissions = ("view",)
        permissions = [("pause_queue", _("Can pause and resume queues"))]

    def __str__(self) -> str:
        return self.name
