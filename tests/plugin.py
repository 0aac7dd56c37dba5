"""Which database the tests run on. Loaded by `-p` (pyproject.toml), before Django reads its settings."""

import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack

import pytest

from tests.postgres import Cluster, running_cluster

CLUSTER = pytest.StashKey[Cluster]()
DATABASES = ("sqlite", "postgresql")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", choices=DATABASES, default="sqlite", help="what to run the tests on")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Bring a database of our own before pytest-django's hook of this name loads the settings."""
    url_of = _bring_database(early_config)
    # Worker processes started by tests inherit all this. No DEBUG, as in a test: no reloader, no query log.
    os.environ |= {
        "DATABASE_URL": url_of("jobqueue"),
        "JOBQUEUE_TEST_DEBUG": "0",
        "JOBQUEUE_TEST_APPS": "tests.jobsapp",
    }
    yield
    # Django works on test_jobqueue from here on, and so must they.
    os.environ["DATABASE_URL"] = url_of("test_jobqueue")


def _bring_database(config: pytest.Config) -> Callable[[str], str]:
    """Answer with a function that makes the URL of a database from its name."""
    stack = ExitStack()
    config.add_cleanup(stack.close)
    if config.known_args_namespace.database == "postgresql":
        cluster = config.stash[CLUSTER] = stack.enter_context(running_cluster())
        return cluster.url
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobqueue-"))
    return lambda name: f"sqlite:///{folder}/{name}.sqlite3"


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {config.option.database}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, rather than skip, the tests that are marked for the other database only."""
    foreign = [item for item in items if not _runs_on(config.option.database, item)]
    if foreign:
        config.hook.pytest_deselected(items=foreign)
        items[:] = [item for item in items if item not in foreign]


def _runs_on(database: str, item: pytest.Item) -> bool:
    wanted = {mark.name for mark in item.iter_markers() if mark.name in DATABASES}
    return not wanted or database in wanted
