"""When the next job of the served queues is due, as an idle worker asks it."""

from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.models import Job, JobStatus, Queue
from tests.moves.factories import ago, claim, dead, enqueue, selected

pytestmark = pytest.mark.django_db


def next_due(**options: Any) -> float | None:
    seconds: float | None = Job.objects.next_due(ClaimRequest(worker_id="w", limit=1, lease=60, **options))
    return seconds


def later(seconds: float, **options: Any) -> Job:
    return enqueue(run_after=timedelta(seconds=seconds), **options)


def test_there_is_none_without_pending_jobs() -> None:
    assert next_due() is None
    dead()
    enqueue()
    claim()
    assert next_due() is None


def test_a_due_job_is_due_since_a_while() -> None:
    job = enqueue()
    Job.objects.filter(pk=job.pk).update(run_after=ago(30))
    assert next_due() == pytest.approx(-30, abs=5)


def test_the_first_of_all_lanes_counts() -> None:
    for n in range(40):
        later(1_000 + n, queue=f"q{n % 8}", priority=n % 5)
    later(100, queue="q3", priority=-7)
    assert next_due() == pytest.approx(100, abs=5)
    selected(later(5_000)).reschedule(timedelta(seconds=50))
    assert next_due() == pytest.approx(50, abs=5)


def test_only_queues_that_are_served_and_not_paused_count() -> None:
    later(10, queue="a")
    later(200, queue="b")
    later(3_000, queue="c")
    assert next_due(queues=["b", "c"]) == pytest.approx(200, abs=5)
    assert next_due(exclude_queues=["a", "b"]) == pytest.approx(3_000, abs=5)
    assert next_due(queues=["a", "c"], exclude_queues=["a"]) == pytest.approx(3_000, abs=5)
    assert next_due(queues=["none"]) is None
    Queue.objects.pause("a")
    assert next_due() == pytest.approx(200, abs=5)
    Queue.objects.resume("a")
    assert next_due() == pytest.approx(10, abs=5)


def test_to_ask_changes_nothing() -> None:
    job = enqueue()
    next_due()
    assert Job.objects.get(pk=job.pk).status == JobStatus.PENDING
