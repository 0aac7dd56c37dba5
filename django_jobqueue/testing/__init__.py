"""For people's tests: run jobs here, on the test's own connection, and look at what was enqueued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..databases.clock import process_clock

if TYPE_CHECKING:
    from .asserting import assert_enqueued
    from .running import arun_jobs, immediate, run_jobs

__all__ = ["arun_jobs", "assert_enqueued", "immediate", "process_clock", "run_jobs"]


def __getattr__(name: str) -> Any:
    # pytest imports this package for its plugin before Django is set up, and the rest needs the models.
    if name == "assert_enqueued":
        from .asserting import assert_enqueued

        return assert_enqueued
    if name in __all__:
        from . import running

        return getattr(running, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
