"""How a worker starts, or says why it does not."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.jobsapp.ledger import Ledger
from tests.plugin import CLUSTER
from tests.processes.jobs import DONE, PENDING, status, touches
from tests.processes.workers import MANAGE, RunWorker
from tests.waiting import equals


def test_the_banner_says_who_works_on_what(start_worker: Callable[..., RunWorker]) -> None:
    worker = start_worker(
        "--queues", "mail,reports", "--processes", "2", "--threads", "3", command="jobqueue_worker"
    ).ready(2)

    for line in (
        rf"django_jobqueue \S+, supervisor {worker.pid}\b",
        r"database +default\n",
        r"queues +mail, reports\n",
        r"concurrency +2 processes of 3 threads and 100 coroutines\n",
        r"lease +60 s, renewed every 15 s\n",
        r"job types .*tests:async_wait, .*tests:touch",
    ):
        assert re.search(line, worker.banner)
    assert worker.stop() == 0


def test_a_worker_serves_the_queues_it_is_told_to(start_worker: Callable[..., RunWorker]) -> None:
    [first], [second], [third] = (touches(1, queue=queue) for queue in ("a", "b", "c"))

    assert start_worker("--drain", "--queues", "a, c", "--exclude-queues", "c").wait() == 0
    assert [status(job) for job in (first, second, third)] == [DONE, PENDING, PENDING]
    assert start_worker("--drain", "--exclude-queues", "c").wait() == 0
    assert [status(job) for job in (first, second, third)] == [DONE, DONE, PENDING]


def test_a_misspelt_queue_ends_the_command_with_code_1_and_its_name(
    start_worker: Callable[..., RunWorker], settings_module: Callable[[str], dict[str, str]]
) -> None:
    # The site's own types have other queues, which a check would say first.
    env = settings_module("""
JOBQUEUE = {"QUEUES": ["default", "reports"]}
SILENCED_SYSTEM_CHECKS = ["jobqueue.E007"]
""")
    worker = start_worker("--queues", "default,reprots", **env)

    assert worker.wait() == 1
    assert "'reprots' is not one of those declared" in worker.log
    assert "Traceback" not in worker.log


def test_an_error_in_a_jobs_module_keeps_the_worker_from_starting_and_is_shown(
    start_worker: Callable[..., RunWorker], app_with: Callable[[str], dict[str, str]]
) -> None:
    worker = start_worker(**app_with("import a_library_that_is_not_there\n"))

    assert worker.wait() != 0
    assert "Traceback" in worker.log
    assert "No module named 'a_library_that_is_not_there'" in worker.log
    assert worker.worker_ids == {}


@pytest.fixture
def empty_database(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without a table."""
    cluster = pytestconfig.stash.get(CLUSTER, None)
    if cluster is None:
        yield f"sqlite:///{tmp_path}/empty.sqlite3"
        return
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as server:
        server.execute("CREATE DATABASE empty")
        yield cluster.url("empty")
        server.execute("DROP DATABASE empty WITH (FORCE)")


def test_missing_tables_are_told_of_and_waited_for(
    empty_database: str, start_worker: Callable[..., RunWorker], worker_env: dict[str, str]
) -> None:
    worker = start_worker(DATABASE_URL=empty_database)
    worker.says("manage.py migrate")
    assert worker.worker_ids == {}

    env = worker_env | {"DATABASE_URL": empty_database}
    subprocess.run([sys.executable, str(MANAGE), "migrate", "-v0"], env=env, check=True, timeout=60)

    worker.ready()
    assert worker.stop() == 0


def test_a_process_that_dies_at_once_again_and_again_is_replaced_more_and_more_slowly(
    start_worker: Callable[..., RunWorker], app_with: Callable[[str], dict[str, str]], ledger: Ledger
) -> None:
    dies_at_once = (
        "import multiprocessing, os\nfrom tests.jobsapp.ledger import note\n"
        "if multiprocessing.parent_process():\n    note('born')\n    os._exit(9)\n"
    )
    worker = start_worker(**app_with(dies_at_once))

    equals(True, lambda: len(ledger.events("born")) > 2)
    first, second, third = (one["at"] for one in ledger.events("born"))
    assert third - second > max(1.5, second - first)
    worker.says("keep dying right after their start")
    assert worker.stop(within=5) == 0
    assert worker.trouble


def test_a_worker_process_that_was_killed_is_replaced(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    worker = start_worker().ready()
    [victim] = worker.children
    os.kill(victim, signal.SIGKILL)

    equals(2, lambda: len(worker.worker_ids))
    [job] = touches(1)
    equals(DONE, lambda: status(job))
    assert ledger.pids() == set(worker.children) != {victim}
    assert worker.exit_codes[victim] == -signal.SIGKILL
    assert worker.stop() == 0
