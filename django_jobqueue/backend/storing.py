"""A Task and its arguments become a job."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
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

    job_type = type_of(task, alias)
    found = _declared(task)
    facts = _facts(task, found, alias)
    # A worker knows the timeout of a task that is just as it was declared.
    timeout = None if found is task and found.backend == alias else job_type.limit
    context = capture(job_type.name, {TASK: facts})
    blueprint = Blueprint(job_type, _options(task, alias, timeout), context)
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


def _options(task: AnyTask, alias: str, timeout: float | None) -> EnqueueOptions:
    """What the queue is told of every job of this Task."""
    attempts = getattr(task, "max_attempts", None)
    return {
        "queue": task.queue_name,
        "priority": task.priority,
        "run_after": task.run_after,
        "max_attempts": default("max_attempts", alias) if attempts is None else attempts,
        "timeout": timeout,
    }


def _declared(task: AnyTask) -> AnyTask:
    """The Task of that function as its module has it. Raises ``InvalidTask`` if no worker could find it."""
    found = getattr(sys.modules.get(task.func.__module__), task.func.__name__, None)
    if not isinstance(found, Task) or found.func is not task.func or task.func.__module__ == "__main__":
        raise InvalidTask(
            f"No worker could find this task: {task.module_path} is not it, but {found!r:.200}. "
            "Decorate the function with @task in a module that workers can import."
        )
    return found


def _facts(task: AnyTask, found: AnyTask, alias: str) -> dict[str, Any]:
    """What the worker and ``get_result`` are to know besides the arguments: what is not as it is declared."""
    facts: dict[str, Any] = {"backend": alias}
    if found is task:
        return facts
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
