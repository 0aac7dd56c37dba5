"""Every log line of the queue, in one place, on the logger ``django_jobqueue``."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

from .redaction import hides_anything, redact_text

logger = logging.getLogger("django_jobqueue")

#: Jobs that are named one by one where many have met the same fate.
FEW = 5


def _hide_values(record: logging.LogRecord) -> bool:
    """Take out of the line, and of a traceback with it, what JOBQUEUE["REDACT"] hides."""
    if hides_anything():
        record.msg, record.args = redact_text(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = redact_text(logging.Formatter().formatException(record.exc_info))
    return True


logger.addFilter(_hide_values)


def enqueued(jobs: Iterable[Any]) -> None:
    """Jobs were made, or found by their dedupe key."""
    if not logger.isEnabledFor(logging.DEBUG):
        return
    for job in jobs:
        how = "enqueued" if job.created else "found by its dedupe key"
        logger.debug("Job %s (%s) %s in queue %s", job.id, job.job_type, how, job.queue)


def attempt_failed(job: Any, status: str, text: str, again: Any) -> None:
    """An attempt failed; what becomes of the job."""
    facts = (job.id, job.job_type, job.attempts, job.max_attempts)
    if status == "PENDING":
        logger.warning("Job %s (%s) failed attempt %s of %s, again at %s: %s", *facts, again, text)
    elif status == "CANCELLED":
        logger.info("Job %s (%s) ended attempt %s of %s and is cancelled as asked: %s", *facts, text)
    else:
        logger.error("Job %s (%s) failed attempt %s of %s and is dead: %s", *facts, text)


def claims_lost(jobs: list[Any]) -> None:
    """Outcomes were not written because the jobs are no longer held; of many, a few are named."""
    for job in jobs[:FEW]:
        logger.warning(
            "Job %s (%s): this worker no longer holds it, so its outcome is not written", job.id, job.job_type
        )
    if more := len(jobs[FEW:]):
        logger.warning("The same of %s more jobs", more)


def unknown_type(job: Any, seconds: float) -> None:
    """A job was given back because no handler here has its type."""
    logger.warning(
        "Job %s has the type %r, unknown to this worker: given back, and the type left alone for %s s",
        job.id, job.job_type, seconds,
    )  # fmt: skip


def reaped(job: Any, worker_id: str, status: str, text: str) -> None:
    """A job that had started was taken back from a lost worker."""
    logger.log(
        logging.ERROR if status == "DEAD" else logging.WARNING,
        "Job %s (%s) had started when worker %s was lost: attempt %s of %s is gone, the job is %s (%s)",
        job.id, job.job_type, worker_id, job.attempts, job.max_attempts, status, text,
    )  # fmt: skip


def taken_back(worker_ids: list[str]) -> None:
    """Jobs that had not started were taken back from lost workers; one line a worker."""
    for worker_id, count in Counter(worker_ids).items():
        logger.warning("%s jobs not yet started were taken back from the lost worker %s", count, worker_id)


def retry_rule_failed(job: Any) -> None:
    """A type's own retry function raised or answered nonsense."""
    logger.exception(
        "The retry function of %s failed for job %s; the default delay is used", job.job_type, job.id
    )


def context_hook_failed(key: str, job_type: str) -> None:
    """A hook that adds to a job's context raised."""
    logger.exception("The context hook %r failed for a job of type %s, left without it", key, job_type)


def task_not_importable(path: str) -> None:
    """The module of a Task raised something of its own when it was imported."""
    logger.exception("The module of task %s cannot be imported: its jobs wait for a worker that can", path)


def interrupted(job: Any, cause: BaseException) -> None:
    """A running handler is ended from outside."""
    logger.warning(
        "Job %s (%s) is interrupted (%s): %s", job.id, job.job_type, type(cause).__qualname__, cause
    )


def not_ended(job: Any, seconds: float, remedy: str) -> None:
    """A handler goes on though it was interrupted."""
    logger.error(
        "Job %s (%s) did not end within %s s of being interrupted: %s", job.id, job.job_type, seconds, remedy
    )


def connection_replaced(alias: str, job: Any) -> None:
    """A handler left a transaction open, or a closed connection."""
    logger.warning(
        "Job %s (%s) left a transaction open on the database %r, or its connection closed: replaced",
        job.id, job.job_type, alias,
    )  # fmt: skip


def pruned(count: int, status: str) -> None:
    """Old jobs were removed."""
    logger.info("Removed %s old jobs that were %s", count, status)


def service_died(name: str, error: BaseException | None = None) -> None:
    """A thread of the worker ended by an error of its own: ``error``, or the one being handled."""
    logger.critical("The worker's %s stopped by an error of its own", name, exc_info=error or True)


def database_away(what: str, error: BaseException, times: int) -> None:
    """The database does not answer; logged ever more seldom."""
    logger.warning("The database failed while %s (%s. time in a row), trying again: %s", what, times, error)


def database_back(what: str, times: int) -> None:
    """It answers again."""
    logger.warning("The database is back: %s goes on after %s failures", what, times)


def cannot_listen(problem: object) -> None:
    """LISTEN is not possible, or of no use; said once."""
    logger.warning(
        "Cannot LISTEN for new jobs, so they are found by polling. Set JOBQUEUE['LISTEN_DSN'] to an address "
        "that bypasses the pooler, or JOBQUEUE['LISTEN'] = False: %s",
        problem,
    )


def cannot_hear_ends(error: BaseException) -> None:
    """Those who wait for jobs are not told of their ends; said once a watch."""
    logger.warning("Cannot LISTEN for the ends of jobs, so they are looked for by polling: %s", error)


def progress_refused(count: int, error: BaseException) -> None:
    """The database refused to store progress."""
    logger.warning("The progress of %s jobs cannot be stored and is dropped: %s", count, error)


def figures_refused(error: BaseException) -> None:
    """The database refused what this worker counted."""
    logger.warning("The figures of the last half minute cannot be stored and are dropped: %s", error)


def outcome_refused(job: Any, error: BaseException) -> None:
    """The database refused to store an outcome."""
    logger.error(
        "The outcome of job %s (%s) cannot be stored, and is recorded as failed: %s",
        job.id,
        job.job_type,
        error,
    )


def worker_unfit(name: str) -> None:
    """A thread of a worker died, so the worker stops."""
    logger.critical("The worker stops because its %s died", name)


def process_started(pid: int | None, worker_id: str) -> None:
    """A worker process is there."""
    logger.info("Worker process %s started as worker %s", pid, worker_id)


def process_ended(pid: int | None, code: int | None, what: str) -> None:
    """A worker process is gone."""
    logger.log(
        logging.INFO if what == "as planned" else logging.ERROR,
        "Worker process %s ended (%s), %s",
        pid,
        code,
        what,
    )


def overdue(pid: int | None) -> None:
    """A process does not see to a time limit, since a handler lets no other code run, say."""
    logger.error("Worker process %s has not ended a job whose time is over: killed", pid)


def process_replaced_in(seconds: float) -> None:
    """Processes die at once again and again."""
    logger.error(
        "Worker processes keep dying right after their start: the next one starts in %.1f s", seconds
    )


def in_vain(times: int) -> None:
    """Starting more processes would not help."""
    logger.critical("%s worker processes in a row died before they had claimed once: giving up", times)


def timeouts_outlast_lease(types: list[str], lease: float) -> None:
    """At the start of an embedded worker, which renews its leases from a thread beside the handlers."""
    logger.warning(
        "Leases last %g s, and the timeouts of %s are longer. A thread of this process renews them: a "
        "handler that lets no other thread run for so long loses its job. Give the Worker a longer lease, or "
        "use runworker",
        lease, ", ".join(types),
    )  # fmt: skip


def health_not_written(path: Any, error: BaseException) -> None:
    """The file that probes look at; said once."""
    logger.error("Cannot write the health file %s: %s", path, error)


def stopping(grace: float, running: int) -> None:
    """A stop was asked."""
    logger.info(
        "Stopping: no new jobs; %s processes have %s s for running ones (again: stop at once)", running, grace
    )


def asked_to_stop(pid: int | None) -> None:
    """Somebody asked a worker to stop, by the admin or a command."""
    logger.info("Worker process %s was asked to stop: it ends when its jobs have, and is not replaced", pid)


def cut_off(count: int) -> None:
    """The grace is over, or a second signal came."""
    logger.warning("Cutting off %s worker processes; their jobs are given back", count)


def waiting_for_tables(alias: str) -> None:
    """At start."""
    logger.warning(
        "The queue's tables are missing on the database %r. Run: manage.py migrate --database %s",
        alias,
        alias,
    )


def strays_released(count: int, worker_id: str) -> None:
    """The table held jobs for a worker that it knew nothing of."""
    logger.warning(
        "Gave back %s jobs that worker %s had claimed without getting the answer", count, worker_id
    )
