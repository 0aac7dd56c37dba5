"""``manage.py jobqueue top``: the status again and again, on a terminal. Needs rich."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.db import Error
from django.utils import timezone

from ..statistics import Alert, Overview
from .status import QUEUE_COLUMNS, WORKER_COLUMNS, plain, queue_cells, worker_cells

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

MISSING = "manage.py jobqueue top needs rich. Install it: pip install 'django-jobqueue[top]'."

#: How a state looks; in words it stands there anyway.
_STYLES = {
    "paused": "yellow",
    "no worker": "bold red",
    "silent": "bold red",
    "stands still": "bold red",
    "stopping": "yellow",
    "working": "green",
}
_TEXT_COLUMNS = {"queue", "state", "worker", "queues", "version", "running now"}


def show(
    look: Callable[[], tuple[Overview, Sequence[Alert]]],
    lost: Callable[[], None],
    interval: float,
    *,
    once: bool = False,
    console: Console | None = None,
) -> None:
    """Show what ``look`` finds every ``interval`` seconds, until Ctrl-C; ``once``: just print it.

    When the database does not answer, it says so, calls ``lost`` and goes on.
    """
    try:
        from rich.console import Console
        from rich.live import Live
    except ModuleNotFoundError as error:
        raise CommandError(MISSING) from error
    console = console or Console()
    if once:
        console.print(_frame(*look()))
        return
    never = threading.Event()
    try:
        with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
            while True:
                live.update(_safe_frame(look, lost), refresh=True)
                never.wait(interval)
    except KeyboardInterrupt:
        pass


def _safe_frame(
    look: Callable[[], tuple[Overview, Sequence[Alert]]], lost: Callable[[], None]
) -> RenderableType:
    from rich.text import Text

    try:
        return _frame(*look())
    except Error as error:
        lost()
        return Text(f"The database does not answer, trying again: {plain(str(error).strip())}", style="red")


def _frame(overview: Overview, alerts: Iterable[Alert]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    total = overview.total
    now = timezone.localtime() if timezone.is_aware(timezone.now()) else timezone.now()
    head = Text.assemble(
        (f"{now:%H:%M:%S}", "bold"),
        f"  due {total.due}  running {total.running}  scheduled {total.scheduled}  dead {total.dead}"
        f"  done/min {total.done_per_minute:.1f}  workers {len(overview.living)}",
    )
    return Group(
        head,
        *(Text(f"! {plain(alert.text)}", style="bold red") for alert in alerts),
        _table(QUEUE_COLUMNS, map(queue_cells, overview.queues)),
        _table(WORKER_COLUMNS, map(worker_cells, overview.workers)),
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, expand=True, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in _TEXT_COLUMNS else "right")
    for row in rows:
        # As text: a name in square brackets is no markup.
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return table
