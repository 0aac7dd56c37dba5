"""What workers have counted, by the minute and in longer spans: it outlives the jobs."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..databases.base import STATISTIC_TABLE
from ..managers import StatisticManager
from ..states import QUEUE_LENGTH
from .fields import InstantField


class Statistic(models.Model):
    """Attempts of one queue that ended in one span of time: how many, how, and how long they took.

    Workers add to it about twice a minute. Attempts of workers that were lost are in no row.
    """

    pk = models.CompositePrimaryKey("span", "start", "queue")
    span = models.IntegerField(_("seconds"))
    start = InstantField(_("start"))
    queue = models.CharField(_("queue"), max_length=QUEUE_LENGTH)
    done = models.BigIntegerField(_("done"))
    failed = models.BigIntegerField(_("failed attempts"))
    dead = models.BigIntegerField(_("dead"))
    waited = models.FloatField(_("seconds waited"))
    ran = models.FloatField(_("seconds run"))
    waits = models.JSONField(_("waits"))
    runs = models.JSONField(_("runs"))

    objects: ClassVar[StatisticManager] = StatisticManager()

    class Meta:
        db_table = STATISTIC_TABLE
        verbose_name = _("statistic")
        verbose_name_plural = _("statistics")
        base_manager_name = "objects"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.queue} {self.start} {self.span} s"
