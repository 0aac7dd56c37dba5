"""``retry``: DEAD and CANCELLED jobs anew; a collision of keys stops only the job that collides."""

from itertools import pairwise
from typing import Any

import pytest
from django.db import transaction

from django_jobqueue.exceptions import InvalidOption, InvalidPayload
from django_jobqueue.managers import control
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    WORKER,
    ago,
    claim,
    claim_again,
    claimed,
    dead,
    enqueue,
    ids,
    in_status,
    lose_lease,
    row,
    seconds_from_now,
    selected,
    statuses,
    stored,
    write,
)
from tests.moves.threads import before_each, in_thread

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def test_a_dead_job_starts_anew_with_all_its_attempts() -> None:
    job = claimed(max_attempts=2, payload={"a": 1})
    lose_lease(job)
    Job.objects.reap()
    job = claim_again(job)
    Job.objects.report_progress(WORKER, [(job.id, job.fence, 0.5, "half")])
    Job.objects.snooze(job, 0)
    job = claim_again(job)
    Job.objects.fail(job, "first", delay=None)
    assert stored(job).status == DEAD
    assert selected(job).retry().done == 1
    fresh = stored(job)
    assert (fresh.status, fresh.attempts, fresh.max_attempts) == (PENDING, 0, 2)
    assert (fresh.crashes, fresh.snoozes, fresh.releases) == (0, 0, 0)
    assert (fresh.progress, fresh.progress_note, fresh.payload) == (None, "", {"a": 1})
    assert fresh.finished_at is fresh.cancel_requested_at is fresh.expires_at is None
    assert -5 < seconds_from_now(fresh.run_after) <= 0
    assert fresh.fence == 3
    assert [error["message"] for error in fresh.errors] == ["first"]


def test_a_retried_job_is_claimed_and_done() -> None:
    job = dead()
    selected(job).retry()
    [held] = claim()
    assert (held.id, held.attempts, held.fence) == (job.id, 1, 2)
    assert Job.objects.complete(held)


def test_a_cancelled_job_may_be_retried_and_was_not_asked_to_stop_any_more() -> None:
    job = in_status(CANCELLED)
    assert selected(job).retry().done == 1
    held = claim_again(job)
    Job.objects.fail(held, "no")
    assert stored(job).status == PENDING


def test_the_claim_before_the_retry_is_over() -> None:
    late = claimed()
    Job.objects.fail(late, "no", delay=None)
    selected(late).retry()
    claim_again(late)
    assert Job.objects.complete(late) is False


def test_a_retry_may_bring_another_payload() -> None:
    jobs = [dead(payload={"a": 1}) for _ in range(2)]
    assert selected(*jobs).retry({"b": [1, "€"]}).done == 2
    assert [stored(job).payload for job in jobs] == [{"b": [1, "€"]}] * 2


@pytest.mark.parametrize("payload", [{"a": {1}}, [], "text", {"a": float("nan")}, {"a": "\x00"}], ids=repr)
def test_a_bad_payload_is_refused_and_nothing_moves(payload: Any) -> None:
    job = dead()
    before = row(job)
    with pytest.raises(InvalidPayload):
        selected(job).retry(payload)
    assert row(job) == before


def test_every_job_that_is_not_dead_or_cancelled_is_refused_with_the_reason() -> None:
    jobs = {status: in_status(status) for status in JobStatus}
    before = {status: row(job) for status, job in jobs.items()}
    report = Job.objects.all().retry()
    assert report.done == 2
    assert report.refused == {"is pending": 1, "is running": 1, "is done": 1}
    assert [status for status, job in jobs.items() if row(job) != before[status]] == [DEAD, CANCELLED]


@pytest.mark.parametrize("holder", [PENDING, RUNNING], ids=lambda one: one.name)
@pytest.mark.parametrize("status", [DEAD, CANCELLED], ids=lambda one: one.name)
def test_a_job_whose_key_an_active_one_has_is_refused_with_the_reason(
    status: JobStatus, holder: JobStatus
) -> None:
    job = in_status(status, dedupe_key="k")
    in_status(holder, dedupe_key="k")
    others = [dead(), dead(dedupe_key="other")]
    before = row(job)
    report = selected(job, *others).retry()
    assert report.done == 2
    [[reason, count]] = report.refused.items()
    assert "another active job has its dedupe key" in reason
    assert count == 1
    assert row(job) == before
    assert statuses(*others) == [PENDING, PENDING]


def test_of_several_dead_jobs_with_one_key_one_is_retried() -> None:
    jobs = [dead(dedupe_key="k") for _ in range(4)]
    others = [dead() for _ in range(3)]
    report = selected(*jobs, *others).retry()
    assert (report.done, report.refused.total()) == (4, 3)
    assert sorted(statuses(*jobs)) == [PENDING, DEAD, DEAD, DEAD]
    assert statuses(*others) == [PENDING] * 3


@pytest.mark.parametrize("ended", [DONE, PENDING], ids=lambda one: one.name)
def test_a_finished_namesake_in_the_selection_does_not_keep_a_dead_job_from_its_retry(
    ended: JobStatus,
) -> None:
    """The DONE job of that key is refused; the key itself is free."""
    if ended == DONE:
        in_status(DONE, dedupe_key="k")
    job = dead(dedupe_key="k")
    if ended == PENDING:
        later = enqueue(dedupe_key="k")
        Job.objects.complete(claim_again(later))
    report = Job.objects.filter(dedupe_key="k").retry()
    assert (report.done, dict(report.refused)) == (1, {"is done": 1})
    assert stored(job).status == PENDING


def test_one_key_over_several_chunks_is_retried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "CHUNK", 2)
    jobs = [dead(dedupe_key="k" if n % 2 else None) for n in range(6)]
    report = selected(*jobs).retry()
    assert (report.done, report.refused.total()) == (4, 2)


@pytest.mark.django_db(transaction=True)
def test_a_key_that_is_taken_while_the_retry_is_on_its_way_stops_only_its_job() -> None:
    keyed = [dead(dedupe_key=f"k{n}") for n in range(3)]
    plain = [dead() for _ in range(3)]
    rivals: list[Job] = []

    def rival() -> None:
        if not rivals:
            with in_thread(lambda: enqueue(dedupe_key="k1")) as made:
                rivals.append(made.result())

    with before_each("WITH", rival):
        report = selected(*keyed, *plain).retry()
    assert len(rivals) == 1
    assert (report.done, report.refused.total()) == (5, 1)
    assert statuses(*keyed) == [PENDING, DEAD, PENDING]
    assert statuses(*plain) == [PENDING] * 3


def test_a_blind_look_at_the_keys_still_retries_all_that_do_not_collide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a race that is lost between look and write: the unique index refuses, one by one."""
    monkeypatch.setattr("django_jobqueue.databases.controlling.KEY_TAKEN", "FALSE")
    collides, fine, plain = dead(dedupe_key="k"), dead(dedupe_key="other"), dead()
    enqueue(dedupe_key="k")
    report = selected(collides, fine, plain).retry()
    assert (report.done, report.refused.total()) == (2, 1)
    assert statuses(collides, fine, plain) == [DEAD, PENDING, PENDING]


def test_a_retried_job_holds_its_key_again() -> None:
    job = dead(dedupe_key="k")
    selected(job).retry()
    assert enqueue(dedupe_key="k").id == job.id


def test_only_what_is_selected_is_retried() -> None:
    jobs = [dead() for _ in range(4)]
    write(jobs[0], error_fingerprint="mine")
    assert Job.objects.filter(status=DEAD, error_fingerprint="mine").retry().done == 1
    assert Job.objects.filter(status=DEAD).order_by("id")[:2].retry().done == 2
    assert statuses(*jobs) == [PENDING, PENDING, PENDING, DEAD]
    assert set(ids(claim(10))) == set(ids(jobs[:3]))


def test_a_delay_and_a_speed_spread_the_jobs_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "CHUNK", 2)
    jobs = [dead() for _ in range(5)]
    assert Job.objects.filter(status=DEAD).retry(delay=60, per_minute=30).done == 5
    waits = [round(seconds_from_now(stored(job).run_after)) for job in jobs]
    assert waits == pytest.approx([60, 62, 64, 66, 68], abs=2)
    assert [b - a for a, b in pairwise(waits)] == pytest.approx([2] * 4, abs=1)


def test_jobs_that_are_refused_take_no_part_in_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "CHUNK", 1)
    refused, retried = dead(dedupe_key="k"), dead()
    enqueue(dedupe_key="k")
    assert selected(refused, retried).retry(per_minute=1).done == 1
    assert seconds_from_now(stored(retried).run_after) <= 0


@pytest.mark.parametrize("speed", [0, -1, True, "60", float("nan")])
def test_a_speed_that_is_none_is_refused_before_anything_is_moved(speed: Any) -> None:
    job = dead()
    with pytest.raises(InvalidOption, match="per_minute"):
        selected(job).retry(per_minute=speed)
    assert stored(job).status == DEAD


def test_the_first_payload_is_kept_however_often_it_is_replaced() -> None:
    job = dead(payload={"n": 1})
    selected(job).retry()
    assert "original_payload" not in stored(job).context
    for n in (2, 3):
        write(job, status=DEAD, finished_at=ago(1))
        selected(job).retry(payload={"n": n})
    assert stored(job).payload == {"n": 3}
    assert stored(job).context["original_payload"] == {"n": 1}


def test_what_has_ended_is_discarded_and_the_rest_is_refused_by_its_status() -> None:
    ended = [in_status(status) for status in (DONE, DEAD, CANCELLED)]
    active = [in_status(PENDING), claimed()]
    report = selected(*ended, *active).discard()
    assert (report.done, dict(report.refused)) == (3, {"is pending": 1, "is running": 1})
    assert list(Job.objects.order_by("pk")) == active


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
def test_a_job_that_somebody_else_is_changing_is_not_discarded() -> None:
    job = dead()
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=job.pk)
        with in_thread(lambda: selected(job).discard()) as report:
            assert dict(report.result(10).refused) == {"is being changed by somebody else": 1}
