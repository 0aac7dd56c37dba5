"""The content of a report, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testproject.exploration.models import FIGURES, Document

COLUMNS = ("package", "files", *FIGURES)

#: What a report can be narrowed by: fields of a document.
FILTERS = ("session_id", "package", "kind")


@dataclass(frozen=True)
class Figures:
    """Totals, and the same by package."""

    filters: dict[str, Any]
    totals: dict[str, int]
    packages: list[dict[str, Any]]


def collect(filters: Mapping[str, Any]) -> Figures:
    """Add up the documents that fit. Raises ``ValueError`` for a filter that there is not."""
    if not isinstance(filters, Mapping):
        raise TypeError(f"{filters!r} must be an object of names and values.")
    if unknown := filters.keys() - set(FILTERS):
        raise ValueError(f"There is no filter {min(unknown)!r}. There are: {', '.join(FILTERS)}.")
    documents = Document.objects.filter(**filters)
    return Figures(dict(filters), documents.totals(), documents.by_package())
