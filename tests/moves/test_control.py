"""``cancel`` and ``reschedule``: on whatever the query set selects, each told by a report."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from django_jobqueue.exceptions import InvalidOption
from django_jobqueue.managers import Report, control
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    TYPE,
    ago,
    claim,
    claimed,
    enqueue,
    ids,
    in_status,
    row,
    seconds_from_now,
    selected,
    statements,
    statuses,
    stored,
)

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def one_of_each() -> dict[JobStatus, Job]:
    return {status: in_status(status) for status in JobStatus}


def test_cancelling_ends_a_waiting_job_and_asks_a_running_one() -> None:
    jobs = one_of_each()
    report = Job.objects.all().cancel("not wanted any more")
    assert report.done == 2
    assert report.refused == {"is done": 1, "is dead": 1, "is cancelled": 1}
    waited, runs = stored(jobs[PENDING]), stored(jobs[RUNNING])
    assert (waited.status, waited.last_error) == (CANCELLED, "not wanted any more")
    assert waited.finished_at is not None
    assert (runs.status, runs.last_error, runs.finished_at) == (RUNNING, "", None)
    assert -5 < seconds_from_now(runs.cancel_requested_at) <= 0


@pytest.mark.parametrize("reason", ["a\x00b", "a\ud800b", "€" * 100_000], ids=["NUL", "surrogate", "long"])
def test_a_reason_is_kept_as_far_as_it_can_be_stored(reason: str) -> None:
    job = enqueue()
    assert selected(job).cancel(reason).done == 1
    assert stored(job).last_error[0] == reason[0]
    assert len(stored(job).last_error) < 5_000


def test_a_job_that_was_asked_already_is_refused_with_that_reason() -> None:
    job = claimed()
    assert selected(job).cancel().done == 1
    before = row(job)
    report = selected(job).cancel()
    assert (report.done, dict(report.refused)) == (0, {"was asked to stop before": 1})
    assert row(job) == before


def test_only_what_is_selected_is_cancelled() -> None:
    a, b = enqueue(queue="a"), enqueue(queue="b")
    assert Job.objects.filter(queue="a").cancel().done == 1
    assert statuses(a, b) == [CANCELLED, PENDING]


def test_a_slice_bounds_how_many() -> None:
    jobs = [enqueue() for _ in range(5)]
    assert Job.objects.order_by("id")[:2].cancel().done == 2
    assert Job.objects.order_by("-id")[:1].cancel().done == 1
    assert statuses(*jobs) == [CANCELLED, CANCELLED, PENDING, PENDING, CANCELLED]


def test_nothing_selected_is_nothing_done() -> None:
    enqueue()
    for report in (Job.objects.none().cancel(), Job.objects.filter(queue="x").reschedule(priority=1)):
        assert (int(report), dict(report.refused)) == (0, {})


def test_a_job_that_ends_while_the_move_is_on_its_way_is_counted_as_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker was faster: the ids were chosen before, the guard is looked at in the statement."""
    job, gone = claimed(), enqueue()
    chunks = [list(ids([job, gone]))]
    monkeypatch.setattr(control.ControlMoves, "_chunks", lambda self: iter(chunks))
    Job.objects.complete(job)
    selected(gone).delete()
    report = Job.objects.all().cancel()
    assert (report.done, dict(report.refused)) == (0, {"is done": 1, "is gone": 1})


def test_many_jobs_are_moved_chunk_by_chunk() -> None:
    Job.objects.enqueue_many([(TYPE, {})] * 1_200)
    with statements() as made:
        assert Job.objects.filter(queue="default").cancel().done == 1_200
    assert len([sql for sql in made if "UPDATE" in sql]) == 3
    assert Job.objects.counts()[CANCELLED] == 1_200


def test_a_report_reads_as_a_sentence() -> None:
    one_of_each()
    report = Job.objects.all().reschedule(priority=1)
    assert int(report) == 1
    assert str(report).startswith("1 done; 1 refused: is running; ")
    assert str(Report()) == "0 done"


def test_a_waiting_job_may_be_run_now_or_later() -> None:
    job = enqueue(run_after=timedelta(hours=5))
    assert selected(job).reschedule(timedelta(0)).done == 1
    assert ids(claim()) == [job.id]
    other = enqueue()
    assert selected(other).reschedule(timedelta(hours=1)).done == 1
    assert 3_590 < seconds_from_now(stored(other).run_after) <= 3_600
    assert stored(other).priority == 0
    assert not claim()


def test_a_due_time_may_be_given() -> None:
    job = enqueue(run_after=timedelta(hours=5))
    wanted = ago(10)
    assert selected(job).reschedule(wanted, priority=7).done == 1
    assert (stored(job).run_after, stored(job).priority) == (wanted, 7)


def test_another_priority_leaves_the_time_alone() -> None:
    job = enqueue(run_after=timedelta(hours=5))
    assert selected(job).reschedule(priority=-100).done == 1
    assert (stored(job).priority, stored(job).run_after) == (-100, job.run_after)


def test_only_waiting_jobs_are_rescheduled() -> None:
    jobs = one_of_each()
    before = {status: row(job) for status, job in jobs.items()}
    report = Job.objects.all().reschedule(timedelta(0), priority=9)
    assert (report.done, report.refused.total()) == (1, 4)
    assert [status for status, job in jobs.items() if row(job) != before[status]] == [PENDING]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "needs run_after, priority or both"),
        ({"priority": 101}, "priority=101"),
        ({"priority": True}, "priority=True"),
        ({"run_after": 5}, "run_after=5"),
        ({"run_after": timedelta(seconds=-1)}, "run_after="),
    ],
    ids=str,
)
def test_a_bad_argument_is_refused_and_nothing_moves(arguments: dict[str, Any], why: str) -> None:
    job = enqueue()
    before = row(job)
    with pytest.raises(InvalidOption, match=why):
        selected(job).reschedule(**arguments)
    assert row(job) == before


def test_a_naive_due_time_is_refused_under_use_tz(settings: Settings) -> None:
    settings.USE_TZ = True
    job = enqueue()
    with pytest.raises(InvalidOption, match="has no time zone"):
        selected(job).reschedule(datetime(2026, 1, 1))


def test_rescheduling_does_not_lift_an_expiry() -> None:
    job = enqueue(expires_at=timedelta(hours=1))
    selected(job).reschedule(timedelta(hours=2))
    assert stored(job).expires_at == job.expires_at
