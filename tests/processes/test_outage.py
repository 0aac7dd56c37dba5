"""PostgreSQL goes away and comes back: the workers wait for it, and no job is lost or run twice."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from django_jobqueue.models import Job
from tests.jobsapp.ledger import Ledger
from tests.postgres import Cluster
from tests.processes import sessions
from tests.processes.jobs import DONE, PENDING, ids, row, sleeps, standing, status, touches, wait_for
from tests.processes.workers import RunWorker
from tests.waiting import equals, eventually, outlast

pytestmark = pytest.mark.postgresql


@pytest.fixture
def server(postgres_cluster: Cluster) -> Iterator[Cluster]:
    """The server; it is there again after the test."""
    yield postgres_cluster
    connection.close()
    postgres_cluster.stop()
    postgres_cluster.start()


def stop_fast(server: Cluster) -> None:
    connection.close()
    server.stop()


def stop_immediately(server: Cluster) -> None:
    """As in a crash: no goodbye to anybody."""
    connection.close()
    server.stop_immediately()


@pytest.mark.parametrize("stop", [stop_fast, stop_immediately])
def test_a_restart_of_the_server_in_the_middle_of_many_jobs(
    start_worker: Callable[..., RunWorker], ledger: Ledger, server: Cluster, stop: Callable[[Cluster], None]
) -> None:
    jobs = [sleeps(0.02) for _ in range(300)]
    worker = start_worker("--processes", "2", "--threads", "4").ready(2)
    processes = worker.children
    eventually(lambda: ledger.ends() > 50, every=0.005)

    stop(server)
    server.start()

    equals({DONE: 300}, standing)
    assert ledger.times_run() == dict.fromkeys(ids(jobs), 1)
    assert worker.children == processes
    assert worker.stop() == 0
    assert "Traceback" not in worker.log


def test_sessions_cut_off_at_any_moment_cost_no_job_and_no_process(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    plain = touches(300)
    with_orm = Job.objects.enqueue_many([("tests:query", {})] * 100, max_attempts=20)
    worker = start_worker("--processes", "2", "--threads", "4", "--lease", "4").ready(2)
    processes = worker.children
    for done in (0, 40, 80, 120, 160, 200, 240, 280, 320, 360):
        eventually(lambda done=done: ledger.ends() > done, every=0.002)
        sessions.terminate()

    Job.objects.filter(status=PENDING).exclude(attempts=0).reschedule(priority=1)
    equals({DONE: 400}, standing, within=60)
    # A handler that lost its own connection has failed; the others know nothing of it.
    assert {job: times for job, times in ledger.times_run().items() if job in ids(plain)} == dict.fromkeys(
        ids(plain), 1
    )
    assert all(row(job)["attempts"] == 1 for job in plain)
    assert all(len(row(job)["errors"]) == row(job)["attempts"] - 1 for job in with_orm)
    assert worker.children == processes
    assert worker.stop() == 0
    assert "Traceback" not in worker.log


def test_an_outage_longer_than_the_lease_takes_no_job_from_a_living_worker(
    start_worker: Callable[..., RunWorker], ledger: Ledger, server: Cluster, gate: Path
) -> None:
    lease = 2
    job = wait_for(gate)
    workers = [start_worker("--lease", str(lease)).ready() for _ in range(2)]
    eventually(ledger.starts)

    stop_fast(server)
    outlast(lease * 2)
    server.start()
    for worker in workers:
        worker.says("The database is back: renewing leases")
    outlast(lease * 1.5)  # by then the leases of before the outage would have been reaped
    gate.touch()

    equals(DONE, lambda: status(job))
    assert len(ledger.runs()) == 1
    assert (row(job)["attempts"], row(job)["fence"], row(job)["crashes"]) == (1, 1, 0)
    assert [worker.stop() for worker in workers] == [0, 0]


def test_a_worker_that_was_started_during_an_outage_takes_no_job_from_a_living_worker(
    start_worker: Callable[..., RunWorker], ledger: Ledger, server: Cluster, gate: Path
) -> None:
    lease = 4
    job = wait_for(gate)
    living = start_worker("--lease", str(lease)).ready()
    eventually(ledger.starts)
    connection.close()
    with server.frozen():
        newcomer = start_worker("--lease", str(lease))
        outlast(lease * 1.5)  # by then it waits for the first answer
        living.stand_still(living.pid)  # so that it comes to renew later than the newcomer could sweep

    outlast(lease / 2)
    living.send(signal.SIGCONT)
    outlast(lease)  # the newcomer may reap now, and finds the lease renewed
    gate.touch()

    equals(DONE, lambda: status(job))
    assert (row(job)["attempts"], row(job)["fence"], row(job)["crashes"]) == (1, 1, 0)
    assert [living.stop(), newcomer.stop()] == [0, 0]


def test_a_worker_that_is_started_before_the_server_waits_for_it(
    start_worker: Callable[..., RunWorker], server: Cluster
) -> None:
    [job] = touches(1)
    stop_fast(server)
    worker = start_worker()
    worker.says("The database failed while waiting for the database")
    server.start()

    equals(DONE, lambda: status(job))
    assert worker.stop() == 0


def test_sigterm_during_an_outage_ends_the_worker_and_loses_no_job(
    start_worker: Callable[..., RunWorker], ledger: Ledger, server: Cluster, gate: Path
) -> None:
    worker = start_worker("--grace", "1", "--lease", "2").ready()
    job = wait_for(gate)
    eventually(ledger.starts)
    stop_fast(server)

    assert worker.stop(within=20) == 0

    server.start()
    other = start_worker("--lease", "2")
    gate.touch()
    equals(DONE, lambda: status(job))
    assert other.stop() == 0


@pytest.mark.parametrize("health_checks", [True, False])
def test_an_idle_connection_that_was_cut_off_is_no_trouble_for_the_next_job(
    start_worker: Callable[..., RunWorker],
    settings_module: Callable[[str], dict[str, str]],
    health_checks: bool,
) -> None:
    env = settings_module(
        f'DATABASES["default"].update(CONN_MAX_AGE=None, CONN_HEALTH_CHECKS={health_checks})'
    )
    worker = start_worker("--threads", "1", **env).ready()
    first = Job.objects.enqueue("tests:query")
    equals(DONE, lambda: status(first))
    sessions.terminate()

    second = Job.objects.enqueue("tests:query", max_attempts=2)
    equals(DONE, lambda: status(second))
    assert row(second)["attempts"] <= (1 if health_checks else 2)
    assert worker.stop() == 0
