"""Whatever a handler raises, the attempt is recorded as failed, safely and bounded."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from django_jobqueue import job, registry
from django_jobqueue.models import Job
from tests.execution.runner import DONE, PENDING, Runner, exceptions


class StrRaises(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


class ReprRaises(Exception):
    def __repr__(self) -> str:
        raise SystemExit(7)

    __str__ = __repr__


class HugeRepr(Exception):
    def __repr__(self) -> str:
        return "x" * 10_000_000

    __str__ = __repr__


class NeedsArguments(Exception):
    def __init__(self, one: int, *, two: int) -> None:
        super().__init__()


def cycle() -> BaseException:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def defined_inside() -> BaseException:
    class Inner(Exception):
        pass

    return Inner("of a function")


def lying_module() -> BaseException:
    kind = type("Odd\ud800Name", (Exception,), {"__module__": "no\0where"})
    return kind("text")


HOSTILE: dict[str, Callable[[], BaseException]] = {
    "SystemExit(0)": lambda: SystemExit(0),
    "SystemExit(1)": lambda: SystemExit(1),
    "SystemExit('x')": lambda: SystemExit("x"),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "BaseException": lambda: BaseException("bare"),
    "CancelledError": asyncio.CancelledError,
    "StopIteration": lambda: StopIteration(1),
    "MemoryError": MemoryError,
    "NUL": lambda: ValueError("a\0b"),
    "surrogate": lambda: ValueError("\ud800"),
    "str raises": StrRaises,
    "repr exits": ReprRaises,
    "huge repr": HugeRepr,
    "huge message": lambda: ValueError("x" * 10_000_000),
    "a lock as argument": lambda: ValueError(threading.Lock()),
    "arguments": lambda: NeedsArguments(1, two=2),
    "group of 50": lambda: ExceptionGroup("fifty", [ValueError(str(one)) for one in range(50)]),
    "nested group": lambda: BaseExceptionGroup(
        "two", [KeyboardInterrupt(), ExceptionGroup("x", [OSError()])]
    ),
    "cycle": cycle,
    "class in a function": defined_inside,
    "class with a lying name": lying_module,
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("is_async", [False, True])
def test_it_is_recorded_and_the_next_job_runs(
    runner: Runner, make: Callable[[], BaseException], is_async: bool
) -> None:
    def plain() -> None:
        raise make()

    async def on_the_loop() -> None:
        raise make()

    failed = runner.run(on_the_loop if is_async else plain)

    assert (failed.status, failed.attempts) == (PENDING, 1)
    [error] = failed.errors
    assert error["attempt"] == 1
    assert error["worker"]
    assert error["exception"] in failed.last_error
    assert "Traceback" in error["traceback"] or "could not be made" in error["traceback"]
    assert len(json.dumps(error)) < 25_000
    assert 0 < len(failed.error_fingerprint) <= 300
    assert runner.run(lambda: 1).status == DONE


def test_the_path_of_the_exception_and_its_message_are_kept(runner: Runner) -> None:
    def fails() -> None:
        raise NeedsArguments(1, two=2) from ValueError("the cause")

    job = runner.run(fails)

    assert exceptions(job) == [f"{__name__}.NeedsArguments"]
    assert "ValueError: the cause" in job.errors[0]["traceback"]
    assert "in fails" in job.errors[0]["traceback"]
    assert "execution.py" not in job.errors[0]["traceback"]


def test_one_failure_in_two_places_has_two_fingerprints_and_varying_text_has_one(runner: Runner) -> None:
    def here(text: str) -> None:
        raise ValueError(text)

    def there(text: str) -> None:
        raise ValueError(text)

    first, second = (runner.run(here, {"text": text}) for text in ("a", "b"))
    third = runner.run(there, {"text": "a"})
    assert first.error_fingerprint == second.error_fingerprint != third.error_fingerprint


def test_a_very_deep_recursion_is_a_failure_like_any_other(runner: Runner) -> None:
    def recurse() -> None:
        recurse()

    job = runner.run(recurse)
    assert exceptions(job) == ["RecursionError"]
    assert len(job.errors[0]["traceback"]) < 17_000


def test_a_payload_that_no_longer_fits_the_handler_is_a_failed_attempt(runner: Runner) -> None:
    def old(a: int) -> None: ...

    def new(b: int) -> None: ...

    name = runner.handle(old)
    stored = Job.objects.enqueue(name, {"a": 1})
    registry.unregister(name)
    job(name)(new)
    after = runner.attempt(stored)
    assert exceptions(after) == ["TypeError"]
    assert "unexpected keyword argument 'a'" in after.last_error


def test_a_handler_that_leaves_threads_of_its_own_behind_is_no_failure(runner: Runner) -> None:
    done = threading.Event()

    def starts_a_thread() -> None:
        threading.Thread(target=done.wait, args=(30,), daemon=True).start()

    assert runner.run(starts_a_thread).status == DONE
    done.set()


def test_context_of_the_failed_attempt_says_when_it_ran(runner: Runner) -> None:
    def fails() -> Any:
        raise ValueError

    job = runner.run(fails)
    [error] = job.errors
    assert error["started_at"] <= error["ended_at"]
    assert error["message"] == ""
    assert job.last_error == "ValueError"
