"""Other job queues, measured the way the benchmark measures this one.

Each has a virtual environment of its own with pinned versions, a small project in `projects/`, one worker
process at the settings its documentation advises for throughput, and jobs that do nothing but leave a stamp.
"""

from .catalogue import RIVALS, RivalFailed
from .environments import version_of
from .measuring import measure

NAMES: tuple[str, ...] = tuple(RIVALS)

__all__ = ["NAMES", "RivalFailed", "chosen", "run", "version"]


def chosen(text: str) -> tuple[str, ...]:
    """The rivals of a list with commas; a ValueError names those that aren't known."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        _known(name)
    return names


def run(name: str, *, dsn: str, jobs: int, repeats: int = 3) -> dict[str, float]:
    """Medians of `repeats` measurements of at most `jobs` jobs, in databases made on the server of `dsn`."""
    _known(name)
    for option, value, least in (("jobs", jobs, 100), ("repeats", repeats, 1)):
        if value < least:
            raise ValueError(f"{option} is {value}, and must be at least {least}")
    return measure(RIVALS[name], dsn=dsn, jobs=jobs, repeats=repeats)


def version(name: str) -> str:
    _known(name)
    return version_of(RIVALS[name])


def _known(name: str) -> None:
    if name not in RIVALS:
        raise ValueError(f"unknown rival {name!r}; known are {', '.join(NAMES)}")
