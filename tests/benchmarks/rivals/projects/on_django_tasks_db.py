"""django-tasks-db: its worker takes one task at a time and has no other setting for throughput."""

from collections.abc import Sequence

import django
from django.apps import apps
from django.core.management import call_command
from stamps import stamp

if not apps.ready:
    django.setup()

from django.tasks import task
from django_tasks_db.models import DBTaskResult


@task
def handle(number: int) -> None:
    stamp(number)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle.enqueue(number)


def unfinished() -> int:
    return DBTaskResult.objects.filter(finished_at=None).count()


def worker() -> None:
    call_command("db_worker", verbosity=0, startup_delay=False, reload=False)
