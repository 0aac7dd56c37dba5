"""Payloads on their way through the database: unchanged on both, or refused and nothing stored."""

from typing import Any

import pytest
from django.db import transaction
from pytest_django import Settings

from django_jobqueue.exceptions import InvalidPayload, InvalidResult
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import TYPE, claim, claimed, enqueue, row, stored
from tests.test_payloads import REFUSED, ROUND_TRIPS

pytestmark = pytest.mark.django_db

every_refused = pytest.mark.parametrize("value", [value for value, _ in REFUSED.values()], ids=REFUSED)
every_round_trip = pytest.mark.parametrize("payload", ROUND_TRIPS, ids=lambda one: str(one)[:30])
LARGE_FLOATS = [1e16, 1.5e16, 1e22, 1e23, 1.7976931348623157e308, -1e16]


@every_refused
def test_a_bad_payload_is_refused_at_the_call_and_nothing_is_stored(value: Any) -> None:
    with transaction.atomic():
        with pytest.raises(InvalidPayload) as refused:
            enqueue({"fine": 1, "list": ["fine", {"bad": value}]})
        assert refused.value.path.startswith("payload.list[1].bad")
        assert not Job.objects.exists()


@every_refused
def test_a_bad_result_is_refused_and_the_job_still_runs(value: Any) -> None:
    job = claimed()
    before = row(job)
    with pytest.raises(InvalidResult) as refused:
        Job.objects.complete(job, {"bad": value})
    assert refused.value.path.startswith("result.bad")
    assert row(job) == before


def same(given: Any, back: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(given) is not type(back):
        return False
    if isinstance(given, dict):
        return given.keys() == back.keys() and all(same(value, back[key]) for key, value in given.items())
    if isinstance(given, list):
        return len(given) == len(back) and all(map(same, given, back))
    return bool(given == back)


@every_round_trip
def test_a_payload_comes_back_as_it_was(payload: dict[str, Any]) -> None:
    [first, second] = Job.objects.enqueue_many([(TYPE, payload), (TYPE, payload)])
    one = enqueue(payload)
    assert all(same(payload, job.payload) for job in (one, first, second))
    assert all(same(payload, stored(job).payload) for job in (one, first, second))
    assert all(same(payload, job.payload) for job in claim(3))


@every_round_trip
def test_a_result_comes_back_as_it_was(payload: dict[str, Any]) -> None:
    job = claimed()
    Job.objects.complete(job, payload)
    assert same(payload, stored(job).result)


@pytest.mark.parametrize("number", [1e15, 9_007_199_254_740_993.0, -9_999_999_999_999_998.0])
def test_a_float_without_a_fraction_stays_a_float(number: float) -> None:
    assert same({"number": number}, stored(enqueue({"number": number})).payload)


@pytest.mark.parametrize("number", LARGE_FLOATS)
def test_a_float_that_would_come_back_as_an_int_is_refused(number: float) -> None:
    """PostgreSQL keeps the number and not its exponent, and 1e23 is not 10**23."""
    with pytest.raises(InvalidPayload) as refused:
        enqueue({"number": number})
    assert refused.value.path == "payload.number"
    assert not Job.objects.exists()


@pytest.mark.parametrize("result", [0, False, "", [], {}, "text", [None], 1.5, "€😀"], ids=repr)
def test_any_json_value_is_a_result(result: Any) -> None:
    job = claimed()
    assert Job.objects.complete(job, result)
    assert same(result, stored(job).result)


def test_a_payload_over_the_limit_is_refused_with_size_and_remedy() -> None:
    enqueue({"a": "x" * (1_048_576 - 8)})
    with pytest.raises(InvalidPayload, match=r"1,048,577 bytes of JSON.*1,048,576.*Store the data elsewhere"):
        enqueue({"a": "x" * (1_048_576 - 7)})
    assert Job.objects.count() == 1


def test_the_limits_are_settings(settings: Settings) -> None:
    settings.JOBQUEUE |= {"MAX_PAYLOAD_BYTES": 20, "MAX_RESULT_BYTES": 10}
    job = claimed()
    with pytest.raises(InvalidPayload):
        enqueue({"a": "x" * 20})
    with pytest.raises(InvalidResult):
        Job.objects.complete(job, "x" * 10)
    assert Job.objects.complete(job, "x" * 8)
    assert stored(job).status == JobStatus.DONE


def test_later_changes_of_the_callers_object_do_not_reach_the_job() -> None:
    payload = {"list": [1]}
    job = enqueue(payload)
    payload["list"].append(2)
    assert job.payload == stored(job).payload == {"list": [1]}
