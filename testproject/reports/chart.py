"""A bar chart as numbers for a template: where each bar, label and grid line goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

ROW = 24
BAR = 16
LABEL_WIDTH = 170
PLOT_WIDTH = 600
VALUE_WIDTH = 90
AXIS = 28
LABEL_CHARACTERS = 22


@dataclass(frozen=True)
class Bar:
    """A horizontal bar with its label and value."""

    label: str
    value: int
    y: int
    width: float

    @property
    def short_label(self) -> str:
        """The label as far as it has room."""
        cut = self.label[: LABEL_CHARACTERS - 1]
        return self.label if len(self.label) <= LABEL_CHARACTERS else f"{cut}…"

    @property
    def middle(self) -> float:
        """Where the text beside the bar stands."""
        return self.y + BAR / 2

    @property
    def end(self) -> float:
        """Where the bar ends and its value begins."""
        return LABEL_WIDTH + self.width


@dataclass(frozen=True)
class Tick:
    """A grid line and what it stands for."""

    value: int
    x: float


@dataclass(frozen=True)
class Chart:
    """All that is to be drawn."""

    bars: list[Bar]
    ticks: list[Tick]
    left: int = LABEL_WIDTH
    bar_height: int = BAR
    width: int = LABEL_WIDTH + PLOT_WIDTH + VALUE_WIDTH

    @property
    def bottom(self) -> int:
        """Where the bars end and the axis begins."""
        return len(self.bars) * ROW

    @property
    def height(self) -> int:
        """With the axis."""
        return self.bottom + AXIS


def bars(values: Sequence[tuple[str, int]]) -> Chart:
    """A bar for each (label, value), in that order."""
    most = max([value for _, value in values], default=0)
    step = tick_step(most)
    scale = PLOT_WIDTH / max(most, 1)
    return Chart(
        [
            Bar(label, value, row * ROW + (ROW - BAR) // 2, round(value * scale, 1))
            for row, (label, value) in enumerate(values)
        ],
        [Tick(value, round(LABEL_WIDTH + value * scale, 1)) for value in range(0, most + 1, step)],
    )


def tick_step(most: int) -> int:
    """1, 2 or 5 times a power of ten, so that there are at most six steps up to ``most``."""
    steps = (base * 10**power for power in count() for base in (1, 2, 5))
    return next(step for step in steps if most <= 6 * step)
