"""Handlers that cost nothing themselves, so that what is measured is the queue."""

import os
import time

from django_jobqueue import job

from ..names import STAMPS


@job("bench:nothing")
def nothing(n: int = 0) -> None:
    """A plain function."""


@job("bench:async_nothing")
async def async_nothing(n: int = 0) -> None:
    """A coroutine."""


@job("bench:stamp")
def stamp(n: int) -> None:
    """Note when it started, by the clock that all processes of the system share."""
    now = time.monotonic()
    file = os.open(os.environ[STAMPS], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{n} {now}\n".encode())
    os.close(file)
