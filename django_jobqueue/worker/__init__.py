"""The runners. ``Worker`` runs jobs in this process; ``supervisor`` keeps worker processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .options import WorkerOptions

if TYPE_CHECKING:
    from .worker import Worker

__all__ = ["Worker", "WorkerOptions"]


def __getattr__(name: str) -> Any:
    # A worker process imports this package before it has set up Django, and a Worker needs the models.
    if name == "Worker":
        from .worker import Worker

        return Worker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
