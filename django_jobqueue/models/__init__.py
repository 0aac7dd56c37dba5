"""The rows. ``Job.objects`` has the moves; nothing else writes ``Job.status``."""

from ..states import JobStatus
from .job import Job
from .queue import Queue
from .worker import Worker

__all__ = ["Job", "JobStatus", "Queue", "Worker"]
