from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobqueue import job, registry
from django_jobqueue.handlers import Handler

Handle = Callable[..., Handler[Any, Any]]


@pytest.fixture
def handle() -> Iterator[Handle]:
    """Make a function a handler until the end of the test."""
    names: list[str] = []

    def make(function: Callable[..., Any], **options: Any) -> Handler[Any, Any]:
        names.append(f"tests:{function.__name__}")
        return job(names[-1], **options)(function)

    yield make
    for name in names:
        registry.unregister(name)
