"""What an enqueue does when another job has its dedupe key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from .exceptions import InvalidOption, as_seconds

#: The policies that are told by a word alone.
WORDS = ("return", "raise", "replace")
_REMEDY = (
    'Write "return", "raise" or "replace", Dedupe.skip_for(timedelta(…)) or Dedupe.debounce(timedelta(…)).'
)


@dataclass(frozen=True, slots=True)
class Dedupe:
    """A policy for jobs with a dedupe key. Made of a word, or by ``skip_for`` and ``debounce``.

    ``"return"``: answer with the active job of the key. ``"raise"``: raise ``DuplicateJob``. ``"replace"``:
    the pending job of the key becomes what this call asks for. A running one is answered as it is by all
    but ``"raise"``. Raises ``InvalidOption`` for any other word.
    """

    policy: str = "return"
    seconds: float = 0.0
    at_most: float | None = None  # seconds from the job's making

    def __post_init__(self) -> None:
        known = WORDS if not self.seconds else ("skip_for", "debounce")
        if self.policy not in known:
            raise InvalidOption(f"dedupe={self.policy!r} is no policy. {_REMEDY}")

    @classmethod
    def skip_for(cls, period: timedelta) -> Dedupe:
        """Throttle: no second job of the key within ``period`` of the last one's making.

        None while one is active either. Jobs that were cancelled do not count. Finished ones have to be
        there still, so ``period`` may not be longer than JOBQUEUE["RETENTION"] keeps DONE and DEAD jobs;
        that is checked at the enqueue.
        """
        return cls("skip_for", _span("skip_for", period))

    @classmethod
    def debounce(cls, wait: timedelta, *, at_most: timedelta | None = None) -> Dedupe:
        """Run ``wait`` after the last call, with its arguments; ``at_most`` after the first, if given."""
        bound = None if at_most is None else _span("debounce(at_most)", at_most)
        seconds = _span("debounce", wait)
        if bound is not None and bound < seconds:
            raise InvalidOption(f"debounce(): at_most={at_most!r} is less than the wait of {wait!r}.")
        return cls("debounce", seconds, bound)

    @property
    def replaces(self) -> bool:
        """Whether a pending job of the key takes over what the new one asks for."""
        return self.policy in {"replace", "debounce"}

    @property
    def is_plain(self) -> bool:
        """Whether many such jobs go into one statement."""
        return self.policy in {"return", "raise"}


RETURN = Dedupe()
_BY_WORD = {word: Dedupe(word) for word in WORDS}


def as_dedupe(value: Any) -> Dedupe:
    """The policy that a caller gave, as a ``Dedupe`` or a word. Raises ``InvalidOption``."""
    if isinstance(value, Dedupe):
        return value
    if isinstance(value, str) and value in _BY_WORD:
        return _BY_WORD[value]
    raise InvalidOption(f"dedupe={value!r:.300} is no policy. {_REMEDY}")


def _span(name: str, span: timedelta) -> float:
    if not isinstance(span, timedelta) or not (seconds := as_seconds(span, name)):
        raise InvalidOption(
            f"{name}={span!r} must be a timedelta longer than nothing, e.g. timedelta(minutes=5)."
        )
    return seconds
