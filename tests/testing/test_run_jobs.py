"""run_jobs: what is due runs here, on the test's own connection, in its transaction."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from pytest_django import Settings

from django_jobqueue import DeadJob, RetryJob, SnoozeJob
from django_jobqueue.databases.clock import from_database
from django_jobqueue.models import Job, JobStatus, Queue
from django_jobqueue.testing import arun_jobs, process_clock
from django_jobqueue.testing import run_jobs as plain_run_jobs
from tests.testing.conftest import Handle

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
HOUR = timedelta(hours=1)


def test_due_jobs_run_in_claim_order_and_those_that_they_enqueue(handle: Handle, run_jobs: Any) -> None:
    ran = []

    def child(n: int) -> None:
        ran.append(n)

    def parent(n: int) -> int:
        ran.append(n)
        children.using(priority=5).enqueue(n=n + 10)
        return n

    children, parents = handle(child), handle(parent)
    parents.enqueue(n=1)
    parents.using(priority=1).enqueue(n=2)
    jobs = run_jobs()
    assert ran == [2, 12, 1, 11]
    assert [job.status for job in jobs] == [DONE] * 4
    assert [job.result for job in jobs] == [2, None, 1, None]
    assert all(job.attempts == 1 and job.run_started_at for job in jobs)
    assert run_jobs() == []


def test_the_tests_transaction_is_neither_committed_nor_closed(handle: Handle, run_jobs: Any) -> None:
    raw, depth = connection.connection, len(connection.savepoint_ids)
    made = Group.objects.create(name="of the test")
    seen = []

    def look() -> None:
        seen.append((connection.connection, list(Group.objects.all())))
        Group.objects.create(name="of the job")

    handle(look).enqueue()
    run_jobs()
    assert seen == [(raw, [made])]
    assert connection.connection is raw
    assert (connection.in_atomic_block, len(connection.savepoint_ids)) == (True, depth)
    assert Group.objects.count() == 2


def test_async_and_atomic_handlers_use_the_tests_connection_too(handle: Handle, run_jobs: Any) -> None:
    async def in_async() -> int:
        await Group.objects.acreate(name="async")
        return await sync_to_async(lambda: id(connection.connection))()

    def in_transaction() -> int:
        Group.objects.create(name="atomic")
        return id(connection.connection)

    handle(in_async).enqueue()
    handle(in_transaction, atomic=True).enqueue()
    assert [job.result for job in run_jobs()] == [id(connection.connection)] * 2
    assert set(Group.objects.values_list("name", flat=True)) == {"async", "atomic"}


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction_around_the_test_it_is_the_same(handle: Handle, run_jobs: Any) -> None:
    def create() -> int:
        with transaction.atomic():
            Group.objects.create(name="x")
        return id(connection.connection)

    handle(create).enqueue()
    raw = connection.connection
    assert [job.result for job in run_jobs()] == [id(raw)]
    assert connection.connection is raw
    assert Group.objects.count() == 1


def test_what_a_handler_registers_for_the_commit_runs_after_it(handle: Handle, run_jobs: Any) -> None:
    ran = []

    def registers() -> None:
        transaction.on_commit(lambda: ran.append("job"))

    transaction.on_commit(lambda: ran.append("test"))
    handle(registers).enqueue()
    run_jobs()
    assert ran == ["job"]


# Failures


def test_a_failure_is_raised_after_it_was_recorded(handle: Handle, run_jobs: Any) -> None:
    def fails() -> None:
        raise ZeroDivisionError("as a test")

    handle(fails, max_attempts=1).enqueue()
    with pytest.raises(ZeroDivisionError, match="as a test"):
        run_jobs()
    assert Job.objects.get().status == DEAD
    assert "as a test" in Job.objects.get().last_error


def test_failures_are_kept_if_that_is_asked(handle: Handle, run_jobs: Any) -> None:
    def fails() -> None:
        Group.objects.create(name="before it failed")
        raise ZeroDivisionError

    def works() -> None: ...

    handle(fails).enqueue()
    handle(works).enqueue()
    failed, done = run_jobs(keep_failures=True)
    assert (failed.status, failed.attempts, done.status) == (PENDING, 1, DONE)
    assert Group.objects.count() == 1  # as in production, where no transaction is around a handler


def test_an_error_of_the_database_leaves_the_test_a_transaction_that_works(
    handle: Handle, run_jobs: Any
) -> None:
    Group.objects.create(name="x")
    ran = []

    def collides() -> None:
        transaction.on_commit(lambda: ran.append(1))
        Group.objects.create(name="x")

    def collides_inside() -> None:
        with transaction.atomic(savepoint=False):
            Group.objects.create(name="x")

    for function, options in ((collides, {}), (collides_inside, {}), (collides, {"atomic": True})):
        handle(function, max_attempts=1, **options).enqueue()
        [job] = run_jobs(keep_failures=True)
        assert job.status == DEAD
        assert "IntegrityError" in job.last_error
        assert Group.objects.count() == 1
    handle(collides, max_attempts=1).enqueue()
    with pytest.raises(IntegrityError):
        run_jobs()
    handle(collides, max_attempts=1, atomic=True).enqueue()
    with pytest.raises((IntegrityError, AssertionError), match=r"tests:collides|unique|UNIQUE"):
        run_jobs()


def test_what_a_handler_asks_for_is_no_failure(handle: Handle, run_jobs: Any) -> None:
    def retries() -> None:
        raise RetryJob(60)

    def snoozes() -> None:
        raise SnoozeJob(60)

    def dies() -> None:
        raise DeadJob("no")

    for function in (retries, snoozes, dies):
        handle(function).enqueue()
    jobs = run_jobs()
    assert [(job.status, job.attempts) for job in jobs] == [(PENDING, 1), (PENDING, 0), (DEAD, 1)]


def test_retries_run_to_the_end_if_scheduled_jobs_are_asked_for(handle: Handle, run_jobs: Any) -> None:
    def fails() -> None:
        raise ZeroDivisionError

    handle(fails, max_attempts=3).enqueue()
    jobs = run_jobs(scheduled=True, keep_failures=True)
    assert [job.status for job in jobs] == [PENDING, PENDING, DEAD]
    assert len(jobs[-1].errors) == 3


def test_it_is_bounded(handle: Handle, run_jobs: Any) -> None:
    def again() -> None:
        again_and_again.enqueue()

    again_and_again = handle(again)
    again_and_again.enqueue()
    with pytest.raises(
        AssertionError, match=r"run_jobs\(\) made 20 attempts, and job .*tests:again.* is next"
    ):
        run_jobs(most=20)
    counts = Job.objects.counts()
    assert (counts[DONE], counts[PENDING], counts[RUNNING]) == (20, 1, 0)


# Which


def test_other_queues_paused_ones_and_unknown_types_are_left_alone(
    handle: Handle, run_jobs: Any, settings: Settings
) -> None:
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["elsewhere:*"]}

    def known() -> None: ...

    handler = handle(known)
    jobs = {queue: handler.using(queue=queue).enqueue() for queue in ("a", "b", "paused")}
    Queue.objects.pause("paused")
    unknown = Job.objects.enqueue("elsewhere:any", queue="a")
    assert run_jobs(queues=["a"], scheduled=True) == [jobs["a"]]
    assert run_jobs() == [jobs["b"]]
    assert {Job.objects.get(pk=one.pk).status for one in (unknown, jobs["paused"])} == {PENDING}


def test_scheduled_ones_behind_a_paused_queue_and_behind_those_that_cannot_run_are_run(
    handle: Handle, run_jobs: Any
) -> None:
    def known() -> None: ...

    handler = handle(known)
    Queue.objects.pause("paused")
    paused = handler.using(queue="paused", run_after=timedelta(hours=1)).enqueue()
    expired = handler.using(run_after=timedelta(hours=2), expires_at=timedelta(0)).enqueue()
    last = handler.using(run_after=timedelta(hours=3)).enqueue()
    assert run_jobs(scheduled=True) == [last]
    assert Job.objects.get(pk=paused.pk).run_after == paused.run_after
    assert Job.objects.get(pk=expired.pk).status == PENDING


def test_an_async_test_has_a_twin(handle: Handle) -> None:
    async def in_async() -> int:
        return await Group.objects.acount()

    handler = handle(in_async)

    async def of_testcase() -> list[Job]:
        await Group.objects.acreate(name="x")
        await handler.aenqueue()
        return await arun_jobs()

    assert [job.result for job in async_to_sync(of_testcase)()] == [1]


# Time


@pytest.mark.parametrize(
    "start", [datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)], ids=str
)
def test_jobs_are_due_by_the_time_that_the_test_has_set(
    handle: Handle, run_jobs: Any, start: datetime
) -> None:
    def noop() -> None: ...

    handler = handle(noop)
    with time_machine.travel(start, tick=False) as traveller:
        now = handler.enqueue()
        assert now.run_after == now.created_at == from_database(start)
        later = handler.using(run_after=HOUR).enqueue()
        at = handler.using(run_after=now.created_at + 2 * HOUR).enqueue()
        expired = handler.using(run_after=3 * HOUR, expires_at=2.5 * HOUR).enqueue()
        [job] = run_jobs()
        assert (job, job.finished_at) == (now, from_database(start))
        traveller.shift(HOUR - timedelta(seconds=1))
        assert run_jobs() == []
        traveller.shift(1)
        assert run_jobs() == [later]
        traveller.shift(2 * HOUR)
        assert run_jobs() == [at]
        assert Job.objects.expire() == 1
        assert Job.objects.get(pk=expired.pk).status == CANCELLED


def test_retries_come_when_time_has_gone_by(handle: Handle, run_jobs: Any) -> None:
    def fails() -> None:
        raise RetryJob(600)

    with time_machine.travel(datetime(2020, 1, 1, tzinfo=UTC), tick=False) as traveller:
        handle(fails, max_attempts=2).enqueue()
        assert len(run_jobs()) == 1
        assert run_jobs() == []
        traveller.shift(600)
        [job] = run_jobs()
        assert job.status == DEAD


@pytest.mark.postgresql
def test_without_the_fixture_the_servers_clock_decides(handle: Handle) -> None:
    def noop() -> None: ...

    handler = handle(noop)
    with time_machine.travel(datetime(2020, 1, 1, tzinfo=UTC), tick=False):
        handler.enqueue()
        assert handler.enqueue().created_at.year >= 2026
        with process_clock():
            assert handler.enqueue().created_at.year == 2020
        assert len(plain_run_jobs()) == 3
