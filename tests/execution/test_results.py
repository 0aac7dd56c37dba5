"""What a handler returns is stored unchanged, or its attempt has failed with the reason."""

import datetime
import decimal
import enum
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from tests.execution.runner import DONE, PENDING, Runner, exceptions

INVALID = "django_jobqueue.exceptions.InvalidResult"


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "result", [None, True, 0, -1.5, 2**70, "", "text ☃", [], [1, [2, None]], {}, {"a": {"b": [1, "c"]}}]
)
def test_every_json_value_is_stored(runner: Runner, result: Any) -> None:
    job = runner.run(lambda: result)
    assert (job.status, job.result, job.errors) == (DONE, result, [])


def test_a_tuple_is_stored_as_a_list(runner: Runner) -> None:
    assert runner.run(lambda: (1, (2, 3))).result == [1, [2, 3]]


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: "a\0b", "result: contains a NUL character"),
        (lambda: {"k\0": 1}, "result key"),
        (lambda: ["\ud800"], r"result[0]: contains a lone surrogate"),
        (lambda: float("nan"), "result: nan is not a JSON number"),
        (lambda: {"a": [float("-inf")]}, "result.a[0]: -inf is not a JSON number"),
        (lambda: b"bytes", "result: builtins.bytes is not JSON"),
        (lambda: {1, 2}, "result: builtins.set is not JSON"),
        (lambda: {1: "one"}, "the key 1 is not text"),
        (lambda: datetime.datetime(2026, 1, 1), "result: datetime.datetime is not JSON"),
        (lambda: decimal.Decimal(1), "result: decimal.Decimal is not JSON"),
        (lambda: uuid.UUID(int=0), "result: uuid.UUID is not JSON"),
        (lambda: Colour.RED, "would come back as a plain value"),
        (lambda: [threading.Lock()], "result[0]: _thread.lock is not JSON"),
        (lambda: {"a": object()}, "result.a: builtins.object is not JSON"),
        (lambda: (one for one in "abc"), "result: builtins.generator is not JSON"),
        (lambda: 10**5000, "result"),
        (lambda: deep(5_000), "nested deeper than 200 levels"),
        (lambda: "x" * 1_048_577, "over the limit of 1,048,576"),
    ],
)
def test_what_json_cannot_hold_is_a_failed_attempt_with_its_place(
    runner: Runner, make: Callable[[], Any], reason: str
) -> None:
    job = runner.run(make)

    assert (job.status, job.attempts, job.result) == (PENDING, 1, None)
    assert exceptions(job) == [INVALID]
    assert reason in job.last_error


def test_the_limit_of_a_result_is_a_setting(runner: Runner, settings: Settings) -> None:
    settings.JOBQUEUE = {"MAX_RESULT_BYTES": 10}
    assert runner.run(lambda: "x" * 8).status == DONE
    assert runner.run(lambda: "x" * 9).last_error.startswith(f"{INVALID}: result: 11 bytes of JSON")


def test_a_coroutine_that_nobody_awaits_is_no_result(runner: Runner) -> None:
    async def inner() -> None: ...

    def forgets_to_await() -> Any:
        coroutine = inner()
        coroutine.close()
        return coroutine

    assert exceptions(runner.run(forgets_to_await)) == [INVALID]
