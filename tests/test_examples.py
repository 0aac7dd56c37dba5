"""The tests that the pages show people, run."""

import inspect
import sys
import unittest
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from django.test import TestCase

from django_jobqueue import registry
from tests.test_docs import DOCS, blocks

PAGES = [
    "test-your-code",
    "come-from-celery",
    "come-from-django-q2",
    "come-from-procrastinate",
    "come-from-django-tasks-db",
]


def examples() -> Iterator[Any]:
    for page in PAGES:
        for block in blocks((DOCS / f"how-to/{page}.md").read_text(), "python"):
            if "(TestCase):" in block:
                yield pytest.param(block, id=f"{page}: {block.split('class ')[1].split('(')[0]}")


@pytest.fixture
def own_types() -> Iterator[None]:
    """Types that an example registers are gone afterwards."""
    before = {one.name for one in registry.all_types()}
    yield
    for one in registry.all_types():
        if one.name not in before:
            registry.unregister(one.name)


@pytest.mark.django_db
@pytest.mark.parametrize("example", list(examples()))
def test_the_tests_that_people_are_shown_pass(
    own_types: None, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    if "from django.tasks import" in example:  # from Django 6.0 on
        pytest.importorskip("django.tasks")
        pytest.importorskip("django_jobqueue.backend")
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # a task is looked up by its path
    exec(compile(example, "a page", "exec"), module.__dict__)  # noqa: S102 - our own page
    classes = [one for one in vars(module).values() if inspect.isclass(one) and issubclass(one, TestCase)]
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromTestCase(one) for one in classes if one is not TestCase
    )
    assert suite.countTestCases()

    result = unittest.TestResult()
    suite.run(result)

    assert [text for _, text in result.errors + result.failures] == []
