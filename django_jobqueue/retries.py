"""When to try again."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from .exceptions import MAX_DELAY, InvalidOption


@dataclass(frozen=True)
class Retry:
    """Exponential back-off: ``min(base * factor ** attempts, cap)`` seconds after that many attempts.

    With the defaults 2, 4, 8 … 60 seconds. ``jitter`` (0 to 1) spreads each delay by that part up or down,
    never above ``cap``, so that jobs which failed together do not come back together.
    Raises ``InvalidOption`` for a negative base, a factor below 1, a cap below 0 or above ten years.
    """

    base: float = 1
    factor: float = 2
    cap: float = 60
    jitter: float = 0.1

    def __post_init__(self) -> None:
        rules = {
            "base": (0, MAX_DELAY),
            "factor": (1, 1_000_000),
            "cap": (0, MAX_DELAY),
            "jitter": (0, 1),
        }
        for name, (least, most) in rules.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
                raise InvalidOption(f"Retry({name}={value!r}): must be a number from {least:g} to {most:g}.")

    def delay(self, attempts: int) -> float:
        """Seconds to wait after ``attempts`` starts, jitter included. Safe for any number of attempts."""
        delay = self.plain_delay(attempts)
        if self.jitter:
            delay *= 1 + random.uniform(-self.jitter, self.jitter)  # noqa: S311 - spread, not a secret
        return min(delay, self.cap)

    def plain_delay(self, attempts: int) -> float:
        """The same without jitter."""
        if self.base == 0 or self.cap == 0:
            return 0.0
        attempts = min(max(attempts, 0), 1_000_000)
        try:
            return float(min(self.base * float(self.factor) ** attempts, self.cap))
        except OverflowError:
            # Long before attempts run out. As logarithms it is small again, and nearly always over the cap.
            exponent = math.log(self.base) + attempts * math.log(self.factor)
            return float(self.cap) if exponent >= math.log(self.cap) else math.exp(exponent)


#: A type's own rule: ``(exception, job) -> seconds``, or None for "never again".
RetryFunction = Callable[[BaseException, Any], float | timedelta | None]
RetryPolicy = Retry | RetryFunction

DEFAULT_RETRY = Retry()


def delay_after(policy: RetryPolicy, exception: BaseException, job: Any) -> float | None:
    """Seconds until the next attempt, None for never again.

    Raises whatever a retry *function* raises, and ``InvalidOption`` for what it should not have returned;
    the caller falls back to ``DEFAULT_RETRY`` so that a broken rule never costs a job.
    """
    if isinstance(policy, Retry):
        return policy.delay(job.attempts)
    answer = policy(exception, job)
    if isinstance(answer, timedelta):
        answer = answer.total_seconds()
    if answer is None:
        return None
    if isinstance(answer, bool) or not isinstance(answer, int | float) or not 0 <= answer <= MAX_DELAY:
        raise InvalidOption(
            f"The retry function returned {answer!r}: it must return seconds from 0 to {MAX_DELAY:.0f}, "
            "a timedelta, or None for no further attempt."
        )
    return float(answer)
