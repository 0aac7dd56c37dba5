"""``@job``: a function becomes the handler of a job type; and the context that a handler may ask for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from asgiref.sync import sync_to_async

from . import registry
from .dedupe import Dedupe, as_dedupe
from .registry import JobType, Key
from .retries import DEFAULT_RETRY, RetryPolicy
from .states import DEFAULT_QUEUE

if TYPE_CHECKING:
    from .managers.preparing import EnqueueOptions
    from .models import Job

P = ParamSpec("P")
R = TypeVar("R")


class Handler(Generic[P, R]):
    """A decorated function: calls as before, and knows how to be enqueued."""

    def __init__(self, job_type: JobType, function: Callable[P, R]) -> None:
        self.job_type = job_type
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now, without a job."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Handler of {self.job_type.name!r}>"

    def enqueue(self, *args: Any, **kwargs: Any) -> Job:
        """Make a job that calls the function with these arguments; see ``Job.objects.enqueue``."""
        return Call(self.job_type, {}).enqueue(*args, **kwargs)

    async def aenqueue(self, *args: Any, **kwargs: Any) -> Job:
        """``enqueue`` for async code."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)

    def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> list[Job]:
        """Make a job for each payload (a dict of the function's arguments), in that order."""
        return Call(self.job_type, {}).enqueue_many(payloads)

    async def aenqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> list[Job]:
        """``enqueue_many`` for async code."""
        return await sync_to_async(self.enqueue_many)(payloads)

    def using(self, **options: Unpack[EnqueueOptions]) -> Call:
        """The same with other options for this call: ``handler.using(priority=10).enqueue(…)``."""
        return Call(self.job_type, options)


class Call:
    """A job type with options, ready to be enqueued."""

    def __init__(self, job_type: JobType, options: EnqueueOptions) -> None:
        from .managers.preparing import known_options

        self.job_type = job_type
        self.options = known_options(options)

    def using(self, **options: Unpack[EnqueueOptions]) -> Call:
        """Further options; later ones win."""
        return Call(self.job_type, {**self.options, **options})

    def enqueue(self, *args: Any, **kwargs: Any) -> Job:
        """Make a job that calls the function with these arguments."""
        payload = self.job_type.bind(args, kwargs)
        made: Job = _jobs().enqueue(self.job_type.name, payload, **self.options)
        return made

    async def aenqueue(self, *args: Any, **kwargs: Any) -> Job:
        """``enqueue`` for async code."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)

    def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> list[Job]:
        """Make a job for each payload, in that order."""
        named = [(self.job_type.name, one) for one in payloads]
        made: list[Job] = _jobs().enqueue_many(named, **self.options)
        return made

    async def aenqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> list[Job]:
        """``enqueue_many`` for async code."""
        return await sync_to_async(self.enqueue_many)(payloads)


def job(
    name: str,
    *,
    queue: str = DEFAULT_QUEUE,
    priority: int = 0,
    max_attempts: int | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    never_retry: Sequence[type[BaseException]] = (),
    timeout: float | timedelta | None = None,
    expires_after: float | timedelta | None = None,
    dedupe_key: Key = None,
    dedupe: Dedupe | str = "return",
    lock_key: Key = None,
    atomic: bool = False,
    takes_context: bool = False,
    isolated: bool = False,
    max_memory: int | None = None,
) -> Callable[[Callable[P, R]], Handler[P, R]]:
    """Make a function the handler of the job type ``name``. Write it in an app's ``jobs.py``.

    ``queue`` ("default"), ``priority`` (-100 … 100, higher first; 0), ``max_attempts`` (starts; None is
    JOBQUEUE["MAX_ATTEMPTS"]): for jobs that do not say otherwise. ``retry``: a ``Retry`` or a function
    ``(exception, job) -> seconds | None``. ``never_retry``: exceptions that make a job dead at once.
    ``timeout`` (seconds or timedelta, 0.1 s to 30 days; None: no limit): a handler that runs longer is
    interrupted by ``JobTimeout``, and its attempt failed. ``expires_after`` (seconds or timedelta): a job
    that has not started so long after its due time is CANCELLED, unless the call names its ``expires_at``.
    ``dedupe_key``, ``lock_key``: text, or a function that gets the handler's arguments by name, defaults
    filled in, and returns text or None. ``dedupe``: what an enqueue does when another job has the dedupe
    key, "return", "raise", "replace", or a ``Dedupe``.
    ``atomic``: the handler runs in a transaction of the queue's database, and its writes and its
    completion are committed together or not at all; plain functions only. ``takes_context``: the first
    argument is named ``context`` and gets a ``JobContext``. ``isolated``: each job runs in a child process,
    which can be killed, and in which it may take ``max_memory`` (MiB; None: no bound); plain functions only.

    Raises ``InvalidOption`` for an option out of range or a name that another function has.
    """
    options: dict[str, Any] = dict(locals())  # the arguments: there is nothing else yet
    options |= {"never_retry": tuple(never_retry), "dedupe": as_dedupe(dedupe)}

    def decorate(function: Callable[P, R]) -> Handler[P, R]:
        job_type = JobType(function=function, **options)
        registry.register(job_type)
        return Handler(job_type, function)

    return decorate


class JobContext:
    """What a handler with ``takes_context=True`` sees of its job, and how it reports back."""

    def __init__(
        self, job: Any, report: Callable[[float | None, str], None], cancelled: Callable[[], bool]
    ) -> None:
        self.job = job
        self._report = report
        self._cancelled = cancelled

    @property
    def attempt(self) -> int:
        """Which start this is, from 1."""
        return int(self.job.attempts)

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the job to stop, its time is over, or its claim was lost. Look now and then.

        A handler that was asked to stop and then returns is DONE with what it returns; one that raises is
        CANCELLED. One that does neither within JOBQUEUE["INTERRUPT_GRACE"] is interrupted.
        """
        return self._cancelled()

    def progress(self, current: float, total: float = 1, note: str = "") -> None:
        """Report progress, ``current`` of ``total``; stored by the worker about once a second."""
        self._report(_share(current, total), note)

    def track(self, items: Iterable[R], total: int | None = None, note: str = "") -> Iterator[R]:
        """The items, reporting progress as they are used up. ``total`` defaults to their ``len()``."""
        if total is None:
            total = len(items) if isinstance(items, Sized) else None
        for done, item in enumerate(items):
            self._report(_share(done, total), note)
            yield item
        self._report(1.0, note)


def _share(current: float, total: float | None) -> float | None:
    """``current`` of ``total`` as 0 … 1; None if that is unknown. Any kind of number will do."""
    if total is None:
        return None
    if not total:
        return 0.0
    share = float(current) / float(total)
    return None if math.isnan(share) else min(max(share, 0.0), 1.0)


def _jobs() -> Any:
    from .models import Job

    return Job.objects
