"""Which kinds of jobs there are, and in which state each has to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: An innocent job may be hit by many faults.
MANY = 100

DONE = ("done",)
DEAD = ("dead",)


@dataclass(frozen=True)
class Kind:
    """A kind of job of the load."""

    type: str
    weight: int
    payload: dict[str, Any] = field(default_factory=dict)
    expected: Sequence[str] = DONE
    options: dict[str, Any] = field(default_factory=dict)


#: ``seconds`` in a payload is the mean of what is drawn.
USUAL = (
    Kind("crash:work", 40),
    Kind("crash:work", 20, {"seconds": 0.1}),
    Kind("crash:work", 3, {"seconds": 1.5}),
    Kind("crash:async", 10, {"seconds": 0.1}),
    Kind("crash:query", 8),
    Kind("crash:store", 8),
    Kind("crash:stumble", 5, {"times": 2}),
    Kind("crash:stumble", 3, {"times": 3}, ("done", "dead"), {"max_attempts": 3}),
    Kind("crash:snooze", 3, {"times": 1}),
    Kind("crash:refuse", 1, {}, DEAD),
    Kind("crash:work", 8, {"seconds": 0.1}, options={"lock_key": "one at a time"}),
)
