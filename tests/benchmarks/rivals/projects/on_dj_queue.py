"""dj-queue: one worker process of eight threads, connections kept open, woken by LISTEN/NOTIFY."""

from collections.abc import Sequence

import django
from django.apps import apps
from django.core.management import call_command
from stamps import stamp

if not apps.ready:
    django.setup()

from dj_queue.models import Job
from django.tasks import task


@task
def handle(number: int) -> None:
    stamp(number)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle.enqueue(number)


def bulk(numbers: Sequence[int]) -> None:
    handle.get_backend().enqueue_all([(handle, [number], {}) for number in numbers])


def unfinished() -> int:
    return Job.objects.filter(finished_at=None).count()


def worker() -> None:
    call_command("dj_queue")
