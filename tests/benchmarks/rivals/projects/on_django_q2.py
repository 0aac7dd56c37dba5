"""django-q2 on its ORM broker: one cluster with a worker for each of two cores."""

from collections.abc import Sequence

import django
from django.apps import apps
from django.core.management import call_command
from stamps import stamp

if not apps.ready:
    django.setup()

from django_q.models import OrmQ, Success
from django_q.tasks import async_task


def handle(number: int) -> None:
    stamp(number)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        async_task("on_django_q2.handle", number)


def unfinished() -> int:
    """The jobs that are still queued; one is deleted when its outcome is in the other table."""
    return OrmQ.objects.count() if Success.objects.exists() else 1


def worker() -> None:
    call_command("qcluster")
