"""What travels with a job from the place that enqueues it to the one that runs it.

The active language and time zone, where they are not the site's own; a trace, where OpenTelemetry is
installed; and whatever the classes in ``JOBQUEUE["CONTEXT_HOOKS"]`` add.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.utils import timezone, translation
from django.utils.module_loading import import_string

from . import conf, logs
from .bounds import TIMEOUT_KEY
from .payloads import decode

#: The key of what the Tasks API wants to know of a job; nothing is restored from it.
TASK = "task"
OPENTELEMETRY = "django_jobqueue.telemetry.OpenTelemetryHook"


class ContextHook:
    """Base of what a site may add: a request id, a tenant. List the subclass in ``CONTEXT_HOOKS``.

    One instance serves all threads. A hook that raises is logged, and the job goes on without it.
    """

    #: The key under which its value is stored in ``Job.context``; short, and of this hook alone.
    key = ""

    def capture(self, job_type: str) -> Any:
        """Called at the enqueue, once for a whole ``enqueue_many``: a JSON value, or None for nothing."""
        return None

    def restored(self, value: Any, job: Any) -> AbstractContextManager[Any]:
        """A context manager around the handler, with what ``capture`` gave. It sees what the handler raises.

        ``job`` has ``id``, ``job_type``, ``queue``, ``attempts`` and ``payload``.
        """
        return contextlib.nullcontext()


def capture(job_type: str, known: Mapping[str, Any] | None = None) -> str:
    """JSON of what is to travel with a job of this type; ``known`` is added as it is."""
    context: dict[str, Any] = dict(known or {})
    language = translation.get_language()
    if language is not None and language != settings.LANGUAGE_CODE:
        context["language"] = language
    zone = timezone.get_current_timezone_name()
    if zone != settings.TIME_ZONE:
        context["time_zone"] = zone
    for hook in hooks():
        try:
            value = hook.capture(job_type)
            if value is not None:
                json.dumps(value)
                context[hook.key] = value
        except Exception:
            logs.context_hook_failed(hook.key, job_type)
    return json.dumps(context) if context else "{}"


def restored(job: Any) -> AbstractContextManager[None]:
    """The surroundings of a handler: all that travelled with its claimed job."""
    text = job.context_text
    return _NOTHING if text == "{}" or _is_plain(text) else _restored(text, job)


_NOTHING = contextlib.nullcontext()


@functools.lru_cache(maxsize=64)
def _is_plain(text: str) -> bool:
    """Whether nothing in it is to be restored. Most jobs of tasks have the same text."""
    return set(decode(text)) <= {TASK, TIMEOUT_KEY}


@contextlib.contextmanager
def _restored(text: str, job: Any) -> Iterator[None]:
    context: dict[str, Any] = decode(text)
    with contextlib.ExitStack() as stack:
        if "language" in context:
            stack.enter_context(translation.override(context["language"]))
        if "time_zone" in context:
            with contextlib.suppress(ZoneInfoNotFoundError, ValueError):
                stack.enter_context(timezone.override(ZoneInfo(context["time_zone"])))
        for hook in hooks():
            if hook.key in context:
                try:
                    stack.enter_context(hook.restored(context[hook.key], job))
                except Exception:
                    logs.context_hook_failed(hook.key, job.job_type)
        yield


def hooks() -> Sequence[ContextHook]:
    """One instance of each hook."""
    return _made(tuple(conf.current().CONTEXT_HOOKS))


@functools.cache
def _made(paths: tuple[str, ...]) -> tuple[ContextHook, ...]:
    if OPENTELEMETRY not in paths and _has_opentelemetry():
        paths = (OPENTELEMETRY, *paths)
    return tuple(import_string(path)() for path in paths)


def _has_opentelemetry() -> bool:
    try:
        return importlib.util.find_spec("opentelemetry.trace") is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False
