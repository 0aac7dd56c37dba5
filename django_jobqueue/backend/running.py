"""What a task with ``takes_context=True`` sees: Django's context, and the queue's progress and cancel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ..compat import AnyContext, AnyResult
from . import results

R = TypeVar("R")


class RunningContext(AnyContext):
    """A ``TaskContext`` whose result is made when it is asked for, and that can report back."""

    _attempt: Any
    _job_context: Any
    _made: AnyResult | None

    def __init__(self, attempt: Any) -> None:
        object.__setattr__(self, "_attempt", attempt)
        object.__setattr__(self, "_job_context", attempt.context())
        object.__setattr__(self, "_made", None)

    @property
    def task_result(self) -> AnyResult:  # type: ignore[override]
        """The result as it stands: RUNNING, with the errors of earlier attempts."""
        made = self._made
        if made is None:
            made = results.running(self._attempt.job, self._attempt.started)
            object.__setattr__(self, "_made", made)
        return made

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the task to stop, or its claim was lost; see ``JobContext.cancelled``."""
        return bool(self._job_context.cancelled)

    def progress(self, current: float, total: float = 1, note: str = "") -> None:
        """Report progress, ``current`` of ``total``; stored by the worker about once a second."""
        self._job_context.progress(current, total, note)

    def track(self, items: Iterable[R], total: int | None = None, note: str = "") -> Iterator[R]:
        """The items, reporting progress as they are used up. ``total`` defaults to their ``len()``."""
        tracked: Iterator[R] = self._job_context.track(items, total, note)
        return tracked
