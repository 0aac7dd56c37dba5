"""procrastinate through its Django app: asynchronous handlers, ten at a time."""

from collections.abc import Sequence

import django
from django.apps import apps
from django.core.management import call_command
from stamps import stamp

if not apps.ready:
    django.setup()

from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob


@app.task(name="handle")
async def handle(number: int) -> None:
    stamp(number)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle.defer(number=number)


def bulk(numbers: Sequence[int]) -> None:
    handle.batch_defer(*[{"number": number} for number in numbers])


def unfinished() -> int:
    return ProcrastinateJob.objects.exclude(status="succeeded").count()


def worker() -> None:
    call_command("procrastinate", "worker", "--concurrency", "10")
