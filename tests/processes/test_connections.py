"""How many connections workers have, and that a pool of Django's serves them."""

from collections.abc import Callable

import pytest

from django_jobqueue.models import Job
from tests.jobsapp.ledger import Ledger
from tests.processes import sessions
from tests.processes.jobs import DONE, standing
from tests.processes.workers import RunWorker
from tests.waiting import equals

pytestmark = [pytest.mark.postgresql, pytest.mark.usefixtures("quiet_server")]

QUERIES = 500


@pytest.mark.parametrize("max_age", [0, None])
def test_there_are_as_many_connections_as_handlers_and_a_few_more_and_none_is_left_behind(
    start_worker: Callable[..., RunWorker],
    ledger: Ledger,
    settings_module: Callable[[str], dict[str, str]],
    max_age: int | None,
) -> None:
    Job.objects.enqueue_many([("tests:query", {})] * QUERIES)
    worker = start_worker(
        "--threads", "8", **settings_module(f'DATABASES["default"]["CONN_MAX_AGE"] = {max_age}')
    )

    most = 0
    while ledger.ends() < QUERIES:
        # The least of a few looks: a server process outlives its client's connection by a little.
        most = max(most, min(sessions.count() for _ in range(5)))
        assert worker.process.poll() is None
    equals({DONE: QUERIES}, standing)
    assert 2 <= most <= 8 + 4
    assert worker.stop() == 0
    equals(0, sessions.count, within=5)
    assert worker.trouble == []


def test_workers_live_with_a_connection_pool(
    start_worker: Callable[..., RunWorker], settings_module: Callable[[str], dict[str, str]]
) -> None:
    env = settings_module(
        'DATABASES["default"]["CONN_MAX_AGE"] = 0\n'
        'DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 4, "timeout": 10}'
    )
    Job.objects.enqueue_many([("tests:query", {})] * 100)
    worker = start_worker("--threads", "8", "--poll-interval", "30", **env).ready()

    equals({DONE: 100}, standing)
    # It is woken as well: LISTEN has a connection of its own.
    job = Job.objects.enqueue("tests:query")
    equals(101, lambda: standing().get(DONE), within=10)
    assert worker.stop() == 0
    assert worker.trouble == []
    assert job.created
