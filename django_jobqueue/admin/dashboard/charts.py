"""Bars over time, as numbers for the template: SVG without a style, a script or a library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils import formats
from django.utils.translation import gettext

from ...statistics import History, Point, span_text

#: Units of the drawing: of one column's width, and of the whole height. It is stretched to its place.
COLUMN, HEIGHT = 10, 100
_GAP = 1


class Bar(NamedTuple):
    """A rectangle; ``kind`` is its class."""

    kind: str
    y: str
    height: str


class Column(NamedTuple):
    """What stands over one step of time."""

    x: int
    title: str
    bars: list[Bar]


class Series(NamedTuple):
    """What one colour means."""

    kind: str
    label: str


@dataclass(frozen=True)
class Chart:
    """One drawing, and the words around it."""

    name: str
    title: str
    summary: str
    series: list[Series]
    columns: list[Column]
    width: int
    top: str
    middle: str
    times: list[str]
    height: int = HEIGHT
    column: int = COLUMN
    bar: int = COLUMN - _GAP


def charts(history: History) -> list[Chart]:
    """Throughput, failures and waiting time."""
    per_minute = 60 / history.period.span
    return [
        _chart(
            history,
            "throughput",
            gettext("Done per minute"),
            [Series("done", gettext("done"))],
            lambda point: [point.done * per_minute],
            _rate,
        ),
        _chart(
            history,
            "failures",
            gettext("Failed attempts"),
            [Series("dead", gettext("dead")), Series("failed", gettext("to be tried again"))],
            lambda point: [point.dead, point.failed - point.dead],
            _whole,
            stacked=True,
        ),
        _chart(
            history,
            "waiting",
            gettext("Waiting time"),
            [Series("p95", gettext("95th percentile")), Series("mean", gettext("mean"))],
            lambda point: [point.waiting.p95 or 0.0, point.waiting.mean or 0.0],
            span_text,
        ),
    ]


def _chart(
    history: History,
    name: str,
    title: str,
    series: list[Series],
    values_of: Callable[[Point], Sequence[float]],
    text_of: Callable[[float], str],
    *,
    stacked: bool = False,
) -> Chart:
    values = [values_of(point) for point in history.points]
    largest = max(sum(each) if stacked else max(each) for each in values)
    top = _top(largest) if text_of is not span_text else _top_of_time(largest)
    columns = [
        Column(
            place * COLUMN, _title(point, series, each, text_of, history), _bars(series, each, top, stacked)
        )
        for place, (point, each) in enumerate(zip(history.points, values, strict=True))
    ]
    summary = gettext("%(title)s: at most %(most)s. The figures stand in the table below.") % {
        "title": title,
        "most": text_of(largest),
    }
    return Chart(
        name, title, summary, series, columns, len(columns) * COLUMN, text_of(top), text_of(top / 2),
        _times(history),
    )  # fmt: skip


def _bars(series: Sequence[Series], values: Sequence[float], top: float, stacked: bool) -> list[Bar]:
    bars, below = [], 0.0
    for one, value in zip(series, values, strict=True):
        height = max(value / top * HEIGHT, 1.0) if value else 0.0  # one of thousands is still seen
        if height:
            bars.append(Bar(one.kind, f"{max(HEIGHT - below - height, 0):.1f}", f"{height:.1f}"))
        below += height if stacked else 0.0
    return bars


def _title(
    point: Point,
    series: Sequence[Series],
    values: Sequence[float],
    text_of: Callable[[float], str],
    history: History,
) -> str:
    told = [f"{one.label} {text_of(value)}" for one, value in zip(series, values, strict=True)]
    return f"{when(point, history)}: {', '.join(told)}"


def when(point: Point, history: History) -> str:
    """The start of a step, with the day where that is not plain."""
    time = formats.time_format(point.start, "H:i")
    return time if history.period.name == "hour" else f"{formats.date_format(point.start, 'j M')} {time}"


def _times(history: History) -> list[str]:
    points = history.points
    return [when(points[place], history) for place in (0, len(points) // 2, len(points) - 1)]


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


def _whole(value: float) -> str:
    return str(formats.number_format(round(value, 1) if value < 1 else round(value), force_grouping=True))


def _rate(value: float) -> str:
    whole = value >= 10 or value == int(value)
    return str(formats.number_format(round(value) if whole else round(value, 1), force_grouping=True))


def rate_text(value: float) -> Any:
    """Jobs a minute: one decimal where they are few."""
    return _rate(value)
