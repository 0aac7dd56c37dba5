"""django-ox: four tasks at a time, on connections that stay open, as its own benchmark says is fastest."""

from collections.abc import Sequence

from django.core.management import call_command
from tasks_api import enqueue, handle, prepare

# isort: split
# Models can be imported once tasks_api has set Django up.
from django_ox.bulk import enqueue_many
from django_ox.models import OxTask

__all__ = ["bulk", "enqueue", "prepare", "unfinished", "worker"]


def bulk(numbers: Sequence[int]) -> None:
    enqueue_many(handle, [((number,), {}) for number in numbers])


def unfinished() -> int:
    return OxTask.objects.filter(finished_at=None).count()


def worker() -> None:
    call_command("ox_worker", verbosity=0, concurrency=4)
