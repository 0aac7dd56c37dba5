"""The rows. ``Job.objects`` has the moves; nothing else writes ``Job.status``."""

from ..states import JobStatus
from .job import Job
from .queue import Dashboard, Queue
from .statistic import Statistic
from .worker import Worker

__all__ = ["Dashboard", "Job", "JobStatus", "Queue", "Statistic", "Worker"]
