"""Instants: one clock, UTC, microseconds, on every database and under any zone."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone as django_timezone

from django_jobqueue.models import Job
from tests.moves.factories import enqueue, selected, stored

pytestmark = pytest.mark.django_db

SUMMER = datetime(2026, 7, 1, 12, 30, 15, 123456, tzinfo=UTC)


def as_django_gives_it(instant: datetime) -> datetime:
    """Aware under USE_TZ, else naive in TIME_ZONE."""
    return instant if settings.USE_TZ else django_timezone.make_naive(instant)


def stored_instant(job: Job) -> str:
    """What stands in the table, as text in UTC."""
    utc = "run_after" if connection.vendor == "sqlite" else "(run_after AT TIME ZONE 'UTC')::text"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {utc} FROM django_jobqueue_job")
        [[text]] = cursor.fetchall()
    return str(text)


def test_an_instant_is_stored_in_utc_with_microseconds() -> None:
    job = enqueue(run_after=SUMMER)
    assert stored_instant(job) == "2026-07-01 12:30:15.123456"


def test_an_instant_comes_back_as_django_gives_datetimes() -> None:
    job = enqueue(run_after=SUMMER)
    assert job.run_after == stored(job).run_after == as_django_gives_it(SUMMER)
    assert django_timezone.is_aware(job.run_after) == settings.USE_TZ


def test_the_zone_of_the_caller_does_not_matter() -> None:
    elsewhere = SUMMER.astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    job = enqueue(run_after=elsewhere)
    assert stored_instant(job) == "2026-07-01 12:30:15.123456"


def test_instants_compare_and_sort_by_time() -> None:
    for microseconds in (5, 500_000, 50):
        enqueue(run_after=SUMMER.replace(microsecond=microseconds))
    assert [job.run_after.microsecond for job in Job.objects.order_by("run_after")] == [5, 50, 500_000]
    border = as_django_gives_it(SUMMER.replace(microsecond=50))
    assert Job.objects.filter(run_after__lt=border).count() == 1
    assert Job.objects.filter(run_after__lte=border).count() == 2
    assert Job.objects.filter(run_after__gt=border).count() == 1


def test_a_written_instant_is_read_back_as_it_was() -> None:
    job = enqueue()
    wanted = django_timezone.now()
    selected(job).update(run_after=wanted)
    assert stored(job).run_after == wanted


def test_no_instant_is_none() -> None:
    assert stored(enqueue()).expires_at is None


def test_every_instant_of_a_new_job_is_the_databases_now() -> None:
    before = django_timezone.now()
    job = enqueue()
    after = django_timezone.now()
    assert before <= job.created_at <= after
    assert job.run_after == job.created_at == job.updated_at
