"""A Task as a job type: what its jobs get, how a worker finds it by its module path, and how it is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..compat import AnyTask, InvalidTask, normalize_json, task_backends
from ..dedupe import RETURN
from ..exceptions import InvalidOption, InvalidPayload, TaskTimeout
from ..registry import JobType, Key
from ..retries import DEFAULT_RETRY, Retry, delay_after
from ..signatures import function_signature
from . import results, signals
from .lookup import declared
from .options import backoff_of, from_json
from .running import RunningContext


@dataclass(frozen=True, kw_only=True)
class TaskType(JobType):
    """A Task's function and options. Its payload is ``{"args": […], "kwargs": {…}}``."""

    timeout_error = TaskTimeout

    backoff: Any = None  # the Task's own

    @property
    def what(self) -> str:
        """How errors name it."""
        return f"The task {self.name}"

    def check(self, payload: Mapping[str, Any]) -> None:
        """Any arguments will do: the contract knows no other check than that of their types."""
        shape = {name: type(value) for name, value in payload.items()}
        if shape not in ({"args": list, "kwargs": dict}, {"args": tuple, "kwargs": dict}):
            raise InvalidPayload("payload", 'of a task must be {"args": [...], "kwargs": {...}}.')

    def check_call(self, payload: Mapping[str, Any]) -> None:
        """The form, and that the function takes these arguments."""
        self.check(payload)
        self._bind(payload, "")

    def positions(self, payload: Mapping[str, Any]) -> Sequence[str]:
        """By the function's signature; what ``*args`` gathers has its name each."""
        args = payload.get("args")
        if not isinstance(args, list):
            return ()
        names: list[str] = []
        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [parameter.name] * (len(args) - len(names))
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                names.append(parameter.name)
        return names

    def key_for(self, key: Key, payload: Mapping[str, Any]) -> str | None:
        """A key as written, or worked out from the arguments by name, defaults filled in."""
        if not callable(key):
            return key
        bound = self._bind(payload, ", so there is no key")
        bound.apply_defaults()
        return key(**self._by_name(bound))

    def _bind(self, payload: Mapping[str, Any], consequence: str) -> inspect.BoundArguments:
        try:
            return self.signature.bind(*payload["args"], **payload["kwargs"])
        except TypeError as problem:
            raise InvalidPayload(
                "payload", f"does not fit {self.name}{self.signature}{consequence}: {problem}."
            ) from None

    def call(self, attempt: Any, payload: Mapping[str, Any]) -> Any:
        """Call the function as the Task itself would."""
        if self.takes_context:
            return self.function(RunningContext(attempt), *payload["args"], **payload["kwargs"])
        return self.function(*payload["args"], **payload["kwargs"])

    def result_of(self, value: Any) -> Any:
        """As the contract has it: tuples become lists, bytes become text, anything else is a TypeError."""
        return None if value is None else normalize_json(value)

    def policy_for(self, job: Any) -> Any:
        """As the call said, or else the Task, or else OPTIONS of the backend."""
        facts = results.facts_of(job.context) or {}
        policy = from_json("backoff", facts.get("backoff")) or self.backoff
        return backoff_of(policy or default("backoff", facts.get("backend", ""))) or DEFAULT_RETRY

    def delay_after(self, exception: BaseException, job: Any) -> float | None:
        """By that, which sees the task's result."""
        policy = self.policy_for(job)
        if isinstance(policy, Retry):
            return policy.delay(job.attempts)
        return delay_after(lambda raised, job: policy(raised, results.current(job)), exception, job)

    @property
    def is_watched(self) -> bool:
        """Whether somebody besides Django's own log listens, or a back-off is worked out by a function."""
        return signals.is_watched() or callable(self.backoff)

    def begins(self, attempt: Any) -> None:
        """``task_started``."""
        signals.started(self.name, attempt)

    def ends(self, attempt: Any, outcome: Any) -> None:
        """``task_finished``, if that was the end."""
        signals.finished(self.name, attempt, outcome)

    def _payload_signature(self) -> inspect.Signature:
        signature = function_signature(self.function)
        parameters = list(signature.parameters.values())[1 if self.takes_context else 0 :]
        return signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)


def type_of(task: AnyTask, alias: str | None = None) -> TaskType:
    """The type of a Task's jobs, with what OPTIONS of its backend say, or of the backend ``alias``.

    Raises ``InvalidTask`` for options that do not go together.
    """
    options = tuple((word, _option(task, word, alias or task.backend)) for word in _OF_TYPE)
    try:
        return _made(task.func, task.takes_context, options)
    except TypeError:  # a key function that has no hash
        return _made.__wrapped__(task.func, task.takes_context, options)
    except InvalidOption as problem:
        raise InvalidTask(str(problem)) from None


_OF_TYPE = {
    "backoff": None,
    "timeout": None,
    "expires_after": None,
    "dedupe_key": None,
    "dedupe": RETURN,
    "lock_key": None,
    "atomic": False,
    "never_retry": (),
    "isolated": False,
    "max_memory": None,
}


@functools.lru_cache(maxsize=4_096)
def _made(
    function: Callable[..., Any], takes_context: bool, options: tuple[tuple[str, Any], ...]
) -> TaskType:
    return TaskType(
        name=f"{function.__module__}.{function.__qualname__}",
        function=function,
        takes_context=takes_context,
        **dict(options),
    )


def _option(task: AnyTask, word: str, alias: str) -> Any:
    value = getattr(task, word, None)
    if value is None and word in _DEFAULTS:
        value = default(word, alias)
    return _OF_TYPE[word] if value is None else value


#: OPTIONS of a backend that its types have; back-off and attempts are looked up where they are needed.
_DEFAULTS = ("timeout", "expires_after")


def default(word: str, alias: str) -> Any:
    """What OPTIONS of the backend say."""
    try:
        return task_backends[alias].options.get(word)
    except Exception:  # the settings do not have that alias any more
        return None


def resolve(path: str) -> JobType | None:
    """For the registry: the type of the Task at a module path, imported if need be; None if there is none."""
    task = declared(path)
    return None if task is None else type_of(task)
