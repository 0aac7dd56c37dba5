"""Ending a handler from outside: an exception in its thread, or the cancel of its task, and nowhere else.

A thread cannot be stopped, but Python can be told to raise an exception in it, some time soon. So that it
never arrives in the worker's own code, nor in the next job, both sides say what they do before they look at
what the other says: who interrupts sets ``interruption`` and then reads ``runner``; the handler's thread
clears ``runner`` and then reads ``interruption``. At least one of them sees the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys
import threading
import time
from types import FrameType
from typing import Any, Protocol

from .exceptions import JobInterrupted

#: Packages that hold locks of their own: an exception that arrives in one may leave it locked for good.
DELICATE = {"importlib", "logging", "threading"}
#: Seconds to wait for a moment outside of those; a handler that waits in one for ever has no such moment.
PATIENCE = 1.0
STEP = 0.01
#: The function below which a thread runs a handler's code.
RUNS_HANDLER = "_perform"

#: SENT: an exception is on its way to the thread, or was. TOLD: the task or process was told in another way.
AIMED, SENT, TOLD, WITHDRAWN = range(4)

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)


class Interruption:
    """Why and when a handler was interrupted, and whether that is on its way."""

    __slots__ = ("at", "cause", "state")

    def __init__(self, cause: JobInterrupted) -> None:
        self.cause = cause
        self.at = time.monotonic()
        self.state = AIMED


class Interruptible(Protocol):
    """An attempt. ``runner`` is, just while the handler runs, its thread's id, its task, or what ends it."""

    runner: Any
    interruption: Interruption | None


def interrupt(attempt: Interruptible, cause: JobInterrupted) -> bool:
    """Raise ``cause`` in the handler, if it runs just now; whether it does. Once for each attempt."""
    attempt.interruption = interruption = Interruption(cause)
    runner = attempt.runner
    if runner is None:
        _withdraw(attempt, interruption)
    elif isinstance(runner, int):
        _interrupt_thread(attempt, interruption, runner)
    elif callable(runner):
        runner()
        interruption.state = TOLD
    else:
        with contextlib.suppress(RuntimeError):  # its loop has been closed
            runner.get_loop().call_soon_threadsafe(_cancel_task, attempt, interruption, runner)
    return interruption.state != WITHDRAWN


def absorb(interruption: Interruption) -> None:
    """In the handler's thread, after ``runner`` was cleared: once this is over, nothing arrives any more.

    The exception may arrive in here, too late for the handler: then what the handler did stands.
    """
    try:
        while interruption.state == AIMED:
            time.sleep(STEP / 10)
        if interruption.state == SENT:
            # One arrives for certain: what is still on its way, or this in its place. Taken back instead, it
            # would leave Python 3.11 and 3.12 looking for it at every line from then on, and under a
            # debugger, a profiler or coverage's tracer at one and the same line for ever.
            _raise_in(threading.get_ident(), JobInterrupted)
            while True:
                time.sleep(0)
    except JobInterrupted:
        pass


def ended_by(exception: BaseException, attempt: Interruptible) -> BaseException:
    """What ended the handler: our own reason, if it is that which interrupted it; else what it raised."""
    interruption = attempt.interruption
    if interruption is None or not isinstance(exception, JobInterrupted | asyncio.CancelledError):
        return exception
    return interruption.cause.with_traceback(exception.__traceback__)


def _withdraw(attempt: Interruptible, interruption: Interruption) -> None:
    """It is not running; perhaps it will."""
    attempt.interruption = None
    interruption.state = WITHDRAWN


def _interrupt_thread(attempt: Interruptible, interruption: Interruption, thread: int) -> None:
    patience = int(PATIENCE / STEP)
    while attempt.runner is not None and patience and _is_delicate(sys._current_frames().get(thread)):
        time.sleep(STEP)
        patience -= 1
    if attempt.runner is None:
        _withdraw(attempt, interruption)
    else:  # if it ends just now, it waits for our next line
        _raise_in(thread, type(interruption.cause))
        interruption.state = SENT


def _is_delicate(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in DELICATE:
            return True
        if frame.f_code.co_name == RUNS_HANDLER:
            return False
        frame = frame.f_back
    return False


def _cancel_task(attempt: Interruptible, interruption: Interruption, task: asyncio.Task[Any]) -> None:
    """On the task's loop."""
    if attempt.runner is task:
        interruption.state = TOLD
        task.cancel()
    else:
        _withdraw(attempt, interruption)
