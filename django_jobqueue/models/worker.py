"""The workers that are there, by their last beat."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..databases.base import WORKER_TABLE
from ..managers import WorkerManager
from .fields import InstantField


class Worker(models.Model):
    """One worker process since its start. Its id is random: host and pid are for people.

    Rows of workers that have not been heard of for a day are removed by the others.
    """

    id = models.CharField(_("identity"), max_length=64, primary_key=True)
    host = models.CharField(_("host"), max_length=255)
    pid = models.IntegerField(_("process id"))
    queues = models.JSONField(_("queues"), null=True, blank=True)
    exclude_queues = models.JSONField(_("not these queues"), null=True, blank=True)
    capacity = models.IntegerField(_("capacity"))
    version = models.CharField(_("version"), max_length=50)
    started_at = InstantField(_("started at"))
    last_beat = InstantField(_("last beat"))
    #: When its claiming loop had to come round at the latest, as of the last beat.
    loop_due_at = InstantField(_("loop due at"), null=True, blank=True)
    stop_requested_at = InstantField(_("stop requested at"), null=True, blank=True)

    objects: ClassVar[WorkerManager] = WorkerManager()

    class Meta:
        db_table = WORKER_TABLE
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        base_manager_name = "objects"
        default_permissions = ("view",)
        permissions = [("stop_worker", _("Can ask workers to stop"))]
        indexes = [models.Index("last_beat", name="jobqueue_worker_beat")]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"
