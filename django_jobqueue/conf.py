"""Every setting with its type, unit and default, on one screen; read from ``settings.JOBQUEUE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from .states import (
    DEFAULT_QUEUE,
    FINISHED,
    JOB_TYPE_LENGTH,
    MAX_ATTEMPTS_LIMIT,
    QUEUE_LENGTH,
    JobStatus,
)


@dataclass(frozen=True, kw_only=True)
class JobQueueSettings:
    """``settings.JOBQUEUE``, checked. Field names are the keys; defaults stand here and nowhere else."""

    DATABASE: str | None = None  # alias; None: what DATABASE_ROUTERS say for writing a Job
    QUEUES: Sequence[str] | None = None  # names that may be used; None: any
    EXTERNAL_TYPES: Sequence[str] = ()  # job types (or patterns, "billing:*") that other code serves
    ALIASES: Mapping[str, str] = field(default_factory=dict)  # old name of a type -> its name now
    CONTEXT_HOOKS: Sequence[str] = ()  # dotted paths of ContextHook classes: what else travels with a job
    MAX_ATTEMPTS: int = 3  # starts, unless the type or the call says otherwise
    MAX_PAYLOAD_BYTES: int = 1_048_576  # bytes of JSON
    MAX_RESULT_BYTES: int = 1_048_576  # bytes of JSON
    MAX_SNOOZES: int = 1_000  # per job; one more and it is dead
    MAX_RELEASES: int = 100  # given back without counting, per job; after that attempts count
    MAX_CRASHES: int = 3  # workers that may die while one job runs; then it is dead, whatever its attempts
    UNKNOWN_TYPE_GRACE: timedelta = timedelta(days=1)  # dead if no worker knew the type for so long
    RETENTION: Mapping[str, timedelta | None] = field(  # status name -> kept for; None: for ever
        default_factory=lambda: {
            "DONE": timedelta(days=7),
            "CANCELLED": timedelta(days=7),
            "DEAD": None,
        }
    )
    PROCESSES: int = 1  # worker processes of one runworker
    THREADS: int = 8  # sync handlers at once in a process
    ASYNC_CONCURRENCY: int = 100  # async handlers at once in a process
    LEASE: float = 60.0  # seconds a claim holds without renewal
    POLL_INTERVAL: float = 1.0  # seconds between two looks while idle
    GRACE: float = 25.0  # seconds that running jobs get at shutdown
    INTERRUPT_GRACE: float = 10.0  # seconds from asking a running job to stop to force, and on to replacing
    DURABLE_OUTCOMES: bool = False  # each outcome is written before the next job of its thread starts
    LATE_AFTER: timedelta = timedelta(minutes=5)  # a due job that waits for longer is warned of
    REDACT: Sequence[str] = ()  # keys whose values are hidden in the admin, in logs and in stored errors
    LISTEN: bool = True  # PostgreSQL: wake by LISTEN/NOTIFY besides polling
    LISTEN_DSN: str | None = None  # PostgreSQL: a direct address for LISTEN, past a pooler

    def retention_of(self, status: JobStatus) -> timedelta | None:
        """How long finished jobs of ``status`` are kept; None: for ever."""
        return self.RETENTION.get(status.name)


#: Characters of a dotted path; far more than any has.
PATH_LENGTH = 500

KEYS = tuple(one.name for one in fields(JobQueueSettings))

#: Least, most and unit of every number among the settings.
RANGES: dict[str, tuple[float, float, str]] = {
    "MAX_ATTEMPTS": (1, MAX_ATTEMPTS_LIMIT, "attempts"),
    "MAX_PAYLOAD_BYTES": (2, 256 * 1_048_576, "bytes"),
    "MAX_RESULT_BYTES": (4, 256 * 1_048_576, "bytes"),
    "MAX_SNOOZES": (0, 30_000, "snoozes"),
    "MAX_RELEASES": (0, 30_000, "releases"),
    "MAX_CRASHES": (1, 30_000, "crashes"),
    "PROCESSES": (1, 256, "processes"),
    "THREADS": (1, 1_000, "threads"),
    "ASYNC_CONCURRENCY": (1, 4_000, "coroutines"),
    "LEASE": (1, 86_400, "seconds"),
    "POLL_INTERVAL": (0.01, 3_600, "seconds"),
    "GRACE": (0, 86_400, "seconds"),
    "INTERRUPT_GRACE": (0.1, 86_400, "seconds"),
}


def problems(given: Any) -> list[str]:
    """What is wrong with a value of ``settings.JOBQUEUE``, one sentence each; empty if nothing is."""
    if not isinstance(given, Mapping):
        return [f"JOBQUEUE must be a dictionary, not {type(given).__name__}. Write JOBQUEUE = {{}}."]
    found = [
        f"JOBQUEUE has an unknown key {key!r}. Known keys: {', '.join(KEYS)}."
        for key in given
        if key not in KEYS
    ]
    for key, (least, most, unit) in RANGES.items():
        found += range_problem(f'JOBQUEUE["{key}"]', given[key], least, most, unit) if key in given else []
    found += _queue_problems(given.get("QUEUES"))
    found += _names_problems("EXTERNAL_TYPES", given.get("EXTERNAL_TYPES", ()), JOB_TYPE_LENGTH)
    found += _names_problems("REDACT", given.get("REDACT", ()))
    found += _names_problems("CONTEXT_HOOKS", given.get("CONTEXT_HOOKS", ()), PATH_LENGTH)
    found += _alias_problems(given.get("ALIASES", {}))
    found += _retention_problems(given.get("RETENTION", {}))
    for key in ("UNKNOWN_TYPE_GRACE", "LATE_AFTER"):
        if not is_span(span := given.get(key, timedelta(0))):
            found.append(f'JOBQUEUE["{key}"]={span!r} must be a timedelta, e.g. timedelta(days=1).')
    return found + _kind_problems(given)


def range_problem(name: str, value: Any, least: float, most: float, unit: str) -> list[str]:
    """A sentence if ``value`` is not a number (whole where both bounds are) from ``least`` to ``most``."""
    whole = unit != "seconds"
    kind = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        number = "a whole number" if whole else "a number"
        bounds = " to ".join(
            f"{bound:.0f}" if bound == int(bound) else f"{bound:g}" for bound in (least, most)
        )
        return [f"{name}={value!r} must be {number} of {unit} from {bounds}."]
    return []


def _queue_problems(queues: Any) -> list[str]:
    if queues is None:
        return []
    found = _names_problems("QUEUES", queues)
    if not found and not queues:
        found.append('JOBQUEUE["QUEUES"] is empty, so nothing could be enqueued. Leave it out to allow any.')
    return found


def _names_problems(key: str, names: Any, most: int = QUEUE_LENGTH) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Sequence | set | frozenset):
        return [f'JOBQUEUE["{key}"]={names!r} must be a list of names, e.g. ["{DEFAULT_QUEUE}"].']
    return [
        f'JOBQUEUE["{key}"] contains {name!r}: names are text of 1 to {most} characters.'
        for name in names
        if not isinstance(name, str) or not 1 <= len(name) <= most
    ]


def _alias_problems(aliases: Any) -> list[str]:
    example = '{"billing.tasks.send": "invoices.tasks.send"}'
    if not isinstance(aliases, Mapping):
        return [f'JOBQUEUE["ALIASES"]={aliases!r} must map old names of job types to new ones: {example}.']
    found = []
    for old, new in aliases.items():
        found += _names_problems("ALIASES", [old, new], JOB_TYPE_LENGTH)
        if new in aliases:
            found.append(
                f'JOBQUEUE["ALIASES"] leads from {old!r} to {new!r}, which is an old name itself. '
                "Name the one that serves the jobs now."
            )
    return found


def _retention_problems(retention: Any) -> list[str]:
    names = sorted(status.name for status in FINISHED)
    if not isinstance(retention, Mapping):
        return [f'JOBQUEUE["RETENTION"]={retention!r} must map {", ".join(names)} to a timedelta or None.']
    found = []
    for name, kept in retention.items():
        if name not in names:
            found.append(f'JOBQUEUE["RETENTION"] has an unknown status {name!r}. Known: {", ".join(names)}.')
        if kept is not None and not is_span(kept):
            found.append(
                f'JOBQUEUE["RETENTION"][{name!r}]={kept!r} must be a timedelta (e.g. timedelta(days=7)) '
                "or None to keep these jobs for ever."
            )
    return found


def is_span(value: Any) -> bool:
    """A timedelta from nothing to a hundred years, beyond which dates overflow."""
    return isinstance(value, timedelta) and timedelta(0) <= value <= timedelta(days=36_525)


def _kind_problems(given: Mapping[str, Any]) -> list[str]:
    kinds: dict[str, tuple[type, ...]] = {
        "DATABASE": (str, type(None)),
        "DURABLE_OUTCOMES": (bool,),
        "LISTEN": (bool,),
        "LISTEN_DSN": (str, type(None)),
    }
    return [
        f'JOBQUEUE["{key}"]={given[key]!r} must be {" or ".join(kind.__name__ for kind in allowed)}.'
        for key, allowed in kinds.items()
        if key in given and not isinstance(given[key], allowed)
    ]


_current: JobQueueSettings | None = None


def current() -> JobQueueSettings:
    """The settings in force. Raises ``ImproperlyConfigured`` with every problem found."""
    global _current  # noqa: PLW0603 - one cached value, dropped when the setting changes
    if _current is None:
        given = getattr(settings, "JOBQUEUE", {})
        if found := problems(given):
            raise ImproperlyConfigured(" ".join(found))
        defaults = JobQueueSettings()
        merged = dict(given)
        merged["RETENTION"] = {**defaults.RETENTION, **given.get("RETENTION", {})}
        _current = JobQueueSettings(**merged)
    return _current


def _forget(*, setting: str, **kwargs: Any) -> None:
    global _current  # noqa: PLW0603
    if setting == "JOBQUEUE":
        _current = None


setting_changed.connect(_forget, dispatch_uid="django_jobqueue.conf")
