"""What was explored, and when."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

#: Characters of a document that are kept (and can be searched); its figures are those of the whole file.
TEXT_LIMIT = 100_000

#: The figures of a document, as reports and pages add them up.
FIGURES = ("lines", "words", "bytes", "headings", "definitions", "links")


class DocumentQuerySet(models.QuerySet["Document"]):
    """Documents, and their figures added up."""

    def totals(self) -> dict[str, int]:
        """How many files there are, and the sum of each figure."""
        sums = {f"total_{name}": models.Sum(name, default=0) for name in FIGURES}
        found = self.aggregate(total_files=models.Count("pk"), **sums)
        return {name.removeprefix("total_"): int(value) for name, value in found.items()}

    def by_package(self) -> list[dict[str, Any]]:
        """The same for each package, the one with the most lines first."""
        sums = {f"total_{name}": models.Sum(name, default=0) for name in FIGURES}
        rows = self.order_by().values("package").annotate(total_files=models.Count("pk"), **sums)
        return [
            {name.removeprefix("total_"): value for name, value in row.items()}
            for row in rows.order_by("-total_lines", "package")
        ]


class ExplorationSession(models.Model):
    """One exploration of one folder. Its work is the jobs that carry its id."""

    id = models.BigAutoField(primary_key=True)
    root = models.CharField(max_length=1_000)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return f"{self.pk}: {self.root}"


class Document(models.Model):
    """A file as it was found: its figures, its outline and (the beginning of) its text."""

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(ExplorationSession, models.CASCADE, related_name="documents")
    package = models.CharField(max_length=255)
    path = models.CharField(max_length=1_000)
    kind = models.CharField(max_length=20)
    title = models.CharField(max_length=300, blank=True)
    outline = models.TextField(blank=True)
    text = models.TextField(blank=True)
    urls = models.JSONField(default=list, blank=True)
    lines = models.IntegerField(default=0)
    words = models.IntegerField(default=0)
    bytes = models.IntegerField(default=0)
    headings = models.IntegerField(default=0)
    definitions = models.IntegerField(default=0)
    links = models.IntegerField(default=0)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        constraints = [
            # A job may run twice; a document is there once.
            models.UniqueConstraint(fields=["session", "path"], name="exploration_document_once"),
        ]
        indexes = [models.Index(fields=["session", "package"], name="exploration_document_package")]

    def __str__(self) -> str:
        return self.path
