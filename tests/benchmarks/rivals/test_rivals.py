"""What can be said of the rivals without installing them."""

import pytest

from . import NAMES, chosen, run, version
from .catalogue import RIVALS, RivalFailed
from .project import PROJECTS


def test_names_are_split_at_commas_and_kept_once() -> None:
    assert chosen("huey, celery,huey") == ("huey", "celery")


@pytest.mark.parametrize("text", ["rq", "huey,rq", ""])
def test_an_unknown_rival_is_named_with_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"^unknown rival '(rq)?'; known are procrastinate, .*oban$"):
        chosen(text)


@pytest.mark.parametrize(("option", "value"), [("jobs", 0), ("jobs", -1), ("repeats", 0)])
def test_absurd_numbers_are_refused(option: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{option} is {value}, and must be at least"):
        run("huey", dsn="", **{"jobs": 1_000, option: value})


@pytest.mark.parametrize("name", NAMES)
def test_each_rival_has_a_pinned_version_and_a_project(name: str) -> None:
    assert version(name)[0].isdigit()
    assert (PROJECTS / f"{RIVALS[name].module}.py").exists()


def test_a_failure_ends_with_the_end_of_the_log() -> None:
    failure = RivalFailed("huey", "stalled", "\n".join(f"line {number}" for number in range(100)))
    assert str(failure).startswith("huey: stalled\nline 80\n")
