"""Which job types there are: their functions and options. Knows no model and no database."""

from __future__ import annotations

import difflib
import fnmatch
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from . import conf
from .bounds import TIMEOUT_KEY, check_timeout, check_whole
from .dedupe import RETURN, Dedupe
from .exceptions import InvalidOption, InvalidPayload, JobTimeout, UnknownJobType, as_seconds
from .payloads import decode
from .retries import DEFAULT_RETRY, Retry, RetryPolicy, delay_after
from .signatures import function_signature
from .states import DEFAULT_QUEUE, JOB_TYPE_LENGTH, MAX_ATTEMPTS_LIMIT, PRIORITY_MAX, PRIORITY_MIN

MAX_MEMORY_LIMIT = 1_048_576  # MiB

Key = str | Callable[..., str | None] | None


@dataclass(frozen=True, kw_only=True)
class JobType:
    """A name, the function that serves it, and the options its jobs get unless the call says otherwise."""

    name: str
    function: Callable[..., Any]
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_attempts: int | None = None  # None: JOBQUEUE["MAX_ATTEMPTS"] when the job is enqueued
    retry: RetryPolicy = DEFAULT_RETRY
    never_retry: tuple[type[BaseException], ...] = ()
    timeout: float | timedelta | None = None  # that the handler may run
    expires_after: float | timedelta | None = None  # from the due time: not started by then, never
    dedupe_key: Key = None
    dedupe: Dedupe = RETURN
    lock_key: Key = None
    atomic: bool = False
    takes_context: bool = False
    isolated: bool = False  # in a child process of its own
    max_memory: int | None = None  # MiB that an isolated handler may take
    is_async: bool = field(init=False)
    limit: float | None = field(init=False)  # the timeout in seconds
    lifetime: float | None = field(init=False)  # expires_after in seconds
    signature: inspect.Signature = field(init=False, repr=False, compare=False)
    _names: Set[str] = field(init=False, repr=False, compare=False)  # of the handler's arguments

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", inspect.iscoroutinefunction(self.function))
        object.__setattr__(self, "signature", self._payload_signature())
        object.__setattr__(self, "_names", self.signature.parameters.keys())
        object.__setattr__(self, "limit", check_timeout(self.timeout, self.what))
        object.__setattr__(self, "lifetime", self._lifetime())
        self._check_options()

    def _lifetime(self) -> float | None:
        given = self.expires_after
        return None if given is None else as_seconds(given, f"{self.what}: expires_after")

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The payload for these arguments. Raises ``InvalidPayload`` if the function could not take them."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise InvalidPayload(
                "payload", f"does not fit the handler of {self.name!r}{self.signature}: {problem}."
            ) from None
        payload = self._by_name(bound)
        if self.takes_context and "context" in payload:
            raise InvalidPayload(
                "payload.context", f"is what the handler of {self.name!r} gets from the worker."
            )
        return payload

    def check(self, payload: Mapping[str, Any]) -> None:
        """Raise ``InvalidPayload`` if the function could not take these arguments."""
        # Exact names are what a payload mostly has; binding takes fifty times as long.
        if payload.keys() != self._names:
            self.bind((), payload)

    def key_for(self, key: Key, payload: Mapping[str, Any]) -> str | None:
        """A dedupe or lock key: as written, or worked out by the type's function from the arguments."""
        if not callable(key):
            return key
        bound = self.signature.bind(**payload)
        bound.apply_defaults()
        return key(**self._by_name(bound))

    def limit_in(self, context_text: str) -> float | None:
        """Seconds that the handler of a job with this context may run: what its call said, or the type."""
        if TIMEOUT_KEY not in context_text:
            return self.limit
        limit: float | None = decode(context_text).get(TIMEOUT_KEY, self.limit)
        return limit

    # What a face of the queue may do differently for its own jobs.

    @property
    def what(self) -> str:
        """How errors name it."""
        return f"@job({self.name!r})"

    def call(self, attempt: Any, payload: Mapping[str, Any]) -> Any:
        """Call the function for an attempt; a coroutine if it is async."""
        if self.takes_context:
            return self.function(attempt.context(), **payload)
        return self.function(**payload)

    def result_of(self, value: Any) -> Any:
        """What is stored of what the function returned."""
        return value

    def policy_for(self, job: Any) -> Any:
        """By what the job is tried again: a ``Retry`` or a function."""
        return self.retry

    def delay_after(self, exception: BaseException, job: Any) -> float | None:
        """Seconds until the next attempt, None for never; see ``retries.delay_after``."""
        return delay_after(self.policy_for(job), exception, job)

    #: For what a person has written: that the function could take it, where ``check`` asks for less.
    check_call = check

    def positions(self, payload: Mapping[str, Any]) -> Sequence[str]:
        """The names of the arguments that stand in ``payload["args"]``, in a payload of that form."""
        return ()

    #: What a handler that ran for too long is interrupted by.
    timeout_error: ClassVar[type[JobTimeout]] = JobTimeout

    @property
    def is_watched(self) -> bool:
        """Whether ``begins`` and ``ends`` call code of others, which may use the database."""
        return False

    def begins(self, attempt: Any) -> None:
        """Called just before the function."""

    def ends(self, attempt: Any, outcome: Any) -> None:
        """Called with what came of it, before that is written; for a failure inside its ``except``."""

    def _by_name(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """The arguments as one dict, what the function gathers in **kwargs too."""
        arguments: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                arguments.update(value)
            else:
                arguments[name] = value
        return arguments

    def _payload_signature(self) -> inspect.Signature:
        """The function's signature without the context: what a payload may contain."""
        try:
            signature = function_signature(self.function)
        except (TypeError, ValueError) as problem:
            raise InvalidOption(f"{self.what}: {problem}. Wrap it in a function of its own.") from None
        parameters = list(signature.parameters.values())
        if self.takes_context:
            if not parameters or parameters[0].name != "context":
                raise InvalidOption(
                    f"@job({self.name!r}, takes_context=True): the first argument of "
                    f"{self.function.__qualname__} must be named 'context'."
                )
            parameters = parameters[1:]
        for parameter in parameters:
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise InvalidOption(
                    f"{self.what}: the argument {parameter.name!r} of {self.function.__qualname__} "
                    "has no name in a payload. Make it an ordinary or keyword-only argument."
                )
        return signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)

    def _check_options(self) -> None:
        what = self.what
        if not isinstance(self.name, str) or not 1 <= len(self.name) <= JOB_TYPE_LENGTH:
            raise InvalidOption(f"{what}: a job type is text of 1 to {JOB_TYPE_LENGTH} characters.")
        check_whole("priority", self.priority, PRIORITY_MIN, PRIORITY_MAX, what)
        if self.max_attempts is not None:
            check_whole("max_attempts", self.max_attempts, 1, MAX_ATTEMPTS_LIMIT, what)
        if not callable(self.retry) and not isinstance(self.retry, Retry):
            raise InvalidOption(
                f"{what}: retry={self.retry!r} must be a Retry(...) or a function (exception, job) -> "
                "seconds or None."
            )
        for word, reason in _OF_PLAIN_FUNCTIONS.items():
            if getattr(self, word) and self.is_async:
                raise InvalidOption(
                    f"{what}: {word}=True needs a plain function, since {reason}: drop {word} or write 'def'."
                )
        if self.max_memory is not None:
            check_whole("max_memory", self.max_memory, 1, MAX_MEMORY_LIMIT, what)
            if not self.isolated:
                raise InvalidOption(
                    f"{what}: max_memory={self.max_memory!r} needs isolated=True, since threads share their "
                    "memory. A whole process is bounded by runworker --max-memory."
                )
        for exception in self.never_retry:
            if not (isinstance(exception, type) and issubclass(exception, BaseException)):
                raise InvalidOption(
                    f"{what}: never_retry contains {exception!r}, which is no exception class."
                )


_OF_PLAIN_FUNCTIONS = {
    "atomic": "a database transaction belongs to one thread, and an async handler has none of its own",
    "isolated": "its process runs one job at a time",
}


_types: dict[str, JobType] = {}
#: Types that a resolver found by their name; apart from the registered, since these can be looked for again.
_found: dict[str, JobType] = {}

Resolver = Callable[[str], JobType | None]
_resolvers: list[Resolver] = []


def register(job_type: JobType) -> None:
    """Make a type known. Raises ``InvalidOption`` if another function has the name."""
    known = _types.get(job_type.name)
    if known is not None and _place(known.function) != _place(job_type.function):
        raise InvalidOption(
            f"Two handlers are named {job_type.name!r}: {_place(known.function)} and "
            f"{_place(job_type.function)}. A job type names exactly one handler: rename one."
        )
    _types[job_type.name] = job_type
    _found.clear()


def unregister(name: str) -> None:
    """Forget a type; for tests that register one."""
    _types.pop(name, None)
    _found.clear()


def resolve_by(resolver: Resolver) -> None:
    """Ask ``resolver`` for types that nobody has registered. It is asked often, and has to be quick."""
    if resolver not in _resolvers:
        _resolvers.append(resolver)


def forget_found() -> None:
    """Look again for what resolvers found, and for what aliases lead to."""
    _found.clear()


def positions(name: str, payload: Any) -> Sequence[str]:
    """``JobType.positions`` of the type of that name; nothing if it is not known here."""
    job_type = find(name) if isinstance(payload, Mapping) else None
    return () if job_type is None else job_type.positions(payload)


def find(name: str) -> JobType | None:
    """The type of that name, or of the one that JOBQUEUE["ALIASES"] names for it, if it is known here."""
    return _types.get(name) or _found.get(name) or _look_for(name)


def _look_for(name: str) -> JobType | None:
    target = conf.current().ALIASES.get(name, name)
    job_type = _types.get(target) or next(filter(None, (resolve(target) for resolve in _resolvers)), None)
    if job_type is not None:
        _found[name] = job_type
    return job_type


def get(name: str, external: Sequence[str] = ()) -> JobType | None:
    """The type of that name; None if it matches a name or pattern in ``external``.

    Raises ``UnknownJobType`` with the nearest names for any other.
    """
    job_type = find(name)
    if job_type is None and not any(fnmatch.fnmatchcase(name, pattern) for pattern in external):
        raise UnknownJobType(name, difflib.get_close_matches(str(name), _types, n=3))
    return job_type


def all_types() -> list[JobType]:
    """Every registered type, by name."""
    return [_types[name] for name in sorted(_types)]


def names_of(kinds: Collection[bool]) -> list[str]:
    """The names, aliases among them, of the types that are of one of these kinds: async or not."""
    known = {**_found, **_types}
    return sorted(name for name, one in known.items() if one.is_async in kinds)


def kinds() -> set[bool]:
    """Which kinds of handlers there are: True for async, False for plain ones."""
    return {one.is_async for one in (*_types.values(), *_found.values())}


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"
