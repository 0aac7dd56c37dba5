"""What an enqueue does when another job has its dedupe key: one policy after another."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone, translation
from pytest_django import Settings

from django_jobqueue import Dedupe, job, registry
from django_jobqueue.exceptions import DuplicateJob, InvalidOption
from django_jobqueue.handlers import Handler
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import (
    TYPE,
    ago,
    claim_again,
    claimed,
    enqueue,
    in_status,
    row,
    seconds_from_now,
    selected,
    statements,
    stored,
    write,
)

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
POLICIES = {
    "return": "return",
    "raise": "raise",
    "replace": "replace",
    "skip_for": Dedupe.skip_for(HOUR),
    "debounce": Dedupe.debounce(MINUTE),
}
every_policy = pytest.mark.parametrize("dedupe", POLICIES.values(), ids=POLICIES)
replacing = pytest.mark.parametrize(
    "dedupe", ["replace", Dedupe.debounce(MINUTE)], ids=["replace", "debounce"]
)


@every_policy
def test_a_free_key_makes_a_job_in_one_statement(dedupe: Any) -> None:
    with statements() as made:
        new = enqueue({"n": 1}, dedupe_key="k", dedupe=dedupe)
    assert len(made) == 1
    assert new.created is True
    assert stored(new).payload == {"n": 1}


@every_policy
def test_a_job_without_a_key_is_made_whatever_the_policy_of_its_type(dedupe: Any) -> None:
    @job("tests:sometimes_keyed", dedupe_key=lambda key: key, dedupe=dedupe)
    def sometimes_keyed(key: str | None) -> None: ...

    try:
        made = [sometimes_keyed.enqueue(key=None) for _ in range(2)]
    finally:
        registry.unregister("tests:sometimes_keyed")
    assert [one.created for one in made] == [True, True]


def test_return_answers_with_the_active_job() -> None:
    first = enqueue({"n": 1}, dedupe_key="k")
    second = enqueue({"n": 2}, dedupe_key="k", dedupe="return")
    assert (second.id, second.created, second.payload) == (first.id, False, {"n": 1})


# raise


@pytest.mark.parametrize("status", [PENDING, RUNNING], ids=lambda one: one.name)
def test_raise_tells_which_active_job_has_the_key(status: JobStatus) -> None:
    first = in_status(status, dedupe_key="k")
    with pytest.raises(
        DuplicateJob, match=rf"{first.id}.*is active and has the dedupe key 'k'.*stored"
    ) as told:
        enqueue(dedupe_key="k", dedupe="raise")
    assert told.value.job == first
    assert Job.objects.count() == 1


def test_raise_leaves_the_callers_transaction_usable() -> None:
    enqueue(dedupe_key="k")
    with transaction.atomic():
        with pytest.raises(DuplicateJob):
            enqueue(dedupe_key="k", dedupe="raise")
        assert connection.needs_rollback is False
        enqueue()
    assert Job.objects.count() == 2


@pytest.mark.parametrize("status", [DONE, DEAD, CANCELLED], ids=lambda one: one.name)
def test_raise_does_not_mind_jobs_that_have_ended(status: JobStatus) -> None:
    in_status(status, dedupe_key="k")
    assert enqueue(dedupe_key="k", dedupe="raise").created is True


def test_one_that_raises_stores_none_of_many() -> None:
    enqueue(dedupe_key="k")
    with pytest.raises(DuplicateJob):
        Job.objects.enqueue_many([(TYPE, {}), {"job_type": TYPE, "dedupe_key": "k", "dedupe": "raise"}])
    assert Job.objects.count() == 1


# replace and debounce


@replacing
def test_the_pending_job_becomes_what_the_call_asks_for(dedupe: Any) -> None:
    first = enqueue(
        {"n": 1},
        dedupe_key="k",
        run_after=HOUR,
        priority=1,
        lock_key="l1",
        expires_at=2 * HOUR,
        max_attempts=2,
    )
    other = enqueue(dedupe_key="other")
    before = row(other)
    with translation.override("de"), statements() as made:
        second = enqueue(
            {"n": 2},
            dedupe_key="k",
            dedupe=dedupe,
            job_type="tests:else",
            queue="q",
            priority=2,
            lock_key="l2",
            max_attempts=5,
        )
    assert len(made) == 2
    fresh = stored(first)
    assert (second.id, second.created) == (first.id, False)
    assert {name: getattr(second, name) for name in row(first)} == row(fresh)
    assert (fresh.payload, fresh.job_type, fresh.queue, fresh.priority) == ({"n": 2}, "tests:else", "q", 2)
    assert (fresh.lock_key, fresh.max_attempts, fresh.expires_at) == ("l2", 5, None)
    assert fresh.context == {"language": "de"}
    assert fresh.created_at == first.created_at
    assert abs(seconds_from_now(fresh.run_after) - (0 if dedupe == "replace" else 60)) < 5
    assert row(other) == before


def test_replace_takes_the_time_that_is_given() -> None:
    first = enqueue(dedupe_key="k")
    for run_after in (HOUR, timezone.now() + HOUR):
        enqueue(dedupe_key="k", dedupe="replace", run_after=run_after, expires_at=2 * HOUR)
        assert abs(seconds_from_now(stored(first).run_after) - 3_600) < 5
        assert abs(seconds_from_now(stored(first).expires_at) - 7_200) < 5


@replacing
def test_a_job_that_waits_for_its_retry_gets_all_its_attempts_again(dedupe: Any) -> None:
    first = claimed(dedupe_key="k", max_attempts=2)
    Job.objects.fail(first, "no", delay=60)
    enqueue(dedupe_key="k", dedupe=dedupe, max_attempts=1)
    fresh = stored(first)
    assert (fresh.status, fresh.attempts, fresh.max_attempts) == (PENDING, 0, 1)
    assert len(fresh.errors) == 1
    assert claim_again(fresh).attempts == 1


@replacing
def test_a_running_job_is_answered_as_it_is(dedupe: Any) -> None:
    first = claimed(dedupe_key="k", payload={"n": 1})
    before = row(first)
    second = enqueue({"n": 2}, dedupe_key="k", dedupe=dedupe)
    assert (second.id, second.created, second.status, second.payload) == (first.id, False, RUNNING, {"n": 1})
    assert row(first) == before


@replacing
def test_an_expired_job_is_not_revived(dedupe: Any) -> None:
    first = enqueue(dedupe_key="k", expires_at=timedelta(0))
    second = enqueue(dedupe_key="k", dedupe=dedupe)
    assert second.created is True
    assert stored(first).status == CANCELLED


def test_of_many_with_one_key_the_last_one_counts() -> None:
    keyed = {"job_type": TYPE, "dedupe_key": "k", "dedupe": "replace"}
    jobs = Job.objects.enqueue_many([*({**keyed, "payload": {"n": n}} for n in range(3)), (TYPE, {})])
    assert [one.created for one in jobs] == [True, False, False, True]
    assert stored(jobs[0]).payload == {"n": 2}
    assert Job.objects.count() == 2


def test_debounce_waits_after_the_last_call() -> None:
    first = enqueue({"n": 1}, dedupe_key="k", dedupe=Dedupe.debounce(MINUTE))
    assert 50 < seconds_from_now(stored(first).run_after) <= 60
    write(first, run_after=ago(-20))
    enqueue({"n": 2}, dedupe_key="k", dedupe=Dedupe.debounce(MINUTE))
    assert 50 < seconds_from_now(stored(first).run_after) <= 60
    assert stored(first).payload == {"n": 2}


def test_debounce_waits_no_longer_than_at_most_after_the_first_call() -> None:
    policy = Dedupe.debounce(MINUTE, at_most=5 * MINUTE)
    first = enqueue({"n": 1}, dedupe_key="k", dedupe=policy)
    write(first, created_at=ago(280))
    second = enqueue({"n": 2}, dedupe_key="k", dedupe=policy)
    assert 10 < seconds_from_now(second.run_after) <= 20
    assert second.payload == {"n": 2}


# skip_for


@pytest.mark.parametrize("status", [PENDING, RUNNING, DONE, DEAD], ids=lambda one: one.name)
def test_skip_for_answers_with_the_job_made_within_the_period(status: JobStatus) -> None:
    first = in_status(status, dedupe_key="k")
    with statements() as made:
        second = enqueue({"n": 2}, dedupe_key="k", dedupe=Dedupe.skip_for(HOUR))
    assert len(made) == 2
    assert (second.id, second.created, second.status) == (first.id, False, status)
    assert second.payload == {}


def test_skip_for_counts_from_the_making_of_the_last_job() -> None:
    first = in_status(DONE, dedupe_key="k")
    write(first, created_at=ago(3_590))
    assert enqueue(dedupe_key="k", dedupe=Dedupe.skip_for(HOUR)).id == first.id
    write(first, created_at=ago(3_610))
    assert enqueue(dedupe_key="k", dedupe=Dedupe.skip_for(HOUR)).created is True


def test_skip_for_does_not_count_what_was_cancelled() -> None:
    in_status(CANCELLED, dedupe_key="k")
    assert enqueue(dedupe_key="k", dedupe=Dedupe.skip_for(HOUR)).created is True


def test_skip_for_looks_at_its_own_key() -> None:
    in_status(DONE, dedupe_key="k")
    assert enqueue(dedupe_key="l", dedupe=Dedupe.skip_for(HOUR)).created is True
    assert enqueue(dedupe_key="k").created is True


def test_many_skip_row_by_row() -> None:
    done = in_status(DONE, dedupe_key="a")
    jobs = Job.objects.enqueue_many(
        [{"job_type": TYPE, "dedupe_key": key} for key in "baab"], dedupe=Dedupe.skip_for(HOUR)
    )
    assert [one.created for one in jobs] == [True, False, False, False]
    assert [one.id for one in jobs[1:3]] == [done.id] * 2


# The policy of a type, and what is refused.


@pytest.fixture
def handler() -> Iterator[Handler[Any, Any]]:
    @job("tests:keyed", dedupe_key="k", dedupe="raise")
    def keyed(n: int = 0) -> None: ...

    yield keyed
    registry.unregister("tests:keyed")


def test_the_call_overrules_the_policy_of_the_type(handler: Handler[Any, Any]) -> None:
    first = handler.enqueue()
    with pytest.raises(DuplicateJob):
        handler.enqueue()
    assert handler.using(dedupe="return").enqueue(n=2).id == first.id
    assert handler.using(dedupe="replace").enqueue(n=3).payload == {"n": 3}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"dedupe": "ignore", "dedupe_key": "k"}, r"dedupe='ignore' is no policy. Write \"return\""),
        ({"dedupe": 5, "dedupe_key": "k"}, "dedupe=5 is no policy"),
        ({"dedupe": "replace"}, "does nothing without a key. Give dedupe_key too"),
        (
            {"dedupe": Dedupe.debounce(MINUTE), "dedupe_key": "k", "run_after": MINUTE},
            r"debounce\(\) says itself when the job runs. Leave out run_after",
        ),
        (
            {"dedupe": Dedupe.skip_for(timedelta(days=8)), "dedupe_key": "k"},
            r"skip_for\(8 days, 0:00:00\).*RETENTION.*removes DONE ones after 7 days",
        ),
    ],
)
def test_what_no_policy_can_do_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        enqueue(**options)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dedupe("skip_for"),
        lambda: Dedupe("x"),
        lambda: Dedupe.skip_for(timedelta(0)),
        lambda: Dedupe.skip_for(-MINUTE),
        lambda: Dedupe.skip_for(60),  # type: ignore[arg-type]
        lambda: Dedupe.debounce(None),  # type: ignore[arg-type]
        lambda: Dedupe.debounce(MINUTE, at_most=MINUTE / 2),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_where_it_is_written(make: Any) -> None:
    with pytest.raises(InvalidOption):
        make()


def test_a_policy_for_longer_than_jobs_are_kept_is_fine_once_they_are_kept(settings: Settings) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": {"DONE": timedelta(days=30)}}
    assert enqueue(dedupe_key="k", dedupe=Dedupe.skip_for(timedelta(days=30))).created


@pytest.mark.parametrize("policy", ["replace", "skip_for"])
def test_what_is_taken_goes_on_being_selected(policy: str) -> None:
    """The job that is answered is a whole row, with its database: it can be read on."""
    first = enqueue(dedupe_key="k")
    found = enqueue(dedupe_key="k", dedupe=POLICIES[policy])
    found.refresh_from_db()
    assert found == first
    assert selected(found).cancel().done == 1
