"""Who listens is told what became of a job; who fails at listening breaks nothing."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import transaction
from django.dispatch import Signal

from django_jobqueue import signals
from django_jobqueue.models import Job, JobStatus
from tests.moves.conftest import tests_types
from tests.moves.factories import LATE, ago, claimed, dead, enqueue, lose_lease, selected, write

__all__ = ["tests_types"]

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
PROMISED = ("id", "job_type", "queue", "priority", "attempts", "max_attempts")


@contextmanager
def heard(signal: Signal) -> Iterator[list[dict[str, Any]]]:
    """What a receiver of the signal gets within the block."""
    got: list[dict[str, Any]] = []

    def receiver(sender: Any, **facts: Any) -> None:
        del facts["signal"]
        got.append({"sender": sender, **facts})

    signal.connect(receiver)
    try:
        yield got
    finally:
        signal.disconnect(receiver)


@pytest.fixture
def broken() -> Iterator[None]:
    """A receiver of every signal that always fails."""

    def receiver(**facts: Any) -> None:
        raise RuntimeError("a broken receiver")

    every = [one for one in vars(signals).values() if isinstance(one, Signal)]
    for signal in every:
        signal.connect(receiver)
    yield
    for signal in every:
        signal.disconnect(receiver)


def test_a_signal_carries_its_sender_job_and_facts() -> None:
    signal, one = Signal(), SimpleNamespace(id=1)
    with heard(signal) as got:
        signals.announce(signal, Job, one, status="done")
    assert got == [{"sender": Job, "job": one, "status": "done"}]


def test_a_broken_receiver_is_logged_with_the_jobs_id_and_others_still_hear(
    caplog: pytest.LogCaptureFixture,
) -> None:
    signal = Signal()

    def receiver(**facts: Any) -> None:
        raise RuntimeError("a broken receiver")

    signal.connect(receiver)
    with heard(signal) as got, caplog.at_level(logging.ERROR, "django_jobqueue.signals"):
        signals.announce(signal, Job, SimpleNamespace(id="the-id"))
    assert len(got) == 1
    [record] = [one for one in caplog.records if one.name == "django_jobqueue.signals"]
    assert "the-id" in record.getMessage()
    assert record.exc_info
    assert str(record.exc_info[1]) == "a broken receiver"


def test_a_worker_delivers_signals_later_in_its_own_way() -> None:
    signal, later = Signal(), list[Callable[[], None]]()
    with heard(signal) as got:
        with signals.delivered_by(later.append):
            signals.announce(signal, Job, SimpleNamespace(id=1))
        assert not got
        [deliver] = later
        deliver()
        assert len(got) == 1
        signals.announce(signal, Job, SimpleNamespace(id=2))
        assert len(got) == 2


def test_nothing_is_delivered_when_nobody_listens() -> None:
    later = list[Callable[[], None]]()
    with signals.delivered_by(later.append):
        signals.announce(Signal(), Job, SimpleNamespace(id=1))
    assert not later


@pytest.mark.django_db
def test_enqueued_is_told_for_each_job_made_and_for_no_other() -> None:
    with heard(signals.job_enqueued) as got:
        first = enqueue(dedupe_key="k")
        enqueue(dedupe_key="k")
        more = Job.objects.enqueue_many(
            [{"job_type": "tests:any", "dedupe_key": key} for key in ("k", "l", "l")]
        )
    assert [one["job"].id for one in got] == [first.id, more[1].id]
    assert all(one["sender"] is Job for one in got)


@pytest.mark.django_db
def test_enqueued_is_told_inside_the_transaction() -> None:
    seen = []

    def receiver(job: Any, **facts: Any) -> None:
        seen.append((transaction.get_connection().in_atomic_block, Job.objects.filter(pk=job.id).exists()))

    signals.job_enqueued.connect(receiver)
    try:
        enqueue()
    finally:
        signals.job_enqueued.disconnect(receiver)
    assert seen == [(True, True)]


@pytest.mark.django_db
def test_finished_is_told_when_done_dead_or_cancelled() -> None:
    done, dies, cancelled, asked = claimed(), claimed(), enqueue(), claimed()
    with heard(signals.job_finished) as got:
        Job.objects.complete(done)
        Job.objects.fail(dies, ValueError("no"), delay=None)
        selected(cancelled, asked).cancel("not wanted")
        Job.objects.fail(asked, ValueError("stopped"))
    told = [(one["job"].id, one["status"], one["error"]) for one in got]
    assert told == [
        (done.id, DONE, ""),
        (dies.id, DEAD, "ValueError: no"),
        (cancelled.id, CANCELLED, "not wanted"),
        (asked.id, CANCELLED, "ValueError: stopped"),
    ]


@pytest.mark.django_db
def test_finished_is_told_when_a_job_expires() -> None:
    job = enqueue(expires_at=timedelta(hours=1))
    write(job, expires_at=ago(1))
    with heard(signals.job_finished) as got:
        Job.objects.expire()
    [one] = got
    assert (one["job"].id, one["status"]) == (job.id, CANCELLED)
    assert "expires_at" in one["error"]


@pytest.mark.django_db
def test_nothing_is_told_of_a_lost_claim() -> None:
    late = claimed(LATE)
    lose_lease(late)
    Job.objects.reap()
    with heard(signals.job_finished) as finished, heard(signals.job_retried) as retried:
        Job.objects.complete(late)
        Job.objects.fail(late, "late")
    assert not finished
    assert not retried


@pytest.mark.django_db
def test_retried_is_told_after_a_failure_and_after_a_retry_by_hand() -> None:
    fails, died = claimed(), dead()
    with heard(signals.job_retried) as got:
        Job.objects.fail(fails, ValueError("no"), delay=30)
        selected(died).retry()
    first, second = got
    assert (first["job"].id, first["error"]) == (fails.id, "ValueError: no")
    assert first["run_after"] == Job.objects.get(pk=fails.id).run_after
    assert (second["job"].id, second["error"], second["run_after"]) == (died.id, "", None)


@pytest.mark.django_db
def test_a_snooze_and_a_release_are_no_news() -> None:
    snoozed, released = claimed(), claimed()
    with heard(signals.job_retried) as retried, heard(signals.job_finished) as finished:
        Job.objects.snooze(snoozed, 5)
        Job.objects.release(released)
    assert not retried
    assert not finished


@pytest.mark.django_db
def test_reaped_is_told_with_the_worker_that_was_lost() -> None:
    again, last = claimed(LATE), claimed(LATE, max_attempts=1)
    Job.objects.record_started(LATE, [(last.id, 1.0)])
    with heard(signals.job_reaped) as reaped, heard(signals.job_finished) as finished:
        Job.objects.reap(worker_id=LATE)
    told = {one["job"].id: (one["status"], one["worker_id"]) for one in reaped}
    assert told == {again.id: (PENDING, LATE), last.id: (DEAD, LATE)}
    [one] = finished
    assert (one["job"].id, one["status"]) == (last.id, DEAD)
    assert "WorkerLost" in one["error"]


@pytest.mark.django_db
def test_every_signal_brings_the_promised_columns_without_a_query(django_assert_num_queries: Any) -> None:
    every = [signals.job_enqueued, signals.job_finished, signals.job_retried, signals.job_reaped]
    got: list[Any] = []

    def receiver(job: Any, **facts: Any) -> None:
        got.append(job)

    for signal in every:
        signal.connect(receiver)
    try:
        options: dict[str, Any] = {"priority": 7, "max_attempts": 4}
        Job.objects.complete(claimed(**options))
        Job.objects.fail(claimed(**options), "no")
        selected(dead(**options)).retry()
        selected(enqueue(**options)).cancel()
        claimed(LATE, **options)
        Job.objects.reap(worker_id=LATE)
        write(enqueue(**options), expires_at=ago(1))
        Job.objects.expire()
    finally:
        for signal in every:
            signal.disconnect(receiver)
    with django_assert_num_queries(0):
        columns = [{name: getattr(job, name) for name in PROMISED} for job in got]
    assert len(columns) == 13
    assert {(one["job_type"], one["priority"], one["max_attempts"]) for one in columns} == {
        ("tests:any", 7, 4)
    }


@pytest.mark.django_db
@pytest.mark.usefixtures("broken")
def test_broken_receivers_break_no_move() -> None:
    assert Job.objects.complete(claimed())
    assert Job.objects.fail(claimed(), "no")
    assert selected(dead()).retry().done == 1
    assert selected(enqueue()).cancel().done == 1
    claimed(LATE)
    assert Job.objects.reap(worker_id=LATE) == 1
    assert Job.objects.count() == 5
