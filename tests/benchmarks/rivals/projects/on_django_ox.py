"""django-ox: four tasks at a time, on connections that stay open, as its own benchmark says is fastest."""

from collections.abc import Sequence

import django
from django.apps import apps
from django.core.management import call_command
from stamps import stamp

if not apps.ready:
    django.setup()

from django.tasks import task
from django_ox.bulk import enqueue_many
from django_ox.models import OxTask


@task
def handle(number: int) -> None:
    stamp(number)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle.enqueue(number)


def bulk(numbers: Sequence[int]) -> None:
    enqueue_many(handle, [((number,), {}) for number in numbers])


def unfinished() -> int:
    return OxTask.objects.filter(finished_at=None).count()


def worker() -> None:
    call_command("ox_worker", verbosity=0, concurrency=4)
