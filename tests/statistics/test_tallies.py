"""Sums and histograms: what workers add, and what is worked out of them again."""

import random
from datetime import timedelta

import pytest

from django_jobqueue.managers import Tally
from django_jobqueue.managers.tallies import BUCKETS, SPANS, bounds_of, bucket_of
from django_jobqueue.models import Statistic
from django_jobqueue.statistics import PERIODS, History, look_back, span_text
from django_jobqueue.statistics.history import quantile
from tests.moves.factories import ago, statements


def tally(**given: int) -> Tally:
    made = Tally(**given)
    made.took(waited=0.5, ran=0.25)
    return made


@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.001, 0.3, 1, 1.5, 59, 3_600, 130_000])
def test_seconds_lie_within_the_bounds_of_their_bucket(seconds: float) -> None:
    low, high = bounds_of(bucket_of(seconds))
    assert low <= seconds < high


@pytest.mark.parametrize("seconds", [-1.0, 1e9])
def test_seconds_beyond_all_bounds_are_counted_at_the_end(seconds: float) -> None:
    assert bucket_of(seconds) == (0 if seconds < 0 else BUCKETS - 1)


def test_a_percentile_of_the_histogram_is_near_that_of_the_values() -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    values = sorted(chance.lognormvariate(0, 1) for _ in range(10_000))
    histogram = [0] * BUCKETS
    for value in values:
        histogram[bucket_of(value)] += 1
    for share in (0.5, 0.95, 0.99):
        true = values[int(share * len(values)) - 1]
        assert quantile(histogram, share) == pytest.approx(true, rel=0.15)
    assert quantile([0] * BUCKETS, 0.95) == 0


def test_many_times_are_counted_as_each_of_them_is() -> None:
    times = [1e-9, 0.0005, 0.3, 0.3, 1.0, 59.0, 1e9]
    one, all_at_once = Tally(), Tally()
    for seconds in times:
        one.took(seconds, seconds / 2)
    all_at_once.took_each(times, [seconds / 2 for seconds in times])
    assert (one.waits, one.runs) == (all_at_once.waits, all_at_once.runs)
    assert all_at_once.waited == pytest.approx(one.waited)


@pytest.mark.django_db
def test_what_two_workers_add_in_one_minute_is_one_row_a_span() -> None:
    with statements() as made:
        Statistic.objects.add([("mail", tally(done=3)), ('a,b "c" \\ {d}', tally(failed=1, dead=1))])
    Statistic.objects.add([("mail", tally(done=2, failed=1))])
    assert len(made) == 1
    rows = Statistic.objects.filter(queue="mail")
    assert sorted(row.span for row in rows) == sorted(SPANS)
    for row in rows:
        assert (row.done, row.failed, row.dead, row.waited, row.ran) == (5, 1, 0, 1.0, 0.5)
        assert (row.waits[bucket_of(0.5)], sum(row.waits), len(row.waits)) == (2, 2, BUCKETS)
        assert (row.runs[bucket_of(0.25)], sum(row.runs)) == (2, 2)
        assert row.start.timestamp() % row.span == 0
    assert Statistic.objects.filter(queue='a,b "c" \\ {d}', dead=1).count() == len(SPANS)


@pytest.mark.django_db
def test_nothing_counted_is_no_statement() -> None:
    with statements() as made:
        Statistic.objects.add([])
    assert made == []


@pytest.mark.django_db
def test_rows_leave_when_their_span_is_no_longer_kept() -> None:
    Statistic.objects.add([("old", tally()), ("new", tally())])
    for span, kept in SPANS.items():
        rows = Statistic.objects.filter(span=span)
        rows.filter(queue="old").update(start=ago(kept.total_seconds() + 60))
        rows.filter(queue="new").update(start=ago(kept.total_seconds() - 60))
    Statistic.objects.prune()
    assert set(Statistic.objects.values_list("queue", flat=True)) == {"new"}
    assert Statistic.objects.count() == len(SPANS)


@pytest.mark.django_db
@pytest.mark.parametrize("name", PERIODS)
def test_a_period_is_read_from_the_rows_of_its_span(name: str) -> None:
    period = PERIODS[name]
    Statistic.objects.add([("mail", tally(done=6)), ("bad", tally(failed=2, dead=1))])
    Statistic.objects.filter(queue="bad").update(start=ago(period.length.total_seconds() + period.span))
    with statements() as made:
        history = look_back(period, "default")
    assert len(made) == 1
    assert len(history.points) == period.steps
    assert sum(point.done for point in history.points) == 6
    assert history.points[-1].done == 6
    assert history.points[-1].waiting.mean == 0.5
    assert set(history.by_queue) == {"mail"}


def test_an_empty_period_has_all_its_points() -> None:
    history = History(PERIODS["hour"], [])
    assert history.is_empty
    assert len(history.points) == 60
    assert history.points[1].start - history.points[0].start == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"), (-3.0, "0 ms"), (0.0004, "0 ms"), (0.45, "450 ms"), (0.9997, "1.0 s"), (3.21, "3.2 s"),
        (9.96, "10 s"), (59.4, "59 s"), (59.7, "1 min"), (250, "4 min 10 s"), (3_600, "1 h"),
        (7_500, "2 h 5 min"), (100_000, "1 d 3 h"),
    ],
)  # fmt: skip
def test_seconds_are_told_in_two_units_at_most(seconds: float | None, text: str) -> None:
    assert span_text(seconds) == text
