"""Handlers that do what handlers should not."""

import ctypes
import locale
import os
import tempfile
import time

from django.db import connections, transaction
from django.utils import timezone, translation

from django_jobqueue import Retry, job
from django_jobqueue.handlers import JobContext
from tests.crash.app.models import Effect
from tests.crash.ledger import recorded

SOON = Retry(base=0.1, cap=0.5)

_kept: list[bytearray] = []


@job("crash:hold_gil", takes_context=True, retry=SOON)
def hold_gil(context: JobContext, n: int, seconds: int) -> int:
    """No other Python code of its process runs meanwhile."""
    with recorded(context, n):
        ctypes.PyDLL(None).sleep(seconds)
    return context.job.fence


@job("crash:fork", takes_context=True, retry=SOON)
def fork(context: JobContext, n: int) -> int:
    """Leaves a child, which ends without a word."""
    with recorded(context, n):
        child = os.fork()
        if child == 0:
            time.sleep(0.2)
            os._exit(0)
        os.waitpid(child, 0)
    return context.job.fence


@job("crash:close_connections", takes_context=True, retry=SOON)
def close_connections(context: JobContext, n: int) -> int:
    """Closes every connection that it can see."""
    with recorded(context, n):
        Effect.objects.count()
        connections.close_all()
    return context.job.fence


@job("crash:open_transaction", takes_context=True, retry=SOON)
def open_transaction(context: JobContext, n: int) -> int:
    """Leaves a transaction open that has written."""
    with recorded(context, n):
        transaction.set_autocommit(False)
        Effect.objects.create(n=-2, fence=context.job.fence)
    return context.job.fence


@job("crash:disturb", takes_context=True, retry=SOON)
def disturb(context: JobContext, n: int) -> int:
    """Changes everything that a process has only once."""
    with recorded(context, n):
        os.chdir(tempfile.gettempdir())
        locale.setlocale(locale.LC_ALL, "C")
        translation.activate("de")
        timezone.activate("Asia/Kolkata")
        os.environ["TZ"] = "America/St_Johns"
        time.tzset()
        for name in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
            os.environ.pop(name, None)
    return context.job.fence


@job("crash:grow", takes_context=True, retry=SOON)
def grow(context: JobContext, n: int, mebibytes: int) -> int:
    """Takes memory that its process never gives back."""
    with recorded(context, n):
        _kept.append(bytearray(b"x") * (mebibytes * 1_048_576))
    return context.job.fence
