"""``prune``: finished jobs leave. ``counts``: how many stand where."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from django_jobqueue.exceptions import InvalidOption
from django_jobqueue.managers import prune
from django_jobqueue.models import Job, JobStatus, Queue
from tests.moves.factories import (
    TYPE,
    ago,
    claimed,
    dead,
    enqueue,
    ids,
    in_status,
    selected,
    statements,
    statuses,
    write,
)
from tests.moves.threads import PATIENCE, before_each, in_thread

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
DAY = 86_400


def finished(status: JobStatus, days: float, **options: Any) -> Job:
    job = in_status(status, **options)
    write(job, finished_at=ago(days * DAY))
    return job


def left() -> set[Any]:
    return set(Job.objects.values_list("id", flat=True))


def test_by_default_done_and_cancelled_go_after_a_week_and_dead_never() -> None:
    kept = [finished(DONE, 6.9), finished(CANCELLED, 6.9), finished(DEAD, 1_000), enqueue(), claimed()]
    finished(DONE, 7.1)
    finished(CANCELLED, 7.1)
    assert Job.objects.prune() == 2
    assert left() == set(ids(kept))


def test_the_setting_says_how_long_each_status_is_kept(settings: Settings) -> None:
    settings.JOBQUEUE |= {"RETENTION": {"DONE": None, "DEAD": timedelta(days=30)}}
    kept = [finished(DONE, 1_000), finished(DEAD, 29)]
    finished(DEAD, 31)
    finished(CANCELLED, 8)
    assert Job.objects.prune() == 2
    assert left() == set(ids(kept))


def test_a_queue_may_keep_its_jobs_for_less_and_for_longer_than_the_others() -> None:
    Queue.objects.keep_for("short", timedelta(days=1))
    Queue.objects.keep_for("long", timedelta(days=30))
    kept = [
        finished(DONE, 0.9, queue="short"),
        finished(CANCELLED, 29, queue="long"),
        finished(DONE, 6.9),
        finished(DEAD, 1_000, queue="short"),
    ]
    for queue, days in (("short", 1.1), ("long", 31), ("other", 7.1)):
        finished(DONE, days, queue=queue)
        finished(CANCELLED, days, queue=queue)
    assert Job.objects.prune() == 6
    assert left() == set(ids(kept))
    assert Job.objects.prune(timedelta(0)) == 4


def test_a_queue_may_keep_its_jobs_for_longer_where_others_keep_theirs_for_ever(settings: Settings) -> None:
    settings.JOBQUEUE |= {"RETENTION": {"DONE": None}}
    Queue.objects.keep_for("short", timedelta(days=1))
    kept = finished(DONE, 1_000)
    finished(DONE, 2, queue="short")
    assert Job.objects.prune() == 1
    assert left() == {kept.id}
    Queue.objects.keep_for("short", None)
    again = finished(DONE, 2, queue="short")
    assert Job.objects.prune() == 0
    assert again.id in left()


def test_with_marks_jobs_that_stay_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "WINDOW", 2)
    Queue.objects.keep_for("short", timedelta(days=1))
    for days in (2.0, 3.0, 4.0, 5.0, 6.0):
        finished(DONE, days)
    finished(DONE, 3.5, queue="short")
    marks: prune.PruneMarks = {}
    assert Job.objects.prune(marks=marks) == 1
    with statements() as made:
        assert Job.objects.prune(marks=marks) == 0
    late = finished(DONE, 1.5, queue="short")
    assert Job.objects.prune(marks=marks) == 1
    assert late.id not in left()
    with statements() as without:
        Job.objects.prune()
    assert len(made) < len(without)


def test_jobs_that_ended_at_one_instant_are_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "WINDOW", 2)
    monkeypatch.setattr(prune, "CHUNK", 2)
    Queue.objects.keep_for("short", timedelta(days=1))
    others = [finished(DONE, 2) for _ in range(3)]
    mine = [finished(DONE, 2, queue="short") for _ in range(5)]
    selected(*others, *mine).update(finished_at=ago(2 * DAY))
    assert Job.objects.prune(most=3, marks=(marks := {})) == 3
    assert Job.objects.prune(marks=marks) == 2
    assert left() == set(ids(others))


@pytest.mark.parametrize("retention", [timedelta(seconds=-1), timedelta(days=40_000), 7])
def test_a_retention_that_makes_no_sense_is_refused(retention: Any) -> None:
    with pytest.raises(InvalidOption, match="36,525 days"):
        Queue.objects.keep_for("mail", retention)


def test_an_age_that_is_given_holds_for_every_finished_status() -> None:
    kept = [finished(status, 1) for status in (DONE, DEAD, CANCELLED)] + [enqueue(), claimed()]
    for status in (DONE, DEAD, CANCELLED):
        finished(status, 3)
    assert Job.objects.prune(timedelta(days=2)) == 3
    assert left() == set(ids(kept))


def test_active_jobs_never_go_however_old() -> None:
    kept = [enqueue(), claimed()]
    for job in kept:
        write(job, created_at=ago(1_000 * DAY), updated_at=ago(1_000 * DAY), run_after=ago(1_000 * DAY))
    assert Job.objects.prune(timedelta(0)) == 0
    assert left() == set(ids(kept))


def test_a_filter_narrows_what_goes() -> None:
    a, b = finished(DONE, 30, queue="a"), finished(DONE, 30, queue="b")
    assert Job.objects.filter(queue="a").prune() == 1
    assert left() == {b.id}
    assert a.id not in left()
    assert Job.objects.exclude(queue="b").prune() == 0


def test_the_oldest_go_first_and_no_more_than_asked() -> None:
    jobs = [finished(DONE, 30 - n) for n in range(6)]
    assert Job.objects.prune(most=2) == 2
    assert left() == set(ids(jobs[2:]))
    assert Job.objects.prune(most=0) == 0
    assert Job.objects.prune(most=100) == 4


def test_the_bound_counts_over_all_statuses() -> None:
    for status in (DONE, CANCELLED, DONE, CANCELLED):
        finished(status, 30)
    assert Job.objects.prune(most=3) == 3
    assert len(left()) == 1


def test_many_go_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "CHUNK", 10)
    Job.objects.enqueue_many([(TYPE, {})] * 25)
    Job.objects.filter(queue="default").cancel()
    Job.objects.update(finished_at=ago(30 * DAY))
    with statements() as made:
        assert Job.objects.prune() == 25
    assert len([sql for sql in made if "DELETE" in sql]) == 3


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_rows_that_others_hold_are_passed_over() -> None:
    held, free = finished(DONE, 30), finished(DONE, 20)
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=held.pk)
        with in_thread(Job.objects.prune) as pruned:
            assert pruned.result(PATIENCE) == 1
    assert left() == {held.id}
    assert Job.objects.prune() == 1
    assert free.id not in left()


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_retried_meanwhile_stays() -> None:
    """Its id was chosen before; the statement that removes looks at the status again."""
    job = finished(CANCELLED, 30)

    def retry() -> None:
        with in_thread(lambda: Job.objects.filter(pk=job.pk, status=CANCELLED).retry()):
            pass

    with before_each("WITH" if connection.vendor == "postgresql" else "DELETE", retry):
        assert Job.objects.prune() == 0
    assert statuses(job) == [PENDING]


def test_counts_has_every_status_zeros_included() -> None:
    assert Job.objects.counts() == dict.fromkeys(JobStatus, 0)
    for number, status in enumerate(JobStatus, 1):
        for _ in range(number):
            in_status(status)
    assert Job.objects.counts() == {PENDING: 1, RUNNING: 2, DONE: 3, DEAD: 4, CANCELLED: 5}
    assert list(Job.objects.counts()) == list(JobStatus)


def test_counts_are_one_statement() -> None:
    with statements() as made:
        Job.objects.counts()
        Job.objects.counts(by="queue")
    assert len(made) == 2


def test_counts_by_queue_and_type() -> None:
    enqueue(queue="a", job_type="tests:x")
    enqueue(queue="a", job_type="tests:y")
    dead(queue="b", job_type="tests:x")
    zeros = dict.fromkeys(JobStatus, 0)
    assert Job.objects.counts(by="queue") == {"a": zeros | {PENDING: 2}, "b": zeros | {DEAD: 1}}
    assert Job.objects.counts(by="job_type") == {
        "tests:x": zeros | {PENDING: 1, DEAD: 1},
        "tests:y": zeros | {PENDING: 1},
    }
    assert Job.objects.counts(by=("queue", "job_type")) == {
        ("a", "tests:x"): zeros | {PENDING: 1},
        ("a", "tests:y"): zeros | {PENDING: 1},
        ("b", "tests:x"): zeros | {DEAD: 1},
    }
    assert Job.objects.counts(by=("queue",)).keys() == {("a",), ("b",)}


def test_counts_of_a_selection() -> None:
    enqueue(queue="a")
    enqueue(queue="b")
    assert Job.objects.filter(queue="a").counts()[PENDING] == 1
    assert Job.objects.filter(queue="a").order_by("-id").counts(by="queue").keys() == {"a"}


def test_a_cap_stops_counting_there() -> None:
    for _ in range(5):
        enqueue()
    dead()
    assert Job.objects.counts(cap=3) == dict.fromkeys(JobStatus, 0) | {PENDING: 3, DEAD: 1}
    with statements() as made:
        Job.objects.counts(cap=3)
    assert all("LIMIT 3" in sql for sql in made)


@pytest.mark.parametrize(
    "arguments",
    [
        {"by": "status"},
        {"by": ()},
        {"by": ("queue", "x")},
        {"cap": 0},
        {"cap": True},
        {"by": "queue", "cap": 3},
    ],
    ids=str,
)
def test_what_cannot_be_counted_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        Job.objects.counts(**arguments)
