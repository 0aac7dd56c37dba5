"""A Task and its arguments become a job."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .. import conf
from ..compat import AnyResult, AnyTask, InvalidTask, Task, TaskResult, TaskResultStatus, normalize_json
from ..context import TASK, capture
from ..exceptions import InvalidPayload
from ..managers.preparing import Blueprint, EnqueueOptions
from ..payloads import encode_payload
from . import results
from .options import PER_CALL, to_json
from .types import default, type_of

if TYPE_CHECKING:
    from ..models import Job

Call = tuple[Sequence[Any], Mapping[str, Any]]


def store(task: AnyTask, alias: str, calls: Iterable[Call]) -> list[tuple[AnyResult, bool]]:
    """A job for each call, in their order: its result, and whether it is new.

    Nothing is stored if one of them is refused.
    """
    from ..models import Job

    job_type = type_of(task)
    facts = _facts(task, alias)
    blueprint = Blueprint(job_type, _options(task, alias), capture(job_type.name, {TASK: facts}))
    payloads = [normalized(args, kwargs) for args, kwargs in calls]
    jobs = Job.objects.enqueue_as(blueprint, payloads)
    return [
        (_result(task, alias, job, payload), job.created is not False)
        for job, payload in zip(jobs, payloads, strict=True)
    ]


def normalized(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a call. Raises ``TypeError`` for what the contract refuses.

    It lets more through than comes back from JSON unchanged; that is changed here, before it is stored:
    keys of dicts become text, and bytes and members of enumerations what they stand for.
    """
    payload = {"args": list(args), "kwargs": dict(kwargs)}
    try:
        encode_payload(payload, conf.current().MAX_PAYLOAD_BYTES)
    except InvalidPayload:
        plain: dict[str, Any] = json.loads(json.dumps(normalize_json(payload)))
        return plain
    return payload


def _options(task: AnyTask, alias: str) -> EnqueueOptions:
    """What the queue is told of every job of this Task."""
    expires_after = _option(task, "expires_after", alias)
    return {
        "queue": task.queue_name,
        "priority": task.priority,
        "run_after": task.run_after,
        "max_attempts": _option(task, "max_attempts", alias),
        "expires_at": None if expires_after is None else timedelta(seconds=expires_after),
    }


def _option(task: AnyTask, word: str, alias: str) -> Any:
    value = getattr(task, word, None)
    return default(word, alias) if value is None else value


def _facts(task: AnyTask, alias: str) -> dict[str, Any]:
    """What the worker and ``get_result`` are to know of this call besides its arguments.

    That is what differs from the Task as it is declared. Raises ``InvalidTask`` if no worker could find it.
    """
    facts: dict[str, Any] = {"backend": alias}
    found = getattr(sys.modules.get(task.func.__module__), task.func.__name__, None)
    if found is task:
        return facts
    if not isinstance(found, Task) or found.func is not task.func or task.func.__module__ == "__main__":
        raise InvalidTask(
            f"No worker could find this task: {task.module_path} is not it, but {found!r:.200}. "
            "Decorate the function with @task in a module that workers can import."
        )
    for word in PER_CALL:
        value = getattr(task, word, None)
        if value != getattr(found, word, None) and not (word.endswith("_key") and callable(value)):
            facts[word] = to_json(word, value)
    if task.run_after is not None:
        facts["run_after"] = task.run_after.isoformat()
    return facts


def _result(task: AnyTask, alias: str, job: Job, payload: dict[str, Any]) -> AnyResult:
    if job.created is False:
        facts = results.facts_of(job.context)
        if facts is None:
            raise InvalidTask(
                f"The dedupe key {job.dedupe_key!r} is that of job {job.id} of type {job.job_type!r}, which "
                "is no task and has no TaskResult. Give the two different keys."
            )
        return results.stored(job, facts)
    return TaskResult(
        task=task,
        id=str(job.id),
        status=TaskResultStatus.READY,
        enqueued_at=job.created_at,
        started_at=None,
        last_attempted_at=None,
        finished_at=None,
        args=payload["args"],
        kwargs=payload["kwargs"],
        backend=alias,
        errors=[],
        worker_ids=[],
    )
