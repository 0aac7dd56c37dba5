"""How the demo is seen: bars on a terminal, lines anywhere else."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from django_jobqueue.models import JobStatus

from .watch import Event, Figures

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Lines of recent events below the bars.
RECENT = 12

STYLES = {"done": "green", "retry": "yellow", "dead": "bold red", "step": "bold"}


class Display(Protocol):
    """What the story needs of it."""

    def __enter__(self) -> Display: ...
    def __exit__(self, *exception: object) -> None: ...

    def say(self, text: str) -> None:
        """A new step begins."""

    def show(self, figures: Mapping[str, Figures], events: Sequence[Event]) -> None:
        """The present figures, and what happened since the last time."""


def choose(*, plain: bool) -> Display:
    """Bars if there is a terminal (and rich), else lines."""
    if not plain and sys.stdout.isatty():
        try:
            from rich.console import Console
        except ImportError:
            return Lines()
        return Bars(Console())
    return Lines()


class Lines:
    """A line for each event."""

    def __init__(self) -> None:
        self._begun = monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def say(self, text: str) -> None:
        """A new step begins."""
        print(f"{monotonic() - self._begun:6.1f} s  {text}", flush=True)

    def show(self, figures: Mapping[str, Figures], events: Sequence[Event]) -> None:
        """A line for each event."""
        for event in events:
            one = figures[event.kind]
            count = f"{one.statuses[JobStatus.DONE]}/{one.total}"
            self.say(f"  {event.what:<9} {event.kind:<17} {count:>7}  {event.text}")


class Bars:
    """A bar for each kind, and the latest events below."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._console = console
        self._figures: Mapping[str, Figures] = {}
        self._events: deque[tuple[str, str]] = deque(maxlen=RECENT)
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8)

    def __enter__(self) -> Bars:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """A new step begins."""
        self._events.append(("step", text))

    def show(self, figures: Mapping[str, Figures], events: Sequence[Event]) -> None:
        """The present figures, and what happened since the last time."""
        self._figures = figures
        self._events.extend((event.what, f"{event.what:<9} {event.kind}  {event.text}") for event in events)

    def _render(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        page = Table.grid(expand=True)
        page.add_row(self._bars())
        for style, text in self._events:
            page.add_row(Text(text, style=STYLES[style], no_wrap=True, overflow="ellipsis"))
        return page

    def _bars(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("kind")
        table.add_column("", width=40)
        for name in ("done", "all", "running", "waiting", "retries", "dead"):
            table.add_column(name, justify="right")
        for kind, one in self._figures.items():
            done = one.statuses[JobStatus.DONE]
            bar = ProgressBar(
                total=max(one.total, 1),
                completed=done + one.progress,
                width=40,
                complete_style="cyan",
                finished_style="green",
            )
            counts = (done, one.total, one.statuses[JobStatus.RUNNING], one.statuses[JobStatus.PENDING])
            table.add_row(kind, bar, *map(str, (*counts, one.retries, one.statuses[JobStatus.DEAD])))
        return table
