"""Django's Tasks API on the queue: the backend, the decorator, and what goes beyond the contract."""

from .contract import JobQueueBackend
from .extras import acancel, aenqueue_many, cancel, enqueue_many, wait, wait_async
from .options import JobQueueTask, task, with_options

__all__ = [
    "JobQueueBackend",
    "JobQueueTask",
    "acancel",
    "aenqueue_many",
    "cancel",
    "enqueue_many",
    "task",
    "wait",
    "wait_async",
    "with_options",
]
