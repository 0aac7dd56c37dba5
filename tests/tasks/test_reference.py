"""The page on the Tasks API against the code: its tables list what there is, each row with a test."""

import re
from collections.abc import Iterator
from dataclasses import fields

import pytest

from django_jobqueue import backend
from django_jobqueue.backend.options import DEFAULTS, PER_CALL, WORDS
from django_jobqueue.backend.running import RunningContext
from django_jobqueue.compat import BaseTaskBackend, TaskResult
from tests.conftest import ROOT
from tests.test_docs import page, sections

PAGE = page("tasks")


def table(title: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    lines = [line for line in sections(PAGE)[title].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


TITLES = ("Options", "Beyond the contract", "The contract, point by point")


def rows() -> Iterator[tuple[str, str]]:
    for title in TITLES:
        for row in table(title):
            yield row[0], row[-1]


def names(cells: list[str]) -> set[str]:
    """What stands in backticks, without arguments."""
    return {re.split(r"[(.]", one)[0] for cell in cells for one in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize(("point", "test"), list(rows()))
def test_every_row_names_a_test_that_there_is(point: str, test: str) -> None:
    file, _, function = test.partition("::")

    assert re.search(rf"^def {function}\(", (ROOT / file).read_text(), re.MULTILINE), point


def test_every_option_has_a_row_that_says_where_it_may_be_given() -> None:
    told = {row[0].strip("`"): set(row[1].split(", ")) for row in table("Options")}

    assert told == {
        word: {"task", *(["call"] if word in PER_CALL else []), *(["backend"] if word in DEFAULTS else [])}
        for word in WORDS
    }


def test_every_function_beyond_the_contract_has_a_row_or_is_named_as_a_twin() -> None:
    told = sections(PAGE)["Beyond the contract"]
    listed = names([row[0] for row in table("Beyond the contract")])
    functions = {name for name in backend.__all__ if name[0].islower()} - {"task"}

    for name in functions:
        twin = name.removesuffix("_async") if name.endswith("_async") else name[1:]
        assert name in listed or (f"`{name}`" in told and twin in listed), name
    for name in vars(RunningContext):
        if not name.startswith("_") and name != "task_result":
            assert f"context.{name}" in told, name


def test_every_part_of_djangos_backend_and_result_has_a_row() -> None:
    told = names([row[0] for row in table(TITLES[2])]) | names([row[1] for row in table(TITLES[2])])
    parts = {name for name in vars(BaseTaskBackend) if not name.startswith("_")}
    parts -= {"aget_result", "alias"}  # its twin has a row
    result = {one.name for one in fields(TaskResult)} - {
        *("task", "id", "args", "kwargs", "backend", "finished_at", "_return_value")  # what enqueue was given
    }

    assert (parts | result) - told == set()


def test_versions_are_marked_by_two_signs() -> None:
    assert {sign for row in table(TITLES[2]) for sign in row[2:5]} == {"=", "\u2013"}
