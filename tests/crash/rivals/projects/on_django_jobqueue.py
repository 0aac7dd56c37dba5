"""This queue, by the same means."""

from collections.abc import Sequence

import django
from django.apps import apps
from django.core.management import call_command

if not apps.ready:
    django.setup()

from ours.jobs import handle

from django_jobqueue.models import Job
from django_jobqueue.states import FINISHED


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle.enqueue(number)


def unfinished() -> int:
    return Job.objects.exclude(status__in=FINISHED).count()


def worker() -> None:
    call_command("runworker", "--no-reload", "--processes", "2", "--threads", "4", verbosity=0)
