"""From figures to the bytes of a file, one function a format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.template.loader import render_to_string

from testproject.exploration.folders import TOP

from .chart import bars
from .figures import COLUMNS, Figures

#: Bars in the chart; a person can still tell them apart.
CHART_BARS = 20


def as_csv(figures: Figures) -> str:
    """A header and a line for each package."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(
        [_inert(row["package"]), *(row[name] for name in COLUMNS[1:])] for row in figures.packages
    )
    return text.getvalue()


def as_json(figures: Figures) -> str:
    """All of it, as one object."""
    return json.dumps(asdict(figures), indent=2, ensure_ascii=False)


def as_html(figures: Figures) -> str:
    """A page to look at: totals, a chart, a table."""
    shown = figures.packages[:CHART_BARS]
    context = {
        "figures": figures,
        "columns": COLUMNS,
        "rows": [[label(row), *(row[name] for name in COLUMNS[1:])] for row in figures.packages],
        "chart": bars([(label(row), row["lines"]) for row in shown]),
    }
    return render_to_string("reports/report.html", context)


FORMATS: dict[str, Callable[[Figures], str]] = {"csv": as_csv, "json": as_json, "html": as_html}


def label(row: dict[str, Any]) -> str:
    """A package's name, for people."""
    return "(top level)" if row["package"] == TOP else str(row["package"])


def _inert(text: str) -> str:
    """A spreadsheet would run a text that begins like a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
