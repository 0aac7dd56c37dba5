from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.jobsapp.ledger import VARIABLE, Ledger
from tests.plugin import CLUSTER
from tests.processes.workers import RunWorker


@pytest.fixture
def start_worker(
    worker_env: dict[str, str], ledger: Ledger, tmp_path: Path
) -> Iterator[Callable[..., RunWorker]]:
    """Starts `manage.py runworker` with these options; what is still there after the test is killed."""
    workers: list[RunWorker] = []

    def start(*options: str, command: str = "runworker", **env: str) -> RunWorker:
        folder = tmp_path / f"worker-{len(workers)}"
        worker = RunWorker(command, options, {**worker_env, VARIABLE: str(ledger.path), **env}, folder)
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.destroy()


@pytest.fixture
def settings_module(tmp_path: Path, worker_env: dict[str, str]) -> Callable[[str], dict[str, str]]:
    """The environment of workers that run on the test project's settings with some lines more."""

    def write(lines: str) -> dict[str, str]:
        (tmp_path / "changed_settings.py").write_text(f"from testproject.settings import *\n\n{lines}\n")
        path = f"{tmp_path}:{worker_env['PYTHONPATH']}"
        return {"DJANGO_SETTINGS_MODULE": "changed_settings", "PYTHONPATH": path}

    return write


@pytest.fixture
def app_with(tmp_path: Path, worker_env: dict[str, str]) -> Callable[[str], dict[str, str]]:
    """The environment of workers with one app more, whose jobs.py has these lines. APP is its folder."""

    def write(lines: str) -> dict[str, str]:
        app = tmp_path / "one_app_more"
        app.mkdir()
        (app / "__init__.py").touch()
        (app / "jobs.py").write_text(lines)
        return {
            "APP": str(app),
            "JOBQUEUE_TEST_APPS": f"{worker_env['JOBQUEUE_TEST_APPS']} {app.name}",
            "PYTHONPATH": f"{tmp_path}:{worker_env['PYTHONPATH']}",
        }

    return write


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that does not exist: jobs of the type "tests:wait" run until it does."""
    return tmp_path / "gate"


@pytest.fixture
def quiet_server(pytestconfig: pytest.Config) -> Iterator[None]:
    """On PostgreSQL: the server has no error to log during the test."""
    cluster = pytestconfig.stash.get(CLUSTER, None)
    if cluster is None:
        yield
        return
    before = len(cluster.log.read_text())
    yield
    since = cluster.log.read_text()[before:]
    # Of a process that a test killed, or that left, the server may have had a word for a listener.
    told = [line for line in since.splitlines() if "connection to client lost" not in line]
    assert [line for line in told if " ERROR: " in line or " FATAL: " in line] == []
