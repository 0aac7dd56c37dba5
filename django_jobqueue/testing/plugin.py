"""The same as fixtures of pytest. It finds this module by itself where the package is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from . import process_clock

if TYPE_CHECKING:
    from ..models import Job


@pytest.fixture
def jobqueue_clock() -> Iterator[None]:
    """The queue goes by this process's clock, which a test may have frozen, on PostgreSQL too."""
    with process_clock():
        yield


@pytest.fixture
def run_jobs(jobqueue_clock: None) -> Callable[..., list[Job]]:
    """``django_jobqueue.testing.run_jobs``; the test needs a database, too."""
    from .running import run_jobs

    return run_jobs


@pytest.fixture
def assert_enqueued(jobqueue_clock: None) -> Callable[..., list[Job]]:
    """``django_jobqueue.testing.assert_enqueued``."""
    from .asserting import assert_enqueued

    return assert_enqueued


@pytest.fixture
def immediate_jobs(jobqueue_clock: None) -> Iterator[list[Any]]:
    """Jobs run as soon as they are enqueued; a failure of any is the test's at its end."""
    from .running import immediate

    with immediate() as ended:
        yield ended
