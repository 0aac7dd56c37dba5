import math
import random
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from django_jobqueue import Retry
from django_jobqueue.exceptions import MAX_DELAY, InvalidOption
from django_jobqueue.retries import DEFAULT_RETRY, delay_after

JOB = SimpleNamespace(attempts=1)


def test_the_default_delays_double_from_two_seconds_to_a_minute() -> None:
    delays = [DEFAULT_RETRY.plain_delay(attempts) for attempts in range(1, 9)]
    assert delays == [2, 4, 8, 16, 32, 60, 60, 60]


def test_without_jitter_a_delay_is_the_plain_one() -> None:
    retry = Retry(jitter=0)
    assert [retry.delay(attempts) for attempts in range(1, 8)] == [2, 4, 8, 16, 32, 60, 60]


def test_the_default_spreads_by_a_tenth_both_ways() -> None:
    delays = [DEFAULT_RETRY.delay(3) for _ in range(5_000)]
    assert all(7.2 <= delay <= 8.8 for delay in delays)
    assert min(delays) < 7.4
    assert max(delays) > 8.6


def test_jitter_never_goes_above_the_cap() -> None:
    delays = [Retry(jitter=1).delay(50) for _ in range(5_000)]
    assert max(delays) == 60
    assert min(delays) < 10


def test_jitter_is_taken_from_the_programs_own_randomness() -> None:
    random.seed(7)
    first = DEFAULT_RETRY.delay(2)
    random.seed(7)
    assert DEFAULT_RETRY.delay(2) == first


@pytest.mark.parametrize("factor", [1, 1.000_001, 1.5, 2, 10, 1_000_000])
@pytest.mark.parametrize("base", [0, 1e-300, 0.001, 1, 1000, MAX_DELAY])
@pytest.mark.parametrize("cap", [0, 0.5, 60, MAX_DELAY])
def test_any_number_of_attempts_is_safe(base: float, factor: float, cap: float) -> None:
    retry = Retry(base=base, factor=factor, cap=cap)
    for attempts in (0, 1, 2, 60, 1023, 1024, 5_000, 100_000):
        delay = retry.delay(attempts)
        assert math.isfinite(delay)
        assert 0 <= delay <= cap


def test_delays_never_shrink_as_attempts_grow() -> None:
    retry = Retry(base=0.3, factor=1.7, cap=10_000, jitter=0)
    delays = [retry.delay(attempts) for attempts in range(1, 5_001)]
    assert delays == sorted(delays)
    assert delays[0] == pytest.approx(0.51)
    assert delays[-1] == 10_000


def test_a_factor_of_one_waits_the_same_every_time() -> None:
    assert {Retry(base=5, factor=1, jitter=0).delay(attempts) for attempts in range(1, 100)} == {5}


def test_a_base_of_zero_tries_again_at_once() -> None:
    assert Retry(base=0).delay(5) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, bad in {
            "base": [-1, MAX_DELAY + 1],
            "factor": [0, 0.9, 1_000_001],
            "cap": [-0.1, MAX_DELAY + 1],
            "jitter": [-0.1, 1.1],
        }.items()
        for value in [*bad, math.nan, math.inf, -math.inf, "3", None, True, timedelta(seconds=1)]
    ],
)
def test_a_bad_option_is_refused_by_name_and_value(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=name) as refused:
        Retry(**{name: value})
    assert repr(value) in str(refused.value)
    assert "from" in str(refused.value)


def test_a_policy_is_asked_with_the_attempts_of_the_job() -> None:
    assert delay_after(Retry(jitter=0), ValueError(), SimpleNamespace(attempts=4)) == 16


@pytest.mark.parametrize(
    ("answer", "delay"),
    [(0, 0.0), (7, 7.0), (0.5, 0.5), (timedelta(minutes=2), 120.0), (None, None), (MAX_DELAY, MAX_DELAY)],
)
def test_a_retry_function_says_when(answer: Any, delay: float | None) -> None:
    got = delay_after(lambda exception, job: answer, ValueError(), JOB)
    assert got == delay
    assert type(got) is type(delay)


def test_a_retry_function_sees_the_exception_and_the_job() -> None:
    seen = []
    error = ValueError("this")
    delay_after(lambda exception, job: seen.append((exception, job)), error, JOB)
    assert seen == [(error, JOB)]


@pytest.mark.parametrize(
    "answer",
    [-1, math.nan, math.inf, "5", True, [], MAX_DELAY * 1.01, 10**400, timedelta(seconds=-1), object],
)
def test_nonsense_from_a_retry_function_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidOption, match="retry function returned"):
        delay_after(lambda exception, job: answer, ValueError(), JOB)


def test_what_a_retry_function_raises_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        delay_after(lambda exception, job: 1 / 0, ValueError(), JOB)
