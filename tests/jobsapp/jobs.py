"""Handlers that note what happens to them, and do what handlers should not."""

import asyncio
import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from django.contrib.auth.models import Group

from django_jobqueue import job
from django_jobqueue.handlers import JobContext

from . import isolated  # noqa: F401 - they are registered too
from .ledger import note, noted

#: Seconds after which a gate that never opens lets its jobs go.
PATIENCE = 120

_kept: list[bytearray] = []


@job("tests:nothing")
def nothing() -> None:
    """The shortest."""


@job("tests:touch", takes_context=True)
def touch(context: JobContext, n: int = 0) -> int:
    """Short."""
    with noted(context, n=n, key=context.job.lock_key):
        return n


@job("tests:sleep", takes_context=True)
def sleep(context: JobContext, seconds: float) -> None:
    """Takes a while."""
    with noted(context, key=context.job.lock_key):
        time.sleep(seconds)


@job("tests:wait", takes_context=True)
def wait(context: JobContext, gate: str) -> int:
    """Runs until the test makes the file."""
    with noted(context):
        deadline = time.monotonic() + PATIENCE
        while not Path(gate).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    return os.getpid()


@job("tests:wait_own", takes_context=True)
def wait_own(context: JobContext, gate: str) -> int:
    """The same with a gate for each process: its id is added to the name."""
    with noted(context):
        deadline = time.monotonic() + PATIENCE
        while not Path(f"{gate}-{os.getpid()}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    return os.getpid()


@job("tests:async_wait", takes_context=True)
async def async_wait(context: JobContext, gate: str) -> int:
    """The same on the event loop."""
    with noted(context):
        deadline = time.monotonic() + PATIENCE
        while not Path(gate).exists() and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
    return os.getpid()


@job("tests:until_cancelled", takes_context=True)
def until_cancelled(context: JobContext, raises: bool) -> str:
    """Runs until somebody asks it to stop."""
    with noted(context):
        deadline = time.monotonic() + PATIENCE
        while not context.cancelled and time.monotonic() < deadline:
            time.sleep(0.01)
        note("seen", job=str(context.job.id))
        if raises:
            raise RuntimeError("stopped as asked")
    return "the end"


@job("tests:async_until_cancelled", takes_context=True)
async def async_until_cancelled(context: JobContext, raises: bool) -> str:
    """The same on the event loop."""
    with noted(context):
        deadline = time.monotonic() + PATIENCE
        while not context.cancelled and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        note("seen", job=str(context.job.id))
        if raises:
            raise RuntimeError("stopped as asked")
    return "the end"


@job("tests:gil", takes_context=True)
def hold_gil(context: JobContext, seconds: int) -> None:
    """No other Python code of its process runs meanwhile."""
    with noted(context):
        ctypes.PyDLL(None).sleep(seconds)


@job("tests:kill", takes_context=True)
def kill(context: JobContext) -> None:
    """As the kernel does when memory is out."""
    note("start", job=str(context.job.id), fence=context.job.fence, attempt=context.attempt)
    os.kill(os.getpid(), signal.SIGKILL)


@job("tests:leave", takes_context=True)
def leave(context: JobContext, code: int) -> None:
    """Takes its process along."""
    note("start", job=str(context.job.id), fence=context.job.fence, attempt=context.attempt)
    os._exit(code)


@job("tests:query", takes_context=True)
def query(context: JobContext) -> int:
    """Uses the ORM."""
    with noted(context):
        return Group.objects.count()


@job("tests:grow", takes_context=True)
def grow(context: JobContext, mebibytes: int) -> None:
    """Memory that its process never gives back."""
    with noted(context):
        _kept.append(bytearray(b"x") * (mebibytes * 1_048_576))


@job("tests:deaf", takes_context=True)
def deaf(context: JobContext, gate: str) -> None:
    """Runs until the test makes the file, whatever is raised in it."""
    with noted(context):
        deadline = time.monotonic() + PATIENCE
        while not Path(gate).exists() and time.monotonic() < deadline:
            with suppress(BaseException):
                time.sleep(0.01)


@job("tests:async_deaf", takes_context=True)
async def async_deaf(context: JobContext, gate: str) -> None:
    """The same on the event loop, which it holds up."""
    deaf(context, gate)
