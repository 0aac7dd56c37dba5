"""Every log line of the queue, in one place. Logger ``django_jobqueue``; a line below its level costs nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

logger = logging.getLogger("django_jobqueue")


def enqueued(jobs: Iterable[Any]) -> None:
    """Jobs were made, or found by their dedupe key."""
    if not logger.isEnabledFor(logging.DEBUG):
        return
    for job in jobs:
        how = "enqueued" if job.created else "already active by its dedupe key"
        logger.debug("Job %s (%s) %s in queue %s", job.id, job.job_type, how, job.queue)


def attempt_failed(job: Any, status: str, text: str, again: Any) -> None:
    """An attempt failed; what becomes of the job."""
    if status == "PENDING":
        logger.warning(
            "Job %s (%s) failed attempt %s of %s, again at %s: %s",
            job.id, job.job_type, job.attempts, job.max_attempts, again, text,
        )  # fmt: skip
    else:
        logger.error(
            "Job %s (%s) failed attempt %s of %s and is %s: %s",
            job.id, job.job_type, job.attempts, job.max_attempts, status, text,
        )  # fmt: skip


def claim_lost(job: Any) -> None:
    """An outcome was not written because the job is no longer held."""
    logger.warning(
        "Job %s (%s): this worker no longer holds it, so its outcome is not written", job.id, job.job_type
    )


def unknown_type(job: Any, seconds: float) -> None:
    """A job was given back because no handler here has its type."""
    logger.warning(
        "Job %s has the type %r, which this worker does not know: given back; this type is left alone for %s s",
        job.id, job.job_type, seconds,
    )  # fmt: skip


def reaped(job_id: Any, job_type: str, worker_id: str, status: str) -> None:
    """A job was taken back from a lost worker."""
    logger.warning(
        "Job %s (%s) was taken back from the lost worker %s and is %s", job_id, job_type, worker_id, status
    )


def retry_rule_failed(job: Any) -> None:
    """A type's own retry function raised or answered nonsense."""
    logger.exception("The retry function of %s failed for job %s; the default delay is used", job.job_type, job.id)


def open_transaction_closed(alias: str, job: Any) -> None:
    """A handler left a transaction open."""
    logger.warning(
        "Job %s (%s) left a transaction open on the database %r; it was rolled back and its connection closed",
        job.id, job.job_type, alias,
    )  # fmt: skip


def pruned(count: int, status: str) -> None:
    """Old jobs were removed."""
    logger.info("Removed %s jobs that were %s for longer than RETENTION keeps them", count, status)
