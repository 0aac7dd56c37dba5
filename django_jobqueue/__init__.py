"""A job queue in the database that a Django project already has."""

from .dedupe import Dedupe
from .exceptions import DeadJob, RetryJob, SnoozeJob
from .handlers import job
from .retries import Retry

__version__ = "0.1.0.dev0"

__all__ = ["DeadJob", "Dedupe", "Retry", "RetryJob", "SnoozeJob", "job"]
