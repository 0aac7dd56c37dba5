"""steady-queue: one worker process of eight threads; the queue is named, as it advises."""

from django.core.management import call_command
from tasks_api import enqueue, prepare

# isort: split
# Models can be imported once tasks_api has set Django up.
from steady_queue.models import Job

__all__ = ["enqueue", "prepare", "unfinished", "worker"]


def unfinished() -> int:
    return Job.objects.filter(finished_at=None).count()


def worker() -> None:
    call_command("steady_queue")
