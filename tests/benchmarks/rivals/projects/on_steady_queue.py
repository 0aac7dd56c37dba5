"""steady-queue: one worker process of eight threads; the queue is named, as it advises."""

from collections.abc import Sequence

import django
from django.apps import apps
from django.core.management import call_command
from stamps import stamp

if not apps.ready:
    django.setup()

from django.tasks import task
from steady_queue.models import Job


@task()
def handle(number: int) -> None:
    stamp(number)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle.enqueue(number)


def unfinished() -> int:
    return Job.objects.filter(finished_at=None).count()


def worker() -> None:
    call_command("steady_queue")
