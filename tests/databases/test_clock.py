"""One clock, one zone, one width."""

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone as django_timezone
from pytest_django import Settings

from django_jobqueue.databases import database_for, is_supported
from django_jobqueue.databases.clock import DatabaseAgo, DatabaseNow, as_text, as_utc, from_database, moment
from django_jobqueue.exceptions import InvalidOption, UnsupportedDatabase
from django_jobqueue.models import Job
from tests.moves.factories import WORKER, claim_again, claimed, enqueue, lose_lease, stored

INDIA = timezone(timedelta(hours=5, minutes=30))
NOON = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


def test_an_aware_instant_is_turned_to_utc() -> None:
    assert as_utc(datetime(2026, 7, 1, 17, 30, tzinfo=INDIA)) == NOON
    assert as_utc(NOON.astimezone(INDIA)).tzinfo is UTC


def test_a_naive_instant_is_one_of_the_sites_zone(settings: Settings) -> None:
    settings.TIME_ZONE = "Asia/Kolkata"
    assert as_utc(datetime(2026, 7, 1, 17, 30)) == NOON


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (NOON, "2026-07-01 12:00:00.000000"),
        (NOON.replace(microsecond=1), "2026-07-01 12:00:00.000001"),
        (datetime(987, 6, 5, tzinfo=UTC), "0987-06-05 00:00:00.000000"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01 00:00:00.000000"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "9999-12-31 23:59:59.999999"),
    ],
)
def test_every_instant_is_text_of_one_width(instant: datetime, text: str) -> None:
    assert as_text(instant) == text
    assert len(text) == 26


def test_what_comes_from_a_database_is_as_django_has_it(settings: Settings) -> None:
    settings.TIME_ZONE = "Asia/Kolkata"
    for given in ("2026-07-01 12:00:00.000000", NOON, NOON.astimezone(INDIA)):
        settings.USE_TZ = True
        assert from_database(given) == NOON
        settings.USE_TZ = False
        assert from_database(given) == datetime(2026, 7, 1, 17, 30)
    assert from_database(datetime(2026, 7, 1, 17, 30)) == datetime(2026, 7, 1, 17, 30)
    assert from_database(None) is None


def test_a_callers_time_is_an_instant_or_seconds_from_now() -> None:
    assert moment("x", None) == (None, 0.0)
    assert moment("x", timedelta(minutes=1)) == (None, 60.0)
    assert moment("x", NOON.astimezone(INDIA)) == (NOON, 0.0)


@pytest.mark.parametrize("bad", [5, "now", True, timedelta(seconds=-1), NOON.date(), NOON.time()], ids=repr)
def test_what_is_no_time_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidOption):
        moment("run_after", bad)


@pytest.mark.django_db
def test_the_databases_now_and_some_time_ago_can_be_compared() -> None:
    job = enqueue()
    assert Job.objects.filter(run_after__lte=DatabaseNow()).get() == job
    assert not Job.objects.filter(run_after__gt=DatabaseNow()).exists()
    Job.objects.update(run_after=DatabaseAgo(timedelta(hours=1)))
    late = django_timezone.now() - stored(job).run_after
    assert timedelta(hours=1) <= late < timedelta(hours=1, seconds=5)
    assert not Job.objects.filter(run_after__lt=DatabaseAgo(timedelta(hours=1, seconds=5))).exists()
    assert Job.objects.filter(run_after__lt=DatabaseAgo(timedelta(minutes=59))).exists()


@pytest.mark.django_db
def test_time_goes_on_within_a_transaction() -> None:
    """now() of a long transaction is its start; a job enqueued late in it would be due in the past."""
    first = enqueue()
    [[between]] = connection_now()
    second = enqueue()
    assert first.created_at < second.created_at
    assert between


def connection_now() -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_TIMESTAMP")
        return list(cursor.fetchall())


@pytest.mark.django_db
def test_no_delay_is_due_at_once() -> None:
    """Where a database counts in milliseconds, the rest of one must not put a job into the future."""
    held = claimed(max_attempts=50)
    for turn in range(20):
        assert Job.objects.fail(held, "no", delay=0) if turn % 2 else Job.objects.snooze(held, 0)
        fresh = stored(held)
        assert fresh.run_after <= fresh.updated_at
        held = claim_again(held)


@pytest.mark.sqlite
@pytest.mark.django_db
def test_every_stored_instant_has_the_same_width() -> None:
    job = claimed(expires_at=timedelta(hours=1))
    Job.objects.record_started(WORKER, [(job.id, 0.3)])
    Job.objects.filter(pk=job.pk).cancel()
    Job.objects.fail(job, "no")
    other = claimed(run_after=timedelta(0))
    Job.objects.renew_lease(worker_ids=[WORKER], lease=7.123_456_7, started=[(other.id, 1e-7)])
    lose_lease(other)
    Job.objects.snooze(claimed(), 1e-5)
    columns = [
        field.column for field in Job._meta.concrete_fields if field.get_internal_type() == "InstantField"
    ]
    assert len(columns) == 10
    with connection.cursor() as cursor:
        for column in columns:
            cursor.execute(
                f"SELECT DISTINCT length({column}) FROM django_jobqueue_job WHERE {column} IS NOT NULL"
            )
            assert cursor.fetchall() in ([(26,)], []), column


def test_postgresql_and_sqlite_are_supported_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_supported(connection)
    assert database_for("default") is database_for("other")
    other: Any = SimpleNamespace(vendor="mysql")
    assert not is_supported(other)
    monkeypatch.setattr(connections["default"], "vendor", "oracle")
    with pytest.raises(
        UnsupportedDatabase, match=r"'default' is oracle.*PostgreSQL 14.*JOBQUEUE\['DATABASE'\]"
    ):
        database_for("default")
