"""What the values of options may be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from .exceptions import InvalidOption

#: Seconds that a handler may be given: less is no time to look, more is no limit.
TIMEOUT_MIN, TIMEOUT_MAX = 0.1, 30 * 86_400.0
#: Under this key the timeout that a call gave its job travels in the job's context.
TIMEOUT_KEY = "timeout"


def check_whole(name: str, value: Any, least: int, most: int, what: str = "") -> None:
    """Raise ``InvalidOption`` unless ``value`` is a whole number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        where = f"{what}: " if what else ""
        raise InvalidOption(f"{where}{name}={value!r} must be a whole number from {least} to {most}.")


def check_timeout(value: Any, what: str = "") -> float | None:
    """The seconds of a timeout (a number or a timedelta; None: no limit). Raises ``InvalidOption``."""
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not TIMEOUT_MIN <= seconds <= TIMEOUT_MAX:
        where = f"{what}: " if what else ""
        raise InvalidOption(
            f"{where}timeout={value!r} must be seconds or a timedelta, from {TIMEOUT_MIN:g} s to 30 days. "
            "Leave it out for no limit."
        )
    return float(seconds)
