"""Reports: what was asked for, and the file it became."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Report(models.Model):
    """A report on the documents. Without a file it is still to be made."""

    class Format(models.TextChoices):
        CSV = "csv", "CSV"
        JSON = "json", "JSON"
        HTML = "html", "HTML"

    id = models.BigAutoField(primary_key=True)
    format = models.CharField(max_length=10, choices=Format.choices)
    filters = models.JSONField(default=dict, blank=True)
    #: Whom to tell when the file is there.
    notify_url = models.CharField(max_length=500, blank=True)
    file = models.FileField(upload_to="reports", blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    made_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="reports_report_created")]

    def __str__(self) -> str:
        return f"report {self.pk} ({self.format})"
