"""A job queue in the database that a Django project already has."""

import importlib
from typing import TYPE_CHECKING, Any

from .dedupe import Dedupe
from .exceptions import DeadJob, RetryJob, SnoozeJob
from .handlers import job
from .retries import Retry

if TYPE_CHECKING:
    from .backend import task

__version__ = "0.1.0.dev0"

__all__ = ["DeadJob", "Dedupe", "Retry", "RetryJob", "SnoozeJob", "job", "task"]


def __getattr__(name: str) -> Any:
    """``task``, when it is asked for: it needs the Tasks API, which Django 5.2 has only by the backport."""
    if name == "task":
        return importlib.import_module(".backend", __name__).task
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
