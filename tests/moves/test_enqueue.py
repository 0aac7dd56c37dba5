"""``enqueue``: what it stores, and what it refuses at the call."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone as django_timezone
from pytest_django import Settings

from django_jobqueue import registry
from django_jobqueue.exceptions import InvalidOption, InvalidPayload, UnknownJobType, UnknownQueue
from django_jobqueue.models import Job, JobStatus
from django_jobqueue.registry import JobType
from tests.moves.factories import TYPE, claim, enqueue, ids, seconds_from_now, stored

pytestmark = pytest.mark.django_db

EAST = timezone(timedelta(hours=14))


def test_a_new_job_waits_with_every_attempt_left() -> None:
    job = enqueue({"a": 1})
    fresh = stored(job)
    assert job.created is True
    assert (fresh.status, fresh.attempts, fresh.max_attempts, fresh.fence) == (JobStatus.PENDING, 0, 3, 0)
    assert (fresh.queue, fresh.priority, fresh.payload, fresh.context) == ("default", 0, {"a": 1}, {})
    assert (fresh.crashes, fresh.snoozes, fresh.releases, fresh.errors, fresh.last_error) == (0, 0, 0, [], "")
    assert (
        fresh.worker_id is fresh.lease_until is fresh.finished_at is fresh.expires_at is fresh.result is None
    )


def test_the_job_returned_is_the_row_without_asking_again(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        job = enqueue(
            {"a": [1, "x"]}, priority=4, run_after=timedelta(seconds=9), expires_at=timedelta(hours=1)
        )
    with django_assert_num_queries(0):
        given = {field.attname: getattr(job, field.attname) for field in Job._meta.concrete_fields}
    fresh = stored(job)
    assert given == {field.attname: getattr(fresh, field.attname) for field in Job._meta.concrete_fields}
    assert not job._state.adding
    assert job._state.db == "default"


def test_no_payload_is_an_empty_one() -> None:
    assert stored(Job.objects.enqueue(TYPE)).payload == {}


def test_every_option_is_stored() -> None:
    job = stored(
        enqueue(queue="q" * 100, priority=-100, max_attempts=10_000, dedupe_key="d" * 200, lock_key="l" * 200)
    )
    assert (job.queue, job.priority, job.max_attempts) == ("q" * 100, -100, 10_000)
    assert (job.dedupe_key, job.lock_key) == ("d" * 200, "l" * 200)


def test_none_is_what_is_said_without_the_option() -> None:
    nothing = dict.fromkeys(
        ["run_after", "priority", "max_attempts", "queue", "dedupe_key", "lock_key", "expires_at"]
    )
    job, plain = enqueue(**nothing), enqueue()
    for name in ("priority", "max_attempts", "queue", "dedupe_key", "lock_key", "expires_at"):
        assert getattr(job, name) == getattr(plain, name)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("priority", bad) for bad in (-101, 101, 10**9, True, 1.5, "3", float("nan"))),
        *(("max_attempts", bad) for bad in (0, -1, 10_001, 10**9, True, 1.5, "3")),
        *((key, bad) for key in ("dedupe_key", "lock_key") for bad in ("", "k" * 201, 5, True, b"k", ["k"])),
        *((key, bad) for key in ("dedupe_key", "lock_key") for bad in ("a\x00", "a\ud800")),
        *(("queue", bad) for bad in ("", "q" * 101, 5, b"q", "a\x00")),
        *(("run_after", bad) for bad in (5, "2026-01-01", 1.5, True, datetime(2026, 1, 1).date())),
        *(("run_after", timedelta(seconds=bad)) for bad in (-1, -0.000_001, 11 * 366 * 86_400)),
        *(("expires_at", bad) for bad in (5, "tomorrow", timedelta(seconds=-1))),
        *(("timeout", bad) for bad in (0, -1, 2_592_001, float("nan"), float("inf"), "30", True)),
        *(("timeout", timedelta(days=bad)) for bad in (-1, 31)),
        ("run_after", datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))),
        ("run_after", datetime.min.replace(tzinfo=EAST)),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_option_out_of_range_is_refused_by_name_value_and_rule(option: str, value: Any) -> None:
    with pytest.raises(InvalidOption) as refused:
        enqueue(**{option: value})
    message = str(refused.value)
    assert option in message
    message.encode()
    assert not Job.objects.exists()


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidOption, match=r"no option 'prio'.*priority, queue, run_after"):
        enqueue(prio=5)
    assert not Job.objects.exists()


def test_an_unknown_type_is_refused_with_the_nearest_names(settings: Settings) -> None:
    with pytest.raises(UnknownJobType, match="No handler is registered for the job type 'test:any'"):
        enqueue(job_type="test:any")
    settings.JOBQUEUE = {}
    with pytest.raises(UnknownJobType):
        enqueue()
    assert not Job.objects.exists()


@pytest.mark.parametrize("name", ["", "tests:" + "x" * 195, "tests:\x00", "tests:\ud800"], ids=repr)
def test_a_type_that_no_row_can_hold_is_refused(name: str, settings: Settings) -> None:
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["*"]}
    with pytest.raises(InvalidOption, match="job_type="):
        enqueue(job_type=name)
    assert not Job.objects.exists()


def test_a_queue_that_is_not_declared_is_refused(settings: Settings) -> None:
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["tests:*"], "QUEUES": ["default", "mail"]}
    assert enqueue(queue="mail").queue == "mail"
    with pytest.raises(UnknownQueue, match=r"'mial' is not one of .*\(default, mail\)") as refused:
        enqueue(queue="mial")
    assert refused.value.name == "mial"
    assert Job.objects.count() == 1


def test_without_declared_queues_any_may_be_used() -> None:
    assert enqueue(queue="никто не объявлял").queue == "никто не объявлял"


def test_an_aware_due_time_is_kept_to_the_microsecond() -> None:
    wanted = datetime(2031, 5, 6, 7, 8, 9, 123_456, tzinfo=EAST)
    job = stored(enqueue(run_after=wanted))
    got = job.run_after if django_settings.USE_TZ else django_timezone.make_aware(job.run_after)
    assert got == wanted


def test_a_timedelta_counts_from_the_databases_now() -> None:
    job = enqueue(run_after=timedelta(hours=2), expires_at=timedelta(hours=3))
    assert job.run_after - job.created_at == timedelta(hours=2)
    assert job.expires_at is not None
    assert job.expires_at - job.created_at == timedelta(hours=3)
    assert 7_190 < seconds_from_now(stored(job).run_after) < 7_201


def test_a_type_says_how_long_after_its_due_time_a_job_may_start() -> None:
    registry.register(
        JobType(name="tests:short-lived", function=lambda: None, expires_after=timedelta(hours=1))
    )
    later = datetime(2031, 5, 6, 7, 8, 9, tzinfo=EAST)
    try:
        now, delayed, at, own = (
            enqueue(job_type="tests:short-lived", **options)
            for options in (
                {},
                {"run_after": timedelta(hours=5)},
                {"run_after": later},
                {"expires_at": timedelta(days=1)},
            )
        )
    finally:
        registry.unregister("tests:short-lived")
    for job in (now, delayed, at, stored(at)):
        assert job.expires_at - job.run_after == timedelta(hours=1)  # type: ignore[operator]
    assert own.expires_at - own.created_at == timedelta(days=1)  # type: ignore[operator]


def test_a_naive_due_time_is_refused_under_use_tz(settings: Settings) -> None:
    settings.USE_TZ = True
    with pytest.raises(InvalidOption, match=r"run_after=.* has no time zone.*timezone.now\(\)"):
        enqueue(run_after=datetime(2026, 1, 1))
    with pytest.raises(InvalidOption, match=r"expires_at=.* has no time zone"):
        enqueue(expires_at=datetime(2026, 1, 1))
    assert not Job.objects.exists()


def test_a_naive_due_time_is_read_in_the_sites_zone_without_use_tz(settings: Settings) -> None:
    settings.USE_TZ = False
    settings.TIME_ZONE = "Asia/Kolkata"
    soon = datetime.now(UTC).astimezone(timezone(timedelta(hours=5, minutes=30))).replace(tzinfo=None)
    due = enqueue(run_after=soon - timedelta(seconds=5))
    later = enqueue(run_after=soon + timedelta(seconds=30))
    assert ids(claim(10)) == [due.id]
    settings.USE_TZ = True
    settings.TIME_ZONE = "UTC"
    assert 20 < seconds_from_now(stored(later).run_after) <= 30


def test_a_due_time_in_a_distant_past_is_due() -> None:
    for year in (1, 99, 999, 1969):
        job = enqueue(run_after=datetime(year, 6, 1, tzinfo=UTC))
        assert stored(job).run_after.year == year
    assert [job.run_after.year for job in claim(10)] == [1, 99, 999, 1969]


def test_a_due_time_in_a_distant_future_is_kept() -> None:
    job = enqueue(run_after=datetime(9999, 6, 1, tzinfo=UTC))
    assert stored(job).run_after.year == 9999
    assert not claim()


def test_something_else_than_a_payload_is_refused() -> None:
    bad: Any
    for bad in ([], "text", 5, [("a", 1)]):
        with pytest.raises(InvalidPayload, match="payload: must be a dict"):
            Job.objects.enqueue(TYPE, bad)
    assert not Job.objects.exists()
