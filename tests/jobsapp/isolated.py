"""Handlers in processes of their own."""

import ctypes
import os
import time
from pathlib import Path

from django.contrib.auth.models import Group

from django_jobqueue import job
from django_jobqueue.exceptions import JobTimeout
from django_jobqueue.handlers import JobContext


@job("tests:apart", isolated=True)
def apart() -> int:
    """Where it ran."""
    return os.getpid()


@job("tests:apart_gil", isolated=True, timeout=1, max_attempts=1)
def apart_gil() -> None:
    """No Python code of its process runs meanwhile."""
    ctypes.PyDLL(None).sleep(60)


@job("tests:apart_careful", isolated=True, timeout=1, max_attempts=1)
def apart_careful() -> str:
    """Cleans up when its time is over."""
    try:
        while True:
            time.sleep(0.01)
    except JobTimeout:
        return "cleaned up"


@job("tests:apart_late", isolated=True, timeout=1, max_attempts=1)
def apart_late() -> None:
    """Does not."""
    while True:
        time.sleep(0.01)


@job("tests:apart_eats", isolated=True, max_memory=64, max_attempts=1)
def apart_eats(mebibytes: int) -> int:
    """Memory."""
    return len(bytearray(b"x") * (mebibytes * 1_048_576))


@job("tests:apart_dies", isolated=True, max_attempts=1)
def apart_dies(code: int) -> None:
    """Takes its process along."""
    os._exit(code)


@job("tests:apart_asked", isolated=True, takes_context=True)
def apart_asked(context: JobContext) -> None:
    """Until it is asked to stop."""
    context.progress(1, 4, "a quarter")
    while not context.cancelled:
        time.sleep(0.01)
    raise RuntimeError("stopped as asked")


@job("tests:apart_writes", isolated=True, atomic=True, max_attempts=1)
def apart_writes(gate: str) -> None:
    """In the transaction of its completion."""
    Group.objects.create(name="apart")
    if not Path(gate).exists():
        raise RuntimeError("not yet")
