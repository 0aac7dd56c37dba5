"""From the arguments of ``enqueue`` to a row that can be inserted, or a clear error; no database needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypedDict

from .. import conf, registry
from ..bounds import TIMEOUT_KEY, check_timeout, check_whole
from ..databases.clock import Instant, moment
from ..databases.inserting import NewJob
from ..dedupe import RETURN, Dedupe, as_dedupe
from ..exceptions import InvalidOption, UnknownQueue
from ..payloads import encode_payload
from ..registry import JobType
from ..states import (
    DEFAULT_QUEUE,
    JOB_TYPE_LENGTH,
    KEY_LENGTH,
    MAX_ATTEMPTS_LIMIT,
    PRIORITY_MAX,
    PRIORITY_MIN,
    QUEUE_LENGTH,
    JobStatus,
)
from .ids import new_job_id


class EnqueueOptions(TypedDict, total=False):
    """Everything a call may say about a job besides its type and payload. None: what the type says."""

    run_after: Any
    priority: int | None
    max_attempts: int | None
    queue: str | None
    dedupe_key: str | None
    dedupe: Dedupe | str | None
    lock_key: str | None
    expires_at: Any
    timeout: Any


def known_options(options: EnqueueOptions) -> EnqueueOptions:
    """The options. Raises ``InvalidOption`` for one that nobody knows."""
    if unknown := options.keys() - EnqueueOptions.__annotations__.keys():
        names = ", ".join(sorted(EnqueueOptions.__annotations__))
        raise InvalidOption(f"There is no option {min(unknown)!r} for a job. There are: {names}.")
    return options


def prepare(
    job_type: str, payload: Mapping[str, Any] | None, options: EnqueueOptions, context: str
) -> NewJob:
    """Check every argument and fill in what the type says. Raises the error classes of ``exceptions``."""
    return Blueprint(job_type, options, context).job(payload)


class Blueprint:
    """What jobs of one type with the same options have in common, checked once for all of them."""

    def __init__(self, job_type: str | JobType, options: EnqueueOptions, context: str) -> None:
        using = conf.current()
        self._type = registered = _type_of(job_type, using)
        self._max_bytes = using.MAX_PAYLOAD_BYTES
        self._given = options.get("dedupe_key"), options.get("lock_key")
        self._has_keys = self._given != (None, None) or (
            registered is not None and (registered.dedupe_key, registered.lock_key) != (None, None)
        )
        dedupe = _dedupe(options, registered, using)
        run_after = options.get("run_after")
        if dedupe.policy == "debounce":
            run_after = timedelta(seconds=dedupe.seconds)
        run_at, run_delay = moment("run_after", run_after)
        expires_at, expires_delay = _expires(options.get("expires_at"), registered, run_at, run_delay)
        # In the order of NewJob: before the payload, between it and the keys, after them.
        self._head = (
            job_type if isinstance(job_type, str) else job_type.name,
            _queue(options.get("queue"), registered, using),
            _priority(options.get("priority"), registered),
        )
        timeout = check_timeout(options.get("timeout"))
        self._context = context if timeout is None else _with_timeout(context, timeout)
        self._tail = (
            _max_attempts(options.get("max_attempts"), registered, using),
            run_at,
            run_delay,
            expires_at,
            expires_delay,
            dedupe,
        )

    def job(self, payload: Mapping[str, Any] | None) -> NewJob:
        """One of them."""
        payload = {} if payload is None else payload
        text = encode_payload(payload, self._max_bytes)
        if self._type is not None:
            self._type.check(payload)
        keys = self._keys(payload) if self._has_keys else (None, None)
        return NewJob._make((new_job_id(), *self._head, text, self._context, *keys, *self._tail))

    def _keys(self, payload: Mapping[str, Any]) -> tuple[str | None, str | None]:
        dedupe_key, lock_key = self._given
        return (
            _key("dedupe_key", dedupe_key, self._type, payload),
            _key("lock_key", lock_key, self._type, payload),
        )


def _type_of(job_type: str | JobType, using: conf.JobQueueSettings) -> JobType | None:
    if isinstance(job_type, JobType):
        return job_type
    check_text("job_type", job_type, JOB_TYPE_LENGTH)
    return registry.get(job_type, using.EXTERNAL_TYPES)


def check_text(name: str, value: Any, most: int) -> None:
    """Raise ``InvalidOption`` unless ``value`` is storable text of 1 to ``most`` characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise InvalidOption(f"{name}={value!r:.300} must be text of 1 to {most} characters.")
    if "\x00" in value or (not value.isascii() and any("\ud800" <= one <= "\udfff" for one in value)):
        raise InvalidOption(f"{name}={value!r} contains a NUL character or a lone surrogate. Remove it.")


def check_queue(name: Any, using: conf.JobQueueSettings) -> str:
    """The queue's name. Raises ``UnknownQueue`` if queues are declared and it is not among them."""
    check_text("queue", name, QUEUE_LENGTH)
    if using.QUEUES is not None and name not in using.QUEUES:
        raise UnknownQueue(name, using.QUEUES)
    return str(name)


def _expires(
    given: Any, registered: JobType | None, run_at: Instant | None, run_delay: float
) -> tuple[Instant | None, float | None]:
    """When a job expires: an instant, or seconds from the database's now, or (None, None) for never."""
    if given is not None:
        return moment("expires_at", given)
    if registered is None or registered.lifetime is None:
        return None, None
    if run_at is None:
        return None, run_delay + registered.lifetime
    return run_at + timedelta(seconds=registered.lifetime), None


def _with_timeout(context: str, seconds: float) -> str:
    return json.dumps({**json.loads(context), TIMEOUT_KEY: seconds})


def _queue(given: str | None, registered: JobType | None, using: conf.JobQueueSettings) -> str:
    if given is None:
        given = registered.queue if registered else DEFAULT_QUEUE
    return check_queue(given, using)


def _priority(given: int | None, registered: JobType | None) -> int:
    if given is None:
        return registered.priority if registered else 0
    check_whole("priority", given, PRIORITY_MIN, PRIORITY_MAX)
    return given


def _max_attempts(given: int | None, registered: JobType | None, using: conf.JobQueueSettings) -> int:
    if given is None:
        given = registered.max_attempts if registered else None
    if given is None:
        return using.MAX_ATTEMPTS
    check_whole("max_attempts", given, 1, MAX_ATTEMPTS_LIMIT)
    return given


def _dedupe(options: EnqueueOptions, registered: JobType | None, using: conf.JobQueueSettings) -> Dedupe:
    given = options.get("dedupe")
    if given is None:
        dedupe = registered.dedupe if registered else RETURN
        has_key = True  # if it has none, the type's policy has nothing to do
    else:
        dedupe = as_dedupe(given)
        has_key = options.get("dedupe_key") is not None or bool(registered and registered.dedupe_key)
    if dedupe == RETURN:
        return dedupe
    if not has_key:
        raise InvalidOption(f"dedupe={dedupe!r} does nothing without a key. Give dedupe_key too.")
    if dedupe.policy == "debounce" and options.get("run_after") is not None:
        raise InvalidOption(
            "debounce() says itself when the job runs. Leave out run_after, or give this call another dedupe."
        )
    if dedupe.policy == "skip_for":
        _check_kept(dedupe, using)
    return dedupe


def _check_kept(dedupe: Dedupe, using: conf.JobQueueSettings) -> None:
    """Raise ``InvalidOption`` for a period longer than the jobs are kept by which it goes."""
    for status in (JobStatus.DONE, JobStatus.DEAD):
        kept = using.retention_of(status)
        if kept is not None and kept.total_seconds() < dedupe.seconds:
            raise InvalidOption(
                f"skip_for({timedelta(seconds=dedupe.seconds)}) goes by the jobs that the key had, and "
                f'JOBQUEUE["RETENTION"] removes {status.name} ones after {kept}. Shorten the one or '
                "lengthen the other."
            )


def _key(name: str, given: str | None, registered: JobType | None, payload: Mapping[str, Any]) -> str | None:
    if given is None and registered is not None:
        given = registered.key_for(getattr(registered, name), payload)
    if given is not None:
        check_text(name, given, KEY_LENGTH)
    return given
