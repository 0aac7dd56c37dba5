"""dj-queue: one worker process of eight threads, connections kept open, woken by LISTEN/NOTIFY."""

from collections.abc import Sequence

from django.core.management import call_command
from tasks_api import enqueue, handle, prepare

# isort: split
# Models can be imported once tasks_api has set Django up.
from dj_queue.models import Job

__all__ = ["bulk", "enqueue", "prepare", "unfinished", "worker"]


def bulk(numbers: Sequence[int]) -> None:
    handle.get_backend().enqueue_all([(handle, [number], {}) for number in numbers])


def unfinished() -> int:
    return Job.objects.filter(finished_at=None).count()


def worker() -> None:
    call_command("dj_queue")
