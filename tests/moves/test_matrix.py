"""Every move from every status: the legal ones move, all others leave the row as it was."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue.models import Job, JobStatus
from django_jobqueue.states import MOVES
from tests.moves.factories import LATE, TYPE, WORKER, ago, in_status, make_due, row, selected, write

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


#: What each move does to one job; true if it says that it was done.
ACTS: dict[str, Callable[[Job], Any]] = {
    "claim": lambda job: Job.objects.claim(worker_id=LATE, limit=10),
    "complete": lambda job: Job.objects.complete(job, {"answer": 42}),
    "fail": lambda job: Job.objects.fail(job, ValueError("no")),
    "snooze": lambda job: Job.objects.snooze(job, 60),
    "release": Job.objects.release,
    "reap": lambda job: Job.objects.reap(worker_id=WORKER),
    "cancel": lambda job: int(selected(job).cancel()),
    "expire": lambda job: Job.objects.expire(),
    "retry": lambda job: int(selected(job).retry()),
    "reschedule": lambda job: int(selected(job).reschedule(priority=50)),
    "discard": lambda job: int(selected(job).discard()),
    "prune": lambda job: selected(job).prune(timedelta(0)),
}

#: Where a job comes to, if nothing else is the matter with it.
USUAL = {
    "claim": RUNNING,
    "complete": DONE,
    "fail": PENDING,
    "snooze": PENDING,
    "release": PENDING,
    "reap": PENDING,
    "cancel": CANCELLED,
    "expire": CANCELLED,
    "retry": PENDING,
    "reschedule": PENDING,
    "discard": None,
    "prune": None,
}


def ready_for(move: str, status: JobStatus) -> Job:
    """A job in ``status`` that only its status could keep from the move."""
    job = in_status(status)
    make_due(job)
    if move == "expire":
        write(job, expires_at=ago(1))
    return job


def test_every_move_is_in_the_matrix() -> None:
    assert ACTS.keys() == USUAL.keys() == MOVES.keys() - {"enqueue"}


def sentence(value: JobStatus | str) -> str:
    return value.name if isinstance(value, JobStatus) else value


LEGAL = [(move, status) for move in ACTS for status in JobStatus if status in MOVES[move][0]]
ILLEGAL = [(move, status) for move in ACTS for status in JobStatus if status not in MOVES[move][0]]


@pytest.mark.parametrize(("move", "status"), LEGAL, ids=sentence)
def test_a_legal_move_goes_where_the_table_of_moves_says(move: str, status: JobStatus) -> None:
    job = ready_for(move, status)
    assert ACTS[move](job)
    now = selected(job).values_list("status", flat=True).first()
    asked = move == "cancel" and status is RUNNING
    assert now == (RUNNING if asked else USUAL[move])
    assert now in MOVES[move][1]


@pytest.mark.parametrize(("move", "status"), ILLEGAL, ids=sentence)
def test_an_illegal_move_writes_nothing(move: str, status: JobStatus) -> None:
    job = ready_for(move, status)
    before = row(job)
    assert not ACTS[move](job)
    assert row(job) == before


@pytest.mark.parametrize("status", [PENDING, DONE, DEAD, CANCELLED], ids=sentence)
def test_only_a_running_job_has_its_lease_renewed(status: JobStatus) -> None:
    job = in_status(status)
    before = row(job)
    assert not Job.objects.renew_lease(worker_ids=[WORKER]).held
    assert row(job) == before


@pytest.mark.parametrize("status", [PENDING, DONE, DEAD, CANCELLED], ids=sentence)
def test_only_a_running_job_takes_progress_and_a_start(status: JobStatus) -> None:
    job = in_status(status)
    before = row(job)
    Job.objects.report_progress(WORKER, [(job.id, job.fence, 0.5, "half")])
    Job.objects.record_started(WORKER, [(job.id, 1.0)])
    assert row(job) == before


def test_enqueue_makes_a_pending_job() -> None:
    job = Job.objects.enqueue(TYPE)
    assert row(job)["status"] == PENDING
