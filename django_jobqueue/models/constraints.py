"""The rules of a job row, held by the database itself, and the indexes. All partial, all few."""

from __future__ import annotations

from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Length
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThanOrEqual

from ..states import (
    ACTIVE,
    FINISHED,
    JOB_TYPE_LENGTH,
    KEY_LENGTH,
    MAX_ATTEMPTS_LIMIT,
    PRIORITY_MAX,
    PRIORITY_MIN,
    QUEUE_LENGTH,
    JobStatus,
)
from .fields import JSONKind

PREFIX = "jobqueue_job_"

_FINISHED = sorted(int(status) for status in FINISHED)
_ACTIVE = sorted(int(status) for status in ACTIVE)
_RUNNING = Q(status=int(JobStatus.RUNNING))
_PENDING = Q(status=int(JobStatus.PENDING))


def _check(name: str, condition: Q | Exact) -> CheckConstraint:
    return CheckConstraint(name=PREFIX + name, condition=condition)


def _length(field: str, most: int) -> Q:
    # SQLite keeps text of any length in a varchar, so the length is a rule of its own.
    return Q(GreaterThanOrEqual(Length(field), 1), LessThanOrEqual(Length(field), most))


CONSTRAINTS = [
    _check("status", Q(status__in=[int(status) for status in JobStatus])),
    _check("priority", Q(priority__gte=PRIORITY_MIN, priority__lte=PRIORITY_MAX)),
    _check("type_length", _length("job_type", JOB_TYPE_LENGTH)),
    _check("queue_length", _length("queue", QUEUE_LENGTH)),
    _check("dedupe_length", Q(dedupe_key__isnull=True) | _length("dedupe_key", KEY_LENGTH)),
    _check("lock_length", Q(lock_key__isnull=True) | _length("lock_key", KEY_LENGTH)),
    _check("max_attempts", Q(max_attempts__gte=1, max_attempts__lte=MAX_ATTEMPTS_LIMIT)),
    _check("attempts", Q(attempts__gte=0, attempts__lte=F("max_attempts"))),
    # One pending row without an attempt left would make every claim that meets it fail.
    _check("pending_attempts", ~_PENDING | Q(attempts__lt=F("max_attempts"))),
    _check("counters", Q(fence__gte=0, crashes__gte=0, snoozes__gte=0, releases__gte=0)),
    _check("running_lease", Q(_RUNNING, lease_until__isnull=False) | Q(~_RUNNING, lease_until__isnull=True)),
    _check(
        "running_owner",
        ~_RUNNING | Q(worker_id__isnull=False, claimed_at__isnull=False, attempts__gte=1, fence__gte=1),
    ),
    _check(
        "finished_time",
        Q(status__in=_FINISHED, finished_at__isnull=False) | Q(status__in=_ACTIVE, finished_at__isnull=True),
    ),
    _check("progress", Q(progress__isnull=True) | Q(progress__gte=0, progress__lte=1)),
    _check("payload_object", Exact(JSONKind("payload"), "object")),
    _check("context_object", Exact(JSONKind("context"), "object")),
    _check("errors_list", Exact(JSONKind("errors"), "array")),
    UniqueConstraint(
        name=PREFIX + "dedupe",
        fields=["dedupe_key"],
        condition=Q(dedupe_key__isnull=False, status__in=_ACTIVE),
    ),
    UniqueConstraint(
        name=PREFIX + "lock", fields=["lock_key"], condition=Q(_RUNNING, lock_key__isnull=False)
    ),
]

INDEXES = [
    # The order of claims inside each lane (queue, priority). Both descending, so that one row comparison
    # steps from a lane to the next.
    Index(
        F("queue").desc(), F("priority").desc(), "run_after", "id", name=PREFIX + "claim", condition=_PENDING
    ),
    Index("expires_at", name=PREFIX + "expiry", condition=Q(_PENDING, expires_at__isnull=False)),
    # Jobs that a throttled key had lately. Nothing is written to it before a job with a key has ended.
    Index(
        "dedupe_key",
        "created_at",
        name=PREFIX + "recent",
        condition=Q(dedupe_key__isnull=False, finished_at__isnull=False),
    ),
    # Renewal, reaping, cancel watch. Without lease_until: a renewal then touches no index (HOT).
    Index("worker_id", name=PREFIX + "worker", condition=_RUNNING),
    # "Has ended" is the same as the three statuses, and SQLite sees from any comparison that it holds.
    Index("status", "finished_at", name=PREFIX + "finished", condition=Q(finished_at__isnull=False)),
    Index(
        "job_type",
        "error_fingerprint",
        "finished_at",
        name=PREFIX + "dead",
        condition=Q(status=int(JobStatus.DEAD)),
    ),
]
