import math
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from django_jobqueue import conf
from django_jobqueue.models import JobStatus
from django_jobqueue.worker import WorkerOptions

DAY = timedelta(days=1)


def test_the_defaults_have_no_problem() -> None:
    assert conf.problems({}) == []


def test_every_default_passes_its_own_rule() -> None:
    assert conf.problems(vars(conf.JobQueueSettings())) == []


def test_without_the_setting_the_defaults_are_in_force(settings: Settings) -> None:
    del settings.JOBQUEUE
    assert conf.current() == conf.JobQueueSettings()


def test_a_change_of_the_setting_is_seen_at_once(settings: Settings) -> None:
    settings.JOBQUEUE = {"MAX_ATTEMPTS": 7}
    assert conf.current().MAX_ATTEMPTS == 7
    settings.JOBQUEUE = {}
    assert conf.current().MAX_ATTEMPTS == 3


def test_a_change_of_another_setting_reads_nothing_anew(settings: Settings) -> None:
    before = conf.current()
    settings.LANGUAGE_CODE = "de"
    assert conf.current() is before


@pytest.mark.parametrize("given", [None, [], "x", 1], ids=repr)
def test_the_setting_is_a_dictionary(given: Any) -> None:
    [problem] = conf.problems(given)
    assert "must be a dictionary" in problem


def test_an_unknown_key_is_named_with_those_there_are() -> None:
    [problem] = conf.problems({"MAX_ATTEMPS": 3})
    assert "'MAX_ATTEMPS'" in problem
    assert "MAX_ATTEMPTS" in problem


WHOLE = {
    "MAX_ATTEMPTS": (1, 10_000),
    "MAX_PAYLOAD_BYTES": (2, 268_435_456),
    "MAX_RESULT_BYTES": (4, 268_435_456),
    "MAX_SNOOZES": (0, 30_000),
    "MAX_RELEASES": (0, 30_000),
    "PROCESSES": (1, 256),
    "THREADS": (1, 1_000),
    "ASYNC_CONCURRENCY": (1, 4_000),
}
SECONDS = {"LEASE": (1, 86_400), "POLL_INTERVAL": (0.01, 3_600), "GRACE": (0, 86_400)}


@pytest.mark.parametrize(("key", "least", "most"), [(key, *both) for key, both in (WHOLE | SECONDS).items()])
def test_a_number_may_go_from_least_to_most(key: str, least: float, most: float) -> None:
    assert conf.problems({key: least}) == conf.problems({key: most}) == []
    for bad in (least - 1, most + 1, True, None, "3", math.nan):
        [problem] = conf.problems({key: bad})
        assert f'JOBQUEUE["{key}"]={bad!r}' in problem


@pytest.mark.parametrize("key", WHOLE)
def test_what_is_counted_is_a_whole_number(key: str) -> None:
    [problem] = conf.problems({key: 5.5})
    assert "whole number" in problem


@pytest.mark.parametrize("key", SECONDS)
def test_seconds_may_have_a_fraction(key: str) -> None:
    assert conf.problems({key: 1.5}) == []


@pytest.mark.parametrize("names", [["default", "mail"], ("a",), {"a"}, frozenset({"x" * 100})], ids=str)
def test_queues_are_a_list_of_names(names: Any) -> None:
    assert conf.problems({"QUEUES": names}) == []


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("default", "must be a list of names"),
        (5, "must be a list of names"),
        ([], "is empty"),
        (["ok", ""], "contains ''"),
        ([1], "contains 1"),
        (["x" * 101], "1 to 100 characters"),
    ],
    ids=str,
)
def test_bad_queues_are_named(names: Any, why: str) -> None:
    [problem] = conf.problems({"QUEUES": names})
    assert why in problem


def test_external_types_are_a_list_too() -> None:
    assert conf.problems({"EXTERNAL_TYPES": ["billing:*"]}) == conf.problems({"EXTERNAL_TYPES": []}) == []
    [problem] = conf.problems({"EXTERNAL_TYPES": "billing:*"})
    assert 'JOBQUEUE["EXTERNAL_TYPES"]' in problem


def test_retention_is_kept_for_what_the_site_does_not_name(settings: Settings) -> None:
    settings.JOBQUEUE = {"RETENTION": {"DEAD": 30 * DAY}}
    kept = {status.name: conf.current().retention_of(status) for status in JobStatus}
    assert kept == {
        "DONE": 7 * DAY,
        "CANCELLED": 7 * DAY,
        "DEAD": 30 * DAY,
        "PENDING": None,
        "RUNNING": None,
    }


@pytest.mark.parametrize(
    ("retention", "why"),
    [
        (DAY, "must map"),
        ({"RUNNING": DAY}, "unknown status 'RUNNING'"),
        ({"done": DAY}, "unknown status 'done'"),
        ({"DONE": 7}, "['DONE']=7 must be a timedelta"),
        ({"DONE": -DAY}, "must be a timedelta"),
    ],
    ids=str,
)
def test_bad_retention_is_named(retention: Any, why: str) -> None:
    [problem] = conf.problems({"RETENTION": retention})
    assert why in problem


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("DATABASE", 5, "other"),
        ("LISTEN", 1, False),
        ("LISTEN_DSN", 5, "postgresql:///x"),
        ("UNKNOWN_TYPE_GRACE", 60, timedelta(0)),
    ],
)
def test_kinds_are_checked(key: str, bad: Any, good: Any) -> None:
    assert conf.problems({key: good}) == []
    [problem] = conf.problems({key: bad})
    assert f'JOBQUEUE["{key}"]={bad!r}' in problem


def test_all_problems_are_told_at_once(settings: Settings) -> None:
    settings.JOBQUEUE = {"LEASE": 0, "X": 1, "QUEUES": "a"}
    with pytest.raises(ImproperlyConfigured) as refused:
        conf.current()
    assert all(word in str(refused.value) for word in ("LEASE", "'X'", "QUEUES"))


def test_four_heartbeats_fit_into_a_lease() -> None:
    assert WorkerOptions(lease=60).heartbeat == 15
