"""What is made of the figures: medians, ratios, goals, and the word of what failed."""

import json

import pytest

from tests.benchmarks.__main__ import measure
from tests.benchmarks.bench import Part, latencies, quantile
from tests.benchmarks.goals import GOALS, OURS_OVER_THEIRS, compare_rivals, goals_for
from tests.benchmarks.options import DATABASES
from tests.benchmarks.options import WORKLOADS as NAMES
from tests.benchmarks.report import table
from tests.benchmarks.results import Key, Results
from tests.benchmarks.workloads import WORKLOADS

OURS = Key("postgresql", "drain", "threads", "jobs/s")


@pytest.fixture
def results() -> Results:
    """Three repeats of a drain."""
    made = Results()
    made.bases["postgresql", "drain", "threads"] = ("raw-100", "raw-500")
    for raw, other, ours in ((100, 50, 60), (10, 60, 30), (200, 70, 90)):
        made.add("postgresql", "drain", "raw-100", {"jobs/s": raw})
        made.add("postgresql", "drain", "raw-500", {"jobs/s": other})
        made.add("postgresql", "drain", "threads", {"jobs/s": ours, "claims": ours})
    return made


def test_a_ratio_is_of_medians_and_to_the_best_base(results: Results) -> None:
    assert results.median(OURS) == 60
    assert results.base_of(OURS) == OURS._replace(part="raw-100")
    assert results.ratio(OURS) == 0.6


def test_the_best_latency_is_the_least() -> None:
    results = Results()
    results.bases["sqlite", "latency", "ours"] = ("slow", "fast")
    for part, value in (("slow", 4.0), ("fast", 2.0), ("ours", 3.0)):
        results.add("sqlite", "latency", part, {"p50 ms": value})

    assert results.ratio(Key("sqlite", "latency", "ours", "p50 ms")) == 1.5


def test_bases_and_counts_have_no_ratio(results: Results) -> None:
    assert results.ratio(OURS._replace(part="raw-100")) is None
    assert results.ratio(OURS._replace(figure="claims")) is None
    assert results.ratio(OURS._replace(part="never measured")) is None


def test_the_file_holds_every_repeat(results: Results) -> None:
    figures = json.loads(json.dumps(results.as_json()))["figures"]

    ours = next(one for one in figures if one["part"] == "threads" and one["figure"] == "jobs/s")
    assert (ours["repeats"], ours["median"], ours["base"], ours["ratio"]) == (
        [60, 30, 90],
        60,
        "raw-100",
        0.6,
    )


def test_the_table_says_which_goals_are_reached(results: Results) -> None:
    lines = table(results, WORKLOADS).splitlines()

    assert lines[0].startswith("drain on postgresql:")
    assert "(ratios to raw-100)" in lines[0]
    row = next(line for line in lines if line.split()[:2] == ["threads", "jobs/s"])
    assert row.split()[2:] == ["60", "30", "90", "0.60", ">=", "0.8", "x", "NOT", "REACHED"]
    assert lines[-1] == "0 of 1 goals reached."


def test_what_fails_is_told_and_stops_no_other(results: Results) -> None:
    def broken() -> dict[str, float]:
        raise ValueError("the reason")

    measure("postgresql", "drain", Part("async", broken), results)
    measure("postgresql", "drain", Part("two processes", lambda: {"jobs/s": 1.0}), results)

    text = table(results, WORKLOADS)
    assert "FAILED async: ValueError: the reason" in text
    assert "two processes" in text
    assert text.endswith("goals reached; 1 measurements failed.")


def test_every_goal_is_about_something_that_is_measured() -> None:
    assert [workload.name for workload in WORKLOADS] == list(NAMES)
    for goal in GOALS:
        assert goal.database in DATABASES
        assert goal.workload in (*NAMES, "rivals")
        assert (goal.least is None) != (goal.most is None)


def test_quantiles_are_values_that_were_seen() -> None:
    assert [quantile([4, 1, 3, 2], share) for share in (0, 0.5, 0.75, 1)] == [1, 2, 3, 4]
    assert latencies([0.001, 0.002]) == {"p50 ms": 1.0, "p95 ms": 2.0, "p99 ms": 2.0}


def test_rivals_are_compared_with_our_drain_on_the_same_database(results: Results) -> None:
    results.add("sqlite", "drain", "threads", {"jobs/s": 8.0})
    results.add("postgresql", "rivals", "huey", {"drain_per_second": 5.0, "sqlite_drain_per_second": 2.0})
    results.add("postgresql", "rivals", "celery", {"latency_p50_ms": 5.0})

    compare_rivals(results)

    huey = Key("postgresql", "rivals", "huey", OURS_OVER_THEIRS)
    assert results.median(huey) == 12
    assert results.median(huey._replace(figure=f"sqlite: {OURS_OVER_THEIRS}")) == 4
    assert results.median(huey._replace(part="celery")) is None
    assert [goal.is_reached(12) for goal in goals_for(huey)] == [True]
