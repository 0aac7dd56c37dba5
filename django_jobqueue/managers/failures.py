"""An exception as the job row keeps it: safe to store whatever it is, bounded, and with a fingerprint."""

from __future__ import annotations

import json
import traceback
from types import TracebackType
from typing import Any, NamedTuple

from .. import logs, registry
from ..exceptions import DeadJob, JobControl, RetryJob
from ..payloads import clean_text
from ..redaction import hides_anything, redact_text
from ..registry import JobType
from ..retries import DEFAULT_RETRY, delay_after

#: Characters of a message, and of a traceback, kept for each attempt.
MESSAGE_LIMIT = 2_000
TRACEBACK_LIMIT = 16_000


class Failure(NamedTuple):
    """What is stored of a failed attempt; times, worker and number are added by the database."""

    error: str  # JSON: exception, message, traceback
    fingerprint: str  # exception class and place, without varying text
    text: str  # for the job's last_error

    def as_params(self) -> dict[str, object]:
        """As the parameters of statements that record the same failure on every row."""
        return {"error": self.error, "fingerprint": self.fingerprint, "last_error": self.text}


def describe(exception: BaseException, trace: TracebackType | None = None, *, job: Any = None) -> Failure:
    """The failure that ``exception`` is. Never raises, whatever its ``str()`` or its class does.

    ``job``: whose attempt failed, so that the values in its payload that JOBQUEUE["REDACT"] hides are not
    stored with the error.
    """
    payload = job.payload if job is not None and hides_anything() else None
    positions = () if payload is None else registry.positions(job.job_type, payload)
    path = _path(exception)
    message = clean_text(redact_text(_message(exception), payload, positions), MESSAGE_LIMIT)
    trace = trace if trace is not None else exception.__traceback__
    error = {
        "exception": path,
        "message": message,
        "traceback": clean_text(
            redact_text(_traceback(exception, trace), payload, positions), TRACEBACK_LIMIT
        ),
    }
    return Failure(json.dumps(error), _fingerprint(path, trace), f"{path}: {message}" if message else path)


def describe_cause(cause: type[BaseException], message: str) -> Failure:
    """A failure that the queue itself found: no handler raised it, so there is no traceback."""
    path = f"{cause.__module__}.{cause.__qualname__}"
    error = {"exception": path, "message": message, "traceback": ""}
    return Failure(json.dumps(error), path, f"{path}: {message}")


def next_delay(exception: BaseException, job: Any, job_type: JobType | None) -> float | None:
    """Seconds until the next attempt, None for never: what the exception says, or else the type's rule.

    A rule that is broken itself is logged, and the default delay is used: it must not cost a job.
    """
    if isinstance(exception, (DeadJob, *(job_type.never_retry if job_type else ()))):
        return None
    if isinstance(exception, RetryJob) and isinstance(exception.delay, float):
        return exception.delay
    try:
        if job_type is not None:
            return job_type.delay_after(exception, job)
        return delay_after(DEFAULT_RETRY, exception, job)
    except BaseException:  # a rule that calls sys.exit() is just as broken
        logs.retry_rule_failed(job)
        return delay_after(DEFAULT_RETRY, exception, job)


def _path(exception: BaseException) -> str:
    kind = type(exception)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return clean_text(name, MESSAGE_LIMIT)


def _message(exception: BaseException) -> str:
    try:
        return str(exception)
    except BaseException as broken:
        return f"(its message could not be made: {type(broken).__qualname__})"


def _traceback(exception: BaseException, trace: TracebackType | None) -> str:
    if isinstance(exception, JobControl):
        return ""  # the handler said what it wants; where it said so is no news
    try:
        return "".join(traceback.format_exception(type(exception), exception, trace))
    except BaseException as broken:
        return f"(the traceback could not be made: {type(broken).__qualname__})"


def _fingerprint(path: str, trace: TracebackType | None) -> str:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return path
    code = trace.tb_frame.f_code
    return clean_text(f"{path} in {trace.tb_frame.f_globals.get('__name__', '?')}.{code.co_qualname}", 300)
