"""The site under attack: the test project with the suite's own handlers, as careful people configure it."""

import itertools
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from os import environ
from types import FrameType
from typing import Any

from django_jobqueue.conf import KEYS
from testproject.settings import *  # noqa: F403
from testproject.settings import DATABASES, INSTALLED_APPS

DEBUG = False
INSTALLED_APPS = [*INSTALLED_APPS, "tests.crash.app"]

options: dict[str, Any] = DATABASES["default"]["OPTIONS"]
if "sqlite" not in DATABASES["default"]["ENGINE"]:
    # A server that has gone without a word is noticed within some seconds; see docs/how-to.
    options |= {
        "connect_timeout": 2,
        "keepalives_idle": 2,
        "keepalives_interval": 1,
        "keepalives_count": 2,
        "tcp_user_timeout": 4_000,
    }
if threshold := environ.get("CRASH_PREPARE"):
    options |= {"prepare_threshold": int(threshold), "server_side_binding": True}
DATABASES["default"]["CONN_MAX_AGE"] = 60
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

JOBQUEUE: dict[str, Any] = {}
if "MAX_CRASHES" in KEYS:
    JOBQUEUE["MAX_CRASHES"] = 30_000  # an innocent job is hit by more faults here than in many years
if direct := environ.get("CRASH_LISTEN_DSN"):
    JOBQUEUE["LISTEN_DSN"] = direct

if environ.get("FAKETIME_TIMESTAMP_FILE"):
    # libfaketime moves the absolute monotonic time until which Python's own sleep waits.
    time.sleep = lambda seconds: select.select([], [], [], seconds) and None


def _terminate_at_line(number: int) -> None:
    """Send SIGTERM to the supervisor when so many lines of the package were run here."""
    left = itertools.count(number, -1)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if "/django_jobqueue/" not in frame.f_code.co_filename:
            return None
        if event == "line" and next(left) == 0:
            os.kill(os.getppid() if multiprocessing.parent_process() else os.getpid(), signal.SIGTERM)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


if line := environ.get("CRASH_TERM_AT_LINE"):
    here = "child" if multiprocessing.parent_process() else "supervisor"
    if here == environ["CRASH_TERM_IN"]:
        _terminate_at_line(int(line))
