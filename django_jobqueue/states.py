"""The words for where a job stands, and which moves lead from one place to another."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class JobStatus(models.IntegerChoices):
    """Where a job stands. The numbers are stored; they never change their meaning."""

    PENDING = 1, _("pending")
    RUNNING = 2, _("running")
    DONE = 3, _("done")
    DEAD = 4, _("dead")
    CANCELLED = 5, _("cancelled")


#: A dedupe key is held by at most one job in these.
ACTIVE = frozenset({JobStatus.PENDING, JobStatus.RUNNING})

#: A job in one of these has its ``finished_at`` and is left alone by the workers.
FINISHED = frozenset({JobStatus.DONE, JobStatus.DEAD, JobStatus.CANCELLED})

#: Every move that writes ``Job.status``: from where, to where. ``None`` is "no row".
#: ``cancel`` of a running job only asks, so it stays RUNNING; a job that was asked to stop becomes
#: CANCELLED whenever it would go back to PENDING.
MOVES: dict[str, tuple[frozenset[JobStatus | None], frozenset[JobStatus | None]]] = {
    "enqueue": (frozenset({None}), frozenset({JobStatus.PENDING})),
    "claim": (frozenset({JobStatus.PENDING}), frozenset({JobStatus.RUNNING})),
    "complete": (frozenset({JobStatus.RUNNING}), frozenset({JobStatus.DONE})),
    "fail": (
        frozenset({JobStatus.RUNNING}),
        frozenset({JobStatus.PENDING, JobStatus.DEAD, JobStatus.CANCELLED}),
    ),
    "snooze": (
        frozenset({JobStatus.RUNNING}),
        frozenset({JobStatus.PENDING, JobStatus.DEAD, JobStatus.CANCELLED}),
    ),
    "release": (
        frozenset({JobStatus.RUNNING}),
        frozenset({JobStatus.PENDING, JobStatus.DEAD, JobStatus.CANCELLED}),
    ),
    "reap": (
        frozenset({JobStatus.RUNNING}),
        frozenset({JobStatus.PENDING, JobStatus.DEAD, JobStatus.CANCELLED}),
    ),
    "cancel": (
        frozenset({JobStatus.PENDING, JobStatus.RUNNING}),
        frozenset({JobStatus.CANCELLED, JobStatus.RUNNING}),
    ),
    "expire": (frozenset({JobStatus.PENDING}), frozenset({JobStatus.CANCELLED})),
    "retry": (frozenset({JobStatus.DEAD, JobStatus.CANCELLED}), frozenset({JobStatus.PENDING})),
    "reschedule": (frozenset({JobStatus.PENDING}), frozenset({JobStatus.PENDING})),
    "discard": (FINISHED, frozenset({None})),
    "prune": (FINISHED, frozenset({None})),
}

PRIORITY_MIN = -100
PRIORITY_MAX = 100
MAX_ATTEMPTS_LIMIT = 10_000
JOB_TYPE_LENGTH = 200
QUEUE_LENGTH = 100
KEY_LENGTH = 200
DEFAULT_QUEUE = "default"
