"""What the contract calls a result: a job as a ``TaskResult``, as it is stored or as it runs here."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from ..compat import AnyResult, AnyTask, TaskError, TaskResult, TaskResultStatus
from ..context import TASK
from ..databases.clock import from_database
from ..exceptions import JobCancelled, JobExpired, UnknownTypeHere
from ..managers.claim import ClaimedJob
from ..managers.rescue import expired_reason
from ..payloads import decode
from ..states import JobStatus
from .lookup import declared
from .options import JobQueueTask, from_json, restored, values_of

if TYPE_CHECKING:
    from ..models import Job

STATUSES = {
    JobStatus.PENDING: TaskResultStatus.READY,
    JobStatus.RUNNING: TaskResultStatus.RUNNING,
    JobStatus.DONE: TaskResultStatus.SUCCESSFUL,
    JobStatus.DEAD: TaskResultStatus.FAILED,
    JobStatus.CANCELLED: TaskResultStatus.FAILED,
}
#: Of a job that ``Job.objects.enqueue`` made of a Task's path.
UNMARKED = {"backend": "default"}
#: Recorded on a job without an attempt of it.
_NO_ATTEMPT = f"{UnknownTypeHere.__module__}.{UnknownTypeHere.__qualname__}"


def facts_of(context: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the backend stored beside the arguments; None: the job is of no Task."""
    facts = context.get(TASK)
    return facts if isinstance(facts, dict) and "backend" in facts else None


def stored(job: Job, facts: dict[str, Any]) -> AnyResult:
    """The result of a job as its row has it."""
    status = JobStatus(job.status)
    history = History(job.errors)
    attempted = status in (JobStatus.RUNNING, JobStatus.DONE)
    last = job.run_started_at or (job.claimed_at if attempted else history.last_started)
    result = TaskResult(
        task=task_of(job, facts),
        id=str(job.id),
        status=STATUSES[status],
        enqueued_at=job.created_at,
        started_at=history.first_started or last,
        last_attempted_at=last,
        finished_at=job.finished_at,
        args=job.payload["args"],
        kwargs=job.payload["kwargs"],
        backend=facts["backend"],
        errors=[*history.errors, *_reason(job)],
        worker_ids=[*history.worker_ids, *([job.worker_id or ""] if attempted else [])],
    )
    if status is JobStatus.DONE:
        object.__setattr__(result, "_return_value", job.result)
    return result


def running(job: ClaimedJob, since: float | None = None) -> AnyResult:
    """The result of a claimed job that runs here; ``since``: when it started, by the monotonic clock."""
    facts = facts_of(job.context) or UNMARKED
    history = History(decode(job.errors_text) if job.errors_text else [])
    payload = job.payload
    started = timezone.now()
    if since is not None:
        started -= datetime.timedelta(seconds=time.monotonic() - since)
    return TaskResult(
        task=task_of(job, facts),
        id=str(job.id),
        status=TaskResultStatus.RUNNING,
        enqueued_at=from_database(job.created),
        started_at=history.first_started or started,
        last_attempted_at=started,
        finished_at=None,
        args=payload["args"],
        kwargs=payload["kwargs"],
        backend=facts["backend"],
        errors=history.errors,
        worker_ids=[*history.worker_ids, job.worker_id],
    )


def current(job: Job | ClaimedJob) -> AnyResult:
    """The result of a job that fails just now, here or by ``Job.objects.fail``."""
    return running(job) if isinstance(job, ClaimedJob) else stored(job, facts_of(job.context) or UNMARKED)


def end(result: AnyResult, status: TaskResultStatus, *, value: Any = None, error: Any = None) -> None:
    """Turn a running result into the final one."""
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", timezone.now())
    object.__setattr__(result, "_return_value", value)
    if error is not None:
        result.errors.append(error)


class History:
    """The failed attempts that are recorded on a job."""

    def __init__(self, entries: Sequence[Any]) -> None:
        entries = [one for one in entries if isinstance(one, dict)]  # not what was written by hand
        attempts = [one for one in entries if one.get("worker") and one.get("exception") != _NO_ATTEMPT]
        self.errors = [task_error(one) for one in entries]
        self.worker_ids: list[str] = []
        before = 0
        for one in attempts:
            # Of more than a hundred failures those in the middle are not kept; they did happen.
            self.worker_ids += [""] * max(one.get("attempt", 0) - before - 1, 0)
            self.worker_ids.append(one["worker"])
            before = one.get("attempt", 0)
        started = [one["started_at"] for one in attempts if one.get("started_at")]
        self.first_started = from_database(started[0]) if started else None
        self.last_started = from_database(started[-1]) if started else None


def task_error(entry: Mapping[str, Any]) -> TaskError:
    """A recorded failure as the contract has it."""
    path = str(entry.get("exception", "Exception"))
    text = entry.get("traceback") or f"{path}: {entry.get('message', '')}"
    return TaskError(exception_class_path=path if "." in path else f"builtins.{path}", traceback=str(text))


def _reason(job: Job) -> list[TaskError]:
    """Why a job was cancelled: no attempt failed by it."""
    if job.status != JobStatus.CANCELLED:
        return []
    last = job.errors[-1] if job.errors else None
    if isinstance(last, dict) and job.last_error.endswith(str(last.get("message"))):
        return []  # it was asked to stop, and raised
    kind = JobExpired if job.last_error == expired_reason() else JobCancelled
    path = f"{kind.__module__}.{kind.__qualname__}"
    return [TaskError(exception_class_path=path, traceback=job.last_error)]


def task_of(job: Job | ClaimedJob, facts: dict[str, Any]) -> AnyTask:
    """The Task of a job as it was enqueued, or one that stands for it where it is gone."""
    found = declared(job.job_type)
    kind, values = (type(found), values_of(found)) if found is not None else _vanished(job.job_type)
    changes = {
        "priority": job.priority,
        "queue_name": job.queue,
        **{word: from_json(word, value) for word, value in facts.items()},
    }
    if found is not None and all(values.get(word) == value for word, value in changes.items()):
        return found
    if not changes.keys() <= values.keys():  # a plain Task that was given the queue's options
        kind = JobQueueTask
    return restored(kind, {**values, **changes})


def _vanished(path: str) -> tuple[type[AnyTask], dict[str, Any]]:
    """What stands for a Task that is not there: removed, renamed, or of code that this process lacks."""
    module, _, name = path.rpartition(".")

    def gone(*args: Any, **kwargs: Any) -> None:
        raise ImportError(f"There is no task {path!r} here: removed, renamed, or served by other code.")

    gone.__module__, gone.__qualname__, gone.__name__ = module, name, name
    # Every field that Django 6.0 has no default for.
    return JobQueueTask, {"func": gone, "run_after": None, "takes_context": False}
