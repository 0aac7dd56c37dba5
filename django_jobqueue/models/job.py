"""The job: the one row that everything here is about."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..databases.base import JOB_TABLE
from ..databases.clock import DatabaseNow
from ..managers import JobManager, Token
from ..managers.ids import new_job_id
from ..states import (
    DEFAULT_QUEUE,
    FINISHED,
    JOB_TYPE_LENGTH,
    KEY_LENGTH,
    QUEUE_LENGTH,
    JobStatus,
)
from .constraints import CONSTRAINTS, INDEXES
from .fields import InstantField


class Job(models.Model):
    """A call that is to be made: of which handler, with what, when, and how often to try.

    Rows are written by the moves of ``Job.objects`` alone. ``save()`` is for nobody: the constraints of
    the table refuse an illegal row, but only a move keeps the promises about attempts and leases.
    """

    id = models.UUIDField(primary_key=True, default=new_job_id, editable=False)
    job_type = models.CharField(_("type"), max_length=JOB_TYPE_LENGTH)
    queue = models.CharField(_("queue"), max_length=QUEUE_LENGTH, default=DEFAULT_QUEUE)
    status = models.SmallIntegerField(
        _("status"), choices=JobStatus.choices, default=JobStatus.PENDING, db_default=int(JobStatus.PENDING)
    )
    priority = models.SmallIntegerField(_("priority"), default=0, db_default=0)
    dedupe_key = models.CharField(_("dedupe key"), max_length=KEY_LENGTH, null=True, blank=True)  # noqa: DJ001
    lock_key = models.CharField(_("lock key"), max_length=KEY_LENGTH, null=True, blank=True)  # noqa: DJ001
    attempts = models.SmallIntegerField(_("attempts"), default=0, db_default=0)
    max_attempts = models.SmallIntegerField(_("max attempts"), default=3)
    fence = models.IntegerField(_("fence"), default=0, db_default=0)
    crashes = models.SmallIntegerField(_("crashes"), default=0, db_default=0)
    snoozes = models.SmallIntegerField(_("snoozes"), default=0, db_default=0)
    releases = models.SmallIntegerField(_("releases"), default=0, db_default=0)
    run_after = InstantField(_("run after"), default=DatabaseNow)
    expires_at = InstantField(_("expires at"), null=True, blank=True)
    lease_until = InstantField(_("lease until"), null=True, blank=True)
    worker_id = models.CharField(_("worker"), max_length=64, null=True, blank=True)  # noqa: DJ001
    claimed_at = InstantField(_("claimed at"), null=True, blank=True)
    run_started_at = InstantField(_("started at"), null=True, blank=True)
    finished_at = InstantField(_("finished at"), null=True, blank=True)
    cancel_requested_at = InstantField(_("cancel requested at"), null=True, blank=True)
    unknown_since = InstantField(_("type unknown since"), null=True, blank=True)
    awaited = models.BooleanField(_("awaited"), default=False, db_default=False)
    progress = models.FloatField(_("progress"), null=True, blank=True)
    progress_note = models.TextField(_("progress note"), blank=True, default="", db_default="")
    error_fingerprint = models.TextField(_("error fingerprint"), blank=True, default="", db_default="")
    created_at = InstantField(_("created at"), default=DatabaseNow)
    updated_at = InstantField(_("updated at"), default=DatabaseNow)
    # The large columns come last: SQLite walks through what stands before the column it is asked for.
    last_error = models.TextField(_("last error"), blank=True, default="", db_default="")
    payload = models.JSONField(_("payload"), default=dict)
    result = models.JSONField(_("result"), null=True, blank=True)
    context = models.JSONField(_("context"), default=dict, blank=True)
    errors = models.JSONField(
        _("errors"), default=list, db_default=models.Value([], models.JSONField()), blank=True
    )

    #: On a job that ``enqueue`` gave back: whether it was made now (False: the active one with its dedupe
    #: key; None: it will be inserted when the open transaction on another database commits).
    created: bool | None = None

    objects: ClassVar[JobManager] = JobManager()

    class Meta:
        db_table = JOB_TABLE
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        # The first manager is also the base manager: every query of the queue names one alias.
        base_manager_name = "objects"
        constraints = CONSTRAINTS
        indexes = INDEXES
        permissions = [
            ("retry_job", _("Can retry jobs")),
            ("cancel_job", _("Can cancel jobs")),
            ("run_job_now", _("Can run pending jobs now")),
            ("snooze_job", _("Can put pending jobs off")),
            ("edit_job_payload", _("Can retry jobs with another payload")),
        ]
        default_permissions = ("view", "delete")

    def __str__(self) -> str:
        return f"{self.job_type} {self.id}"

    @property
    def token(self) -> Token:
        """What proves a claim: every write by a worker carries it."""
        return Token(self.id, self.worker_id or "", self.fence)

    @property
    def is_finished(self) -> bool:
        """Whether no worker will touch it again."""
        return self.status in FINISHED
