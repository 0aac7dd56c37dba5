"""Tasks that do what the tests of the backend want to see."""

import asyncio
import ctypes
import os
import time
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone, translation

from django_jobqueue import DeadJob, Retry, RetryJob, SnoozeJob, task

#: What the back-off function was given.
asked: list[tuple[BaseException, Any]] = []
#: What tasks saw of their context.
seen: list[Any] = []


@task
def noop(*args: Any, **kwargs: Any) -> None:
    """Takes anything."""


@task()
async def noop_async(*args: Any, **kwargs: Any) -> None:
    """Takes anything."""


@task
def answer() -> int:
    return 42


@task
def echo(*args: Any, **kwargs: Any) -> Any:
    return {"args": args, "kwargs": kwargs}


@task
async def echo_async(*args: Any, **kwargs: Any) -> Any:
    await asyncio.sleep(0)
    return {"args": args, "kwargs": kwargs}


@task(max_attempts=1)
def failing() -> None:
    raise ValueError("This failed by intent")


@task(max_attempts=1)
async def failing_async() -> None:
    raise ValueError("This failed by intent")


@task(max_attempts=1)
def complex_exception() -> None:
    raise ValueError(ValueError("This failed by intent"))


@task(max_attempts=1)
def complex_result() -> Any:
    return lambda: True


@task(max_attempts=1)
def exiting() -> None:
    raise SystemExit(1)


@task(max_attempts=1)
def interrupted() -> None:
    raise KeyboardInterrupt


@task(takes_context=True)
def look(context: Any, *args: Any) -> str:
    seen.append(context)
    seen.append(context.task_result)
    context.progress(1, 4, "a quarter")
    return str(context.task_result.id)


@task(takes_context=True, max_attempts=3, backoff=Retry(base=0))
def fails_twice(context: Any) -> int:
    seen.append(context.task_result)
    if context.attempt < 3:
        raise LookupError(f"attempt {context.attempt}")
    return int(context.attempt)


@task(takes_context=True, max_attempts=3, backoff=Retry(base=0))
async def fails_twice_async(context: Any) -> int:
    seen.append(context.task_result)
    if context.attempt < 3:
        raise LookupError(f"attempt {context.attempt}")
    return int(context.attempt)


def note_backoff(exception: BaseException, task_result: Any) -> float | timedelta | None:
    """A back-off function."""
    asked.append((exception, task_result))
    return timedelta(seconds=90)


def give_up(exception: BaseException, task_result: Any) -> None:
    """A back-off function that knows no second attempt."""


@task(max_attempts=3, backoff=note_backoff)
def backs_off() -> None:
    raise LookupError("again")


@task(max_attempts=3, backoff="tests.tasks.sample.note_backoff")
async def backs_off_async() -> None:
    raise LookupError("again")


@task(max_attempts=5, never_retry=[KeyError])
def refused() -> None:
    raise KeyError("never")


@task(atomic=True, max_attempts=1)
def half_done() -> None:
    Group.objects.create(name="half")
    raise ValueError("after the write")


@task(dedupe_key=lambda report, **rest: f"report:{report}", lock_key="reports")
def keyed(report: int, form: str = "csv") -> str:
    return f"{report}.{form}"


@task(expires_after=timedelta(hours=1))
def soon() -> None:
    """Not needed later."""


@task
def surroundings() -> list[str | None]:
    return [translation.get_language(), timezone.get_current_timezone_name()]


@task(priority=7, queue_name="default")
def urgent() -> None:
    """Before others."""


@task
def no_backoff() -> None:
    raise LookupError("again")


@task(takes_context=True, max_attempts=3, backoff=Retry(base=0))
def one_in_twenty_fails_once(context: Any, n: int) -> int:
    if n % 20 == 0 and context.attempt == 1:
        raise LookupError(f"{n} at first")
    return n * 2


@task(max_attempts=3)
def steering(what: str) -> None:
    raise {"retry": RetryJob(90), "snooze": SnoozeJob(90), "dead": DeadJob("enough")}[what]


@task(timeout=0.5, max_attempts=1)
def endless() -> None:
    while True:
        time.sleep(0.01)


@task(timeout=0.5, max_attempts=1)
async def endless_async() -> None:
    while True:
        await asyncio.sleep(0.01)


@task(max_attempts=1, backoff=Retry(base=7), timeout=30, expires_after=timedelta(minutes=5))
def login(user: str, password: str = "", *codes: str) -> None:
    raise ValueError(f"{user} may not come in with {password}, {codes}")


@task(isolated=True)
def apart() -> int:
    return os.getpid()


@task(isolated=True, max_attempts=1, timeout=1)
def apart_gil() -> None:
    """No Python code of its process runs meanwhile."""
    ctypes.PyDLL(None).sleep(60)


@task(isolated=True, max_memory=64, max_attempts=1)
def apart_eats(mebibytes: int) -> int:
    return len(bytearray(mebibytes * 1024 * 1024))
