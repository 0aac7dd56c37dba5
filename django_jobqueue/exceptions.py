"""One class per cause. Those a handler raises say what should become of its job."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

#: Ten years in seconds: beyond it a delay is a mistake, and dates would overflow.
MAX_DELAY = 10 * 365.25 * 86_400


class JobQueueError(Exception):
    """Base of every error of the queue itself."""


class InvalidPayload(JobQueueError, ValueError):
    """A payload that cannot be stored and given back unchanged. ``path`` says where in it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class InvalidResult(InvalidPayload):
    """A handler returned what JSON cannot hold; its attempt counts as failed."""


class InvalidOption(JobQueueError, ValueError):
    """An option out of its range. The message names the value, the rule and the remedy."""


class UnknownJobType(JobQueueError, LookupError):
    """No handler has this name here."""

    def __init__(self, name: str, nearest: Iterable[str]) -> None:
        near = ", ".join(repr(candidate) for candidate in nearest)
        super().__init__(
            f"No handler is registered for the job type {name!r}. "
            + (f"Nearest registered names: {near}. " if near else "")
            + "Decorate one with @job in an app's jobs.py, or list the type in "
            'JOBQUEUE["EXTERNAL_TYPES"] if other code serves it.'
        )
        self.name = name


class UnknownQueue(JobQueueError, LookupError):
    """The queue is not among the declared ones."""

    def __init__(self, name: str, declared: Iterable[str]) -> None:
        super().__init__(
            f'The queue {name!r} is not one of those declared in JOBQUEUE["QUEUES"] '
            f"({', '.join(sorted(declared))}). Add it there, or correct the name."
        )
        self.name = name


class UnsupportedDatabase(JobQueueError):
    """The database lacks what the queue stands on (partial unique indexes, RETURNING)."""


class EnqueueContended(JobQueueError):
    """The dedupe key changed hands at every try. Nothing was stored; enqueue again."""

    def __init__(self, dedupe_key: str) -> None:
        super().__init__(
            f"Three times in a row the holder of the dedupe key {dedupe_key!r} finished between our "
            "insert and our look-up. Nothing was stored: enqueue again."
        )


class DuplicateJob(JobQueueError):
    """The dedupe key is taken, and the policy is "raise". ``job`` is the one that has it."""

    def __init__(self, job: Any) -> None:
        super().__init__(
            f"Job {job.id} ({job.job_type}) is active and has the dedupe key {job.dedupe_key!r}. Nothing was "
            'stored. Leave out dedupe="raise" to get that job instead of this error.'
        )
        self.job = job


class WaitTimeout(JobQueueError, TimeoutError):
    """The job has not ended in time; it goes on. ``job`` is what it was at the last look."""

    def __init__(self, job: Any, timeout: float | timedelta) -> None:
        unit = "" if isinstance(timeout, timedelta) else " s"
        super().__init__(
            f"Job {job.id} ({job.job_type}) has not ended within {timeout}{unit}: it is "
            f"{job.get_status_display()}. It goes on; wait again, or look later."
        )
        self.job = job


class WaitInsideTransaction(JobQueueError):
    """Who waits in an open transaction may wait for ever."""

    def __init__(self, job_id: object, alias: str) -> None:
        super().__init__(
            f"wait() for job {job_id} inside an open transaction on {alias!r}: no worker sees a job before "
            "the transaction that enqueued it is committed, nor can it write what this one has locked, so it "
            "might wait for ever. Wait after the atomic block."
        )


class JobNotFound(JobQueueError, LookupError):
    """No job has this id: it was removed, or never committed."""

    def __init__(self, job_id: object) -> None:
        super().__init__(
            f"There is no job {job_id}: it was removed, its transaction was rolled back, or the id is wrong."
        )


class ClaimLost(JobQueueError):
    """The job was taken back from this worker; what it did in the queue's database is rolled back."""

    def __init__(self, job_id: object) -> None:
        super().__init__(f"Job {job_id} is no longer held by this worker, so its outcome is not written.")


# What a handler raises to say what should happen.


class JobControl(Exception):
    """Base of what a handler raises to steer its job."""


class RetryJob(JobControl):
    """Count this attempt as failed and try again, after ``delay`` (seconds or timedelta) if given."""

    delay: float | None = None  # also where a subclass forgets to call __init__

    def __init__(self, delay: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler asked for another attempt")
        self.delay = None if delay is None else as_seconds(delay)


class SnoozeJob(JobControl):
    """Not now: run the job again after ``delay`` (seconds or timedelta). Not counted as an attempt."""

    delay: float | None = None

    def __init__(self, delay: float | timedelta) -> None:
        super().__init__(f"the handler asked to be run again in {delay}")
        self.delay = as_seconds(delay)


class DeadJob(JobControl):
    """Refused for good: dead letter, whatever attempts are left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


# What ends a running handler from outside.


class JobInterrupted(BaseException):
    """Base of what ends a running handler from outside; raised in it, wherever it is.

    Not an ``Exception``: a handler's ``except Exception`` for its own troubles must not swallow it.
    """


class JobTimeout(JobInterrupted):
    """The handler ran longer than its ``timeout``."""

    @classmethod
    def after(cls, seconds: float | None) -> JobTimeout:
        """With the limit in its message."""
        return cls(f"ran longer than its timeout of {seconds:g} s")


class TaskTimeout(JobTimeout):
    """The same of a task of Django's API."""


class JobCancelled(JobInterrupted):
    """The handler was asked to stop, or its claim was lost, and it went on.

    In the result of a task: it was cancelled, whether or not it had started.
    """


# Causes that the queue itself records on a job.


class WorkerLost(JobQueueError):
    """The worker that held the job died or stopped renewing its lease."""


class UnknownTypeHere(JobQueueError):
    """No worker that took the job knew its type within JOBQUEUE["UNKNOWN_TYPE_GRACE"]."""


class TooManySnoozes(JobQueueError):
    """The job was snoozed more often than JOBQUEUE["MAX_SNOOZES"] allows."""


class TooManyReleases(JobQueueError):
    """The job was given back more often than JOBQUEUE["MAX_RELEASES"] allows."""


class TooManyCrashes(JobQueueError):
    """The job's worker died while it ran, as often as JOBQUEUE["MAX_CRASHES"] allows."""


class ProcessLost(JobQueueError):
    """The process of an isolated job ended before its handler did."""


class JobExpired(JobQueueError):
    """The job had not started when its ``expires_at`` came."""


def as_seconds(delay: float | timedelta, name: str = "delay") -> float:
    """Seconds of a number or timedelta; raises ``InvalidOption`` for what is negative, NaN or neither."""
    if isinstance(delay, timedelta):
        delay = delay.total_seconds()
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay < MAX_DELAY:
        raise InvalidOption(
            f"{name}={delay!r} must be a timedelta or seconds, from 0 to {MAX_DELAY:.0f} (ten years)."
        )
    return float(delay)
