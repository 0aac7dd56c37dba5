"""Handlers that keep the ledger. Their result names the claim that it comes from."""

import asyncio
import os
import signal
import time

from django.db import transaction

from django_jobqueue import DeadJob, Retry, SnoozeJob, job
from django_jobqueue.handlers import JobContext
from tests.crash.app.models import Effect
from tests.crash.ledger import PULSE, alive, recorded, sleep

from . import hostile  # noqa: F401 - its handlers are registered too

SOON = Retry(base=0.1, cap=0.5)


@job("crash:work", takes_context=True, retry=SOON)
def work(context: JobContext, n: int, seconds: float = 0) -> int:
    """Takes its time."""
    with recorded(context, n):
        sleep(context, seconds)
    return context.job.fence


@job("crash:async", takes_context=True, retry=SOON)
async def work_async(context: JobContext, n: int, seconds: float = 0) -> int:
    """The same on the event loop."""
    with recorded(context, n):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(PULSE, left))
            alive(context)
    return context.job.fence


@job("crash:query", takes_context=True, retry=SOON)
def query(context: JobContext, n: int) -> int:
    """Uses the ORM."""
    with recorded(context, n):
        Effect.objects.filter(n=-n).count()
    return context.job.fence


@job("crash:store", takes_context=True, retry=SOON, atomic=True)
def store(context: JobContext, n: int, seconds: float = 0) -> int:
    """Its effect and its completion are one transaction."""
    with recorded(context, n):
        Effect.objects.create(n=n, fence=context.job.fence)
        sleep(context, seconds)
    return context.job.fence


@job("crash:stumble", takes_context=True, retry=SOON)
def stumble(context: JobContext, n: int, times: int) -> int:
    """Fails so many times, then succeeds."""
    with recorded(context, n):
        if context.attempt <= times:
            raise RuntimeError(f"attempt {context.attempt}")
    return context.job.fence


@job("crash:snooze", takes_context=True, retry=SOON)
def snooze(context: JobContext, n: int, times: int) -> int:
    """Asks to be run later, so many times."""
    with recorded(context, n):
        if context.job.fence <= times:
            raise SnoozeJob(0.1)
    return context.job.fence


@job("crash:refuse", takes_context=True, retry=SOON)
def refuse(context: JobContext, n: int) -> None:
    """Dead at once."""
    with recorded(context, n):
        raise DeadJob("never")


@job("crash:poison", takes_context=True, retry=SOON)
def poison(context: JobContext, n: int) -> None:
    """Kills its worker each time."""
    with recorded(context, n):
        os.kill(os.getpid(), signal.SIGKILL)


@job("crash:write_long", takes_context=True, retry=SOON)
def write_long(context: JobContext, n: int, seconds: float) -> int:
    """Keeps a transaction open that has written: on SQLite nobody else writes meanwhile."""
    with recorded(context, n), transaction.atomic():
        Effect.objects.create(n=-1, fence=context.job.fence)
        sleep(context, seconds)
    return context.job.fence


if not os.environ.get("CRASH_OLD_CODE"):

    @job("crash:new", takes_context=True, retry=SOON)
    def new(context: JobContext, n: int) -> int:
        """A type that the older of two versions of the code does not know."""
        with recorded(context, n):
            pass
        return context.job.fence
