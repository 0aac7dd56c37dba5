"""``@task`` with the queue's options: a Task that carries them, the words, and what each of them may be."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.utils import timezone
from django.utils.module_loading import import_string

from ..bounds import check_timeout, check_whole
from ..compat import AnyTask, InvalidTask, Task, django_task, task_backends
from ..dedupe import Dedupe, as_dedupe
from ..exceptions import MAX_DELAY, InvalidOption, as_seconds
from ..registry import MAX_MEMORY_LIMIT, Key
from ..retries import Retry
from ..states import KEY_LENGTH, MAX_ATTEMPTS_LIMIT

R = TypeVar("R")

#: ``backoff(exception, task_result)``: seconds or timedelta until the next attempt, None for never again.
Backoff = Callable[[BaseException, Any], float | timedelta | None] | Retry | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQueueTask(AnyTask):
    """A Task with the queue's options. None: what OPTIONS of the backend say, then the queue's default."""

    max_attempts: int | None = None  # starts
    backoff: Backoff = None
    timeout: float | timedelta | None = None  # seconds of one attempt
    dedupe_key: Key = None
    dedupe: Dedupe | str | None = None
    lock_key: Key = None
    expires_after: float | timedelta | None = None  # seconds from the due time: not started by then, never
    atomic: bool = False
    never_retry: Sequence[type[BaseException]] = ()
    isolated: bool = False  # in a child process of its own
    max_memory: int | None = None  # MiB that it may take there

    def __post_init__(self) -> None:
        if isinstance(self.never_retry, list):
            object.__setattr__(self, "never_retry", tuple(self.never_retry))
        Task.__post_init__(self)  # not super(): a class with slots is not the one its methods were written in
        if isinstance(self.dedupe, str):
            object.__setattr__(self, "dedupe", as_dedupe(self.dedupe))
        for word in ("timeout", "expires_after"):
            if (value := getattr(self, word)) is not None:
                object.__setattr__(self, word, as_seconds(value, word))

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> JobQueueTask:
        """A new Task with these changes, and with any of the options that can be given to a call.

        ``run_after`` may also be a timedelta, from now. Raises ``InvalidTask`` or ``TypeError``.
        """
        if isinstance(run_after, timedelta):
            run_after = timezone.now() + run_after
        given = {"priority": priority, "queue_name": queue_name, "run_after": run_after, "backend": backend}
        changes = {name: value for name, value in given.items() if value is not None}
        return with_options(self, **changes, **known(options, PER_CALL, "using()"))

    def __reduce__(self) -> Any:
        # By its place and what differs there: a function in an option need not be picklable.
        try:
            declared = import_string(self.module_path)
        except ImportError:
            declared = None
        if not isinstance(declared, Task) or declared.func is not self.func:
            return _rebuilt, (type(self), values_of(self))
        theirs = values_of(declared)
        changes = {name: value for name, value in values_of(self).items() if theirs.get(name) != value}
        return _restored, (self.module_path, changes)


#: Options of a Task by field; of a call; and of the backend, as defaults.
WORDS = tuple(one.name for one in fields(JobQueueTask) if one.name not in Task.__dataclass_fields__)
PER_CALL = tuple(word for word in WORDS if word not in ("atomic", "never_retry", "isolated", "max_memory"))
DEFAULTS = ("max_attempts", "backoff", "timeout", "expires_after")


def task(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Django's ``@task`` and the queue's options, on every version of Django.

    Django's: ``priority`` (-100 … 100, higher first; 0), ``queue_name`` ("default"), ``backend`` (an alias
    of TASKS; "default"), ``takes_context`` (False). The queue's: ``max_attempts`` (starts), ``backoff``
    (a function ``(exception, task_result)``, its dotted path, or a ``Retry``), ``timeout`` (seconds or
    timedelta), ``dedupe_key`` and ``lock_key`` (text, or a function of the task's arguments),
    ``dedupe`` ("return", "raise", "replace" or a ``Dedupe``), ``expires_after`` (seconds or timedelta from
    the due time), ``atomic``, ``never_retry``, ``isolated`` and ``max_memory`` (MiB), as for ``@job``.

    Raises ``InvalidTask`` for a value that is out of range, ``TypeError`` for a word that nobody knows.
    """
    known(options, ("priority", "queue_name", "backend", "takes_context", "run_after", *WORDS), "@task")
    own = {word: options.pop(word) for word in WORDS if word in options}

    def decorate(function: Callable[..., Any]) -> Any:
        made = django_task(**options)(function)
        return with_options(made, **own) if own else made

    return decorate if function is None else decorate(function)


def with_options(task: AnyTask, **options: Any) -> JobQueueTask:
    """The Task with other options; also a Task that was declared for another backend.

    ``with_options(task, backend="jobs", max_attempts=5).enqueue(…)``. Raises like ``task``.
    """
    known(options, (*WORDS, *(one for one in Task.__dataclass_fields__ if one != "func")), "with_options()")
    values = {**values_of(task), **options}
    backend = task_backends[values["backend"]]
    kind = backend.task_class if issubclass(backend.task_class, JobQueueTask) else JobQueueTask
    return kind(**values)


def known(options: dict[str, Any], words: tuple[str, ...], where: str) -> dict[str, Any]:
    """The options. Raises ``TypeError`` for a word that is not among ``words``, with the nearest one."""
    for word in options:
        if word not in words:
            near = difflib.get_close_matches(word, words, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{where} has no option {word!r}.{hint} There are: {', '.join(sorted(words))}.")
    return options


def values_of(task: AnyTask) -> dict[str, Any]:
    """The fields of a Task, by name."""
    return {one.name: getattr(task, one.name) for one in fields(task)}


def restored(kind: type[AnyTask], values: Mapping[str, Any]) -> AnyTask:
    """A Task of these values as they once were valid: settings may have changed since."""
    made = object.__new__(kind)
    for one in fields(kind):
        object.__setattr__(made, one.name, values.get(one.name, one.default))
    return made


def _rebuilt(kind: type[AnyTask], values: dict[str, Any]) -> AnyTask:
    return restored(kind, values)


def _restored(module_path: str, changes: dict[str, Any]) -> AnyTask:
    """For pickle: the Task of that path, with changes."""
    declared = import_string(module_path)
    if not isinstance(declared, Task):
        raise ValueError(f"Expected {module_path!r} to point to a Task instance.")
    return restored(type(declared), {**values_of(declared), **changes})


# What each option may be.


def check_options(options: Mapping[str, Any], where: str) -> None:
    """Raise ``InvalidTask`` for the first option with a value that it may not have."""
    try:
        for word, value in options.items():
            if value is not None and word in _CHECKS:
                _CHECKS[word](word, value, where)
    except InvalidOption as problem:
        raise InvalidTask(str(problem)) from None


def backoff_of(value: Any) -> Any:
    """The ``Retry`` or function that a ``backoff`` is. Raises ``InvalidOption`` for a path to nothing."""
    if not isinstance(value, str):
        return value
    try:
        found = import_string(value)
    except ImportError as problem:
        raise InvalidOption(f"backoff={value!r} cannot be imported: {problem}.") from None
    if not callable(found) and not isinstance(found, Retry):
        raise InvalidOption(f"backoff={value!r} leads to {found!r}, which is no function and no Retry.")
    return found


def to_json(word: str, value: Any) -> Any:
    """An option of a call as it is stored. Raises ``InvalidTask`` for a function that no path leads to."""
    if isinstance(value, Retry | Dedupe):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if word != "backoff" or value is None or isinstance(value, str):
        return value
    path = f"{value.__module__}.{getattr(value, '__qualname__', '?')}"
    try:
        found = import_string(path)
    except ImportError:
        found = None
    if found is not value:
        raise InvalidTask(
            f"backoff={value!r} of a call is looked up by the worker, and {path} does not lead to it. "
            "Define the function in a module, or give it to @task."
        )
    return path


def from_json(word: str, value: Any) -> Any:
    """An option as it was before it was stored."""
    if word == "run_after" and value is not None:
        return datetime.fromisoformat(value)
    if isinstance(value, dict):
        return Retry(**value) if word == "backoff" else Dedupe(**value)
    return value


def _check_timeout(word: str, value: Any, where: str) -> None:
    check_timeout(value, where)


def _check_dedupe(word: str, value: Any, where: str) -> None:
    as_dedupe(value)


def _check_attempts(word: str, value: Any, where: str) -> None:
    check_whole(word, value, 1, MAX_ATTEMPTS_LIMIT, where)


def _check_backoff(word: str, value: Any, where: str) -> None:
    if isinstance(value, str) and _is_being_imported(value.rpartition(".")[0]):
        return  # OPTIONS name a function that stands below the first task of its module
    found = backoff_of(value)
    if not callable(found) and not isinstance(found, Retry):
        raise InvalidOption(
            f"{where}: backoff={value!r} must be a function (exception, task_result) -> seconds or None, "
            "its dotted path, or a Retry(...)."
        )


def _is_being_imported(module: str) -> bool:
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))


def _check_span(word: str, value: Any, where: str) -> None:
    try:
        positive = as_seconds(value, word) > 0
    except InvalidOption:
        positive = False
    if not positive:
        raise InvalidOption(
            f"{where}: {word}={value!r} must be a timedelta or seconds, more than 0 and at most "
            f"{MAX_DELAY:.0f} (ten years)."
        )


def _check_key(word: str, value: Any, where: str) -> None:
    if not callable(value) and not (isinstance(value, str) and 1 <= len(value) <= KEY_LENGTH):
        raise InvalidOption(
            f"{where}: {word}={value!r:.300} must be text of 1 to {KEY_LENGTH} characters, or a function of "
            "the task's arguments that returns such text or None."
        )


def _check_bool(word: str, value: Any, where: str) -> None:
    if not isinstance(value, bool):
        raise InvalidOption(f"{where}: {word}={value!r} must be True or False.")


def _check_isolated(word: str, value: Any, where: str) -> None:
    _check_bool(word, value, where)
    if value and importlib.util.find_spec("pebble") is None:
        raise InvalidOption(
            f"{where}: isolated=True needs the library that keeps its processes. Run "
            'pip install "django-jobqueue[isolation]".'
        )


def _check_memory(word: str, value: Any, where: str) -> None:
    check_whole(word, value, 1, MAX_MEMORY_LIMIT, where)


def _check_exceptions(word: str, value: Any, where: str) -> None:
    if not isinstance(value, tuple) or not all(isinstance(one, type) for one in value):
        raise InvalidOption(f"{where}: {word}={value!r} must be a list of exception classes.")


_CHECKS: dict[str, Callable[[str, Any, str], None]] = {
    "max_attempts": _check_attempts,
    "backoff": _check_backoff,
    "timeout": _check_timeout,
    "dedupe_key": _check_key,
    "dedupe": _check_dedupe,
    "lock_key": _check_key,
    "expires_after": _check_span,
    "atomic": _check_bool,
    "never_retry": _check_exceptions,
    "isolated": _check_isolated,
    "max_memory": _check_memory,
}
