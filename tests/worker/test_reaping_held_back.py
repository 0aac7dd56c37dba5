"""While the database is away, or SQLite's write lock is held, nobody can renew: nobody is lost by that."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection, transaction

from django_jobqueue.databases.clock import DatabaseAgo
from django_jobqueue.models import Job, JobStatus
from django_jobqueue.worker.maintenance import LOOK, SECOND_LOOK, Maintenance
from django_jobqueue.worker.options import WorkerOptions
from tests.plugin import CLUSTER
from tests.waiting import PATIENCE, equals, outlast

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = 1.0

Frozen = Callable[[float], AbstractContextManager[None]]


@contextmanager
def write_lock(seconds: float) -> Iterator[None]:
    """Held by another connection from now on, for so long."""
    locked = threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked.set()
            outlast(seconds)
            other.execute("ROLLBACK")

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait()
    yield
    holder.join()


@pytest.fixture
def frozen(pytestconfig: pytest.Config) -> Frozen:
    """The server stands still from now on, for so many seconds at least; over when the context is."""

    @contextmanager
    def freeze(seconds: float) -> Iterator[None]:
        cluster, stopped = pytestconfig.stash[CLUSTER], threading.Event()

        def hold() -> None:
            with cluster.frozen():
                stopped.set()
                outlast(seconds)

        connection.ensure_connection()
        holder = threading.Thread(target=hold)
        holder.start()
        stopped.wait()
        yield
        holder.join()

    return freeze


@pytest.fixture
def lost() -> Job:
    """A job whose lease is over."""
    job = Job.objects.enqueue("tests:nothing")
    Job.objects.claim(worker_id="one", lease=LEASE)
    Job.objects.filter(pk=job.pk).update(lease_until=DatabaseAgo(timedelta(seconds=1)))
    return job


@pytest.fixture
def maintenance() -> Maintenance:
    """It has been running for so long that it may reap."""
    options = WorkerOptions(lease=LEASE)
    maintenance = Maintenance(options, lambda name: None)
    outlast(options.heartbeat * 1.1)
    return maintenance


def sweep(maintenance: Maintenance) -> None:
    maintenance._attempt(maintenance._sweep)


def status(job: Job) -> JobStatus:
    return JobStatus(Job.objects.get(pk=job.pk).status)


@pytest.mark.sqlite
def test_leases_that_ran_out_while_the_write_lock_was_held_are_not_reaped_at_once(
    lost: Job, maintenance: Maintenance
) -> None:
    with write_lock(LEASE / 4 * 1.5):
        sweep(maintenance)
    assert status(lost) is JobStatus.RUNNING

    outlast(LEASE * 1.1)  # nobody has renewed since: now it is lost
    sweep(maintenance)
    assert status(lost) is JobStatus.PENDING


def test_a_worker_that_had_to_wait_for_the_database_reaps_nothing_for_a_lease(
    lost: Job, maintenance: Maintenance
) -> None:
    maintenance.hold_back()
    sweep(maintenance)
    assert status(lost) is JobStatus.RUNNING

    outlast(LEASE * 1.1)
    sweep(maintenance)
    assert status(lost) is JobStatus.PENDING


def test_a_lease_is_over_for_good_at_the_second_look(lost: Job, maintenance: Maintenance) -> None:
    sweep(maintenance)
    assert status(lost) is JobStatus.RUNNING
    sweep(maintenance)
    assert status(lost) is JobStatus.PENDING


def test_what_the_second_look_finds_for_the_first_time_waits_for_another(
    lost: Job, maintenance: Maintenance
) -> None:
    sweep(maintenance)
    later = Job.objects.enqueue("tests:nothing")
    Job.objects.claim(worker_id="two", lease=LEASE)
    Job.objects.filter(pk=later.pk).update(lease_until=DatabaseAgo(timedelta(seconds=1)))
    sweep(maintenance)
    assert (status(lost), status(later)) == (JobStatus.PENDING, JobStatus.RUNNING)

    sweep(maintenance)
    assert status(later) is JobStatus.PENDING


def test_more_than_a_heartbeat_lies_between_the_looks(lost: Job) -> None:
    options = WorkerOptions(lease=LEASE)
    maintenance = Maintenance(options, lambda name: None)
    started = time.monotonic()
    maintenance.start()
    try:
        equals(JobStatus.PENDING, lambda: status(lost))
        assert time.monotonic() - started > options.heartbeat * (min(LOOK) + SECOND_LOOK)
        assert SECOND_LOOK > 1
    finally:
        maintenance.stop(10)


def test_a_worker_that_renews_between_two_looks_keeps_its_job(lost: Job, maintenance: Maintenance) -> None:
    sweep(maintenance)
    Job.objects.renew_lease(worker_ids=["one"], lease=LEASE * 60)
    sweep(maintenance)
    assert status(lost) is JobStatus.RUNNING


@pytest.mark.sqlite
def test_a_clock_that_was_set_forward_costs_no_living_worker_its_job(maintenance: Maintenance) -> None:
    job = Job.objects.enqueue("tests:nothing")
    Job.objects.claim(worker_id="one", lease=LEASE * 60)
    sweep(maintenance)
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=1)):
        sweep(maintenance)
        Job.objects.renew_lease(worker_ids=["one"], lease=LEASE * 60)
        sweep(maintenance)
        assert status(job) is JobStatus.RUNNING


@pytest.mark.postgresql
def test_a_row_that_somebody_has_locked_was_not_looked_at(lost: Job, maintenance: Maintenance) -> None:
    """Its worker could not renew it either."""
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Job.objects.select_for_update().get(pk=lost.pk)
            locked.set()
            release.wait(PATIENCE)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(PATIENCE)
    sweep(maintenance)
    sweep(maintenance)
    release.set()
    holder.join()
    sweep(maintenance)
    assert status(lost) is JobStatus.RUNNING

    sweep(maintenance)
    assert status(lost) is JobStatus.PENDING


@pytest.mark.postgresql
def test_a_server_that_stood_still_during_a_look_has_nothing_reaped_for_a_lease(
    lost: Job, maintenance: Maintenance, frozen: Frozen
) -> None:
    with frozen(LEASE / 4 * 1.5):
        maintenance._attempt(maintenance._reap)
    sweep(maintenance)
    assert status(lost) is JobStatus.RUNNING

    outlast(LEASE * 1.1)
    sweep(maintenance)
    assert status(lost) is JobStatus.PENDING


@pytest.mark.postgresql
def test_a_worker_that_was_started_at_the_end_of_an_outage_leaves_others_a_heartbeat(
    lost: Job, frozen: Frozen
) -> None:
    options = WorkerOptions(lease=LEASE)
    maintenance = Maintenance(options, lambda name: None)
    with frozen(options.heartbeat * 1.2):
        maintenance.start()
    answered = time.monotonic()
    try:
        equals(JobStatus.PENDING, lambda: status(lost))
        assert time.monotonic() - answered > options.heartbeat
    finally:
        maintenance.stop(10)
