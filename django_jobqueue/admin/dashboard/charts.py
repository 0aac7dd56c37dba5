"""Bars over time: SVG without a style, a script or a library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils import formats
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from ...statistics import History, Point, span_text

#: Units of the drawing: of one column's width, and of the whole height. It is stretched to its place.
COLUMN, HEIGHT = 10, 100
_GAP = 1


class Series(NamedTuple):
    """What one colour means; ``kind`` is its class."""

    kind: str
    label: str


@dataclass(frozen=True)
class Chart:
    """One drawing, and the words around it."""

    name: str
    title: str
    summary: str
    series: list[Series]
    columns: SafeString
    width: int
    top: str
    middle: str
    times: list[str]
    height: int = HEIGHT


@dataclass(frozen=True)
class _Kind:
    """What a chart shows of each step."""

    name: str
    title: str
    series: list[Series]
    values_of: Callable[[Point], Sequence[float]]
    text_of: Callable[[float], str]
    top_of: Callable[[float], float]
    stacked: bool = False


def charts(history: History, labels: Sequence[str]) -> list[Chart]:
    """Throughput, failures and waiting time; the labels are those of the steps."""
    per_minute = 60 / history.period.span
    kinds = (
        _Kind(
            "throughput",
            gettext("Done per minute"),
            [Series("done", gettext("done"))],
            lambda point: [point.done * per_minute],
            rate_text,
            _top,
        ),
        _Kind(
            "failures",
            gettext("Failed attempts"),
            [Series("dead", gettext("dead")), Series("failed", gettext("to be tried again"))],
            lambda point: [point.dead, point.failed - point.dead],
            rate_text,
            _top,
            stacked=True,
        ),
        _Kind(
            "waiting",
            gettext("Waiting time"),
            [Series("p95", gettext("95th percentile")), Series("mean", gettext("mean"))],
            lambda point: [point.waiting.p95 or 0.0, point.waiting.mean or 0.0],
            span_text,
            _top_of_time,
        ),
    )
    return [_chart(kind, history, labels) for kind in kinds]


def _chart(kind: _Kind, history: History, labels: Sequence[str]) -> Chart:
    values = [kind.values_of(point) for point in history.points]
    largest = max(sum(each) if kind.stacked else max(each) for each in values)
    top = kind.top_of(largest)
    columns = (
        _column(kind, place, label, each, top)
        for place, (label, each) in enumerate(zip(labels, values, strict=True))
    )
    summary = gettext("%(title)s: at most %(most)s. The figures stand in the table below.") % {
        "title": kind.title,
        "most": kind.text_of(largest),
    }
    return Chart(
        name=kind.name,
        title=kind.title,
        summary=summary,
        series=kind.series,
        # Hundreds of rectangles, for which a template takes ten times as long. The text in it is escaped.
        columns=mark_safe("\n".join(columns)),  # noqa: S308
        width=len(values) * COLUMN,
        top=kind.text_of(top),
        middle=kind.text_of(top / 2),
        times=[labels[place] for place in (0, len(labels) // 2, -1)],
    )


def _column(kind: _Kind, place: int, label: str, values: Sequence[float], top: float) -> str:
    """What stands over one step of time, and the text that tells its figures."""
    if any(values):
        told = [f"{one.label} {kind.text_of(value)}" for one, value in zip(kind.series, values, strict=True)]
    else:
        told = ["0"]
    title = escape(f"{label}: {', '.join(told)}")
    x = place * COLUMN
    whole = f'<rect class="jobqueue-hit" x="{x}" y="0" width="{COLUMN}" height="{HEIGHT}"/>'
    return f"<g><title>{title}</title>{whole}{''.join(_bars(kind, x, values, top))}</g>"


def _bars(kind: _Kind, x: int, values: Sequence[float], top: float) -> list[str]:
    bars, below = [], 0.0
    for one, value in zip(kind.series, values, strict=True):
        height = max(value / top * HEIGHT, 1.0) if value else 0.0  # one of thousands is still seen
        if height:
            y = max(HEIGHT - below - height, 0.0)
            bars.append(
                f'<rect class="jobqueue-bar-{one.kind}" x="{x}" y="{y:.1f}" '
                f'width="{COLUMN - _GAP}" height="{height:.1f}"/>'
            )
        below += height if kind.stacked else 0.0
    return bars


def labels_of(history: History) -> list[str]:
    """The start of each step, with the day where that is not plain."""
    days: dict[str, str] = {}
    labels = []
    for point in history.points:
        label = f"{point.start:%H:%M}"
        if history.period.name != "hour":
            day = f"{point.start:%Y-%m-%d}"
            if day not in days:
                days[day] = formats.date_format(point.start, "j M")
            label = f"{days[day]} {label}"
        labels.append(label)
    return labels


def _top(value: float) -> float:
    """The next round number: 1, 2 or 5 and zeros."""
    if value <= 1:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(step * size for step in (1, 2, 5, 10) if step * size >= value)


def _top_of_time(value: float) -> float:
    """The next round time."""
    steps = (0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 18_000, 43_200)
    return next((step for step in steps if step >= value), math.ceil(value / 86_400) * 86_400.0)


def rate_text(value: float) -> str:
    """A number, with one decimal where it is small and not whole."""
    if 0 < value < 0.05:
        return f"< {formats.number_format(0.1)}"
    whole = value >= 10 or value == int(value)
    return str(formats.number_format(round(value) if whole else round(value, 1), force_grouping=True))
