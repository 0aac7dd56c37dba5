"""procrastinate with an async handler; stalled jobs are retried every 5 s, as its documentation advises."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Sequence

import django
from django.apps import apps
from django.core.management import call_command
from stamps import PULSE, alive, began, ended, pulses

if not apps.ready:
    django.setup()

from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

#: The app's connector, before the worker command puts its own in its place.
DJANGO = app.connector

#: Seconds without a sign of life of its worker after which a job counts as stalled.
STALLED = 10.0


@app.task(name="handle")
async def handle(number: int) -> None:
    run = began(number)
    for _ in range(pulses(number)):
        await asyncio.sleep(PULSE)
        alive(run)
    ended(run)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle.defer(number=number)


def unfinished() -> int:
    return ProcrastinateJob.objects.exclude(status="succeeded").count()


def worker() -> None:
    # Its documentation gives a periodic task for this, which cron runs once a minute; here it is a thread.
    threading.Thread(target=_retry_stalled, daemon=True).start()
    call_command("procrastinate", "worker", "--concurrency", "10")


def _retry_stalled() -> None:
    while True:
        time.sleep(5)
        try:
            asyncio.run(_retry())
        except Exception as error:
            print(f"stalled jobs: {error!r}", file=sys.stderr)
            os._exit(1)


async def _retry() -> None:
    other = app.with_connector(DJANGO.get_worker_connector())
    async with other.open_async():
        manager = other.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=STALLED):
            await manager.retry_job(job)
