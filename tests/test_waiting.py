"""Waiting for the end of a job, beside a real worker or the moves that end it."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction
from pytest_django import Settings

from django_jobqueue import waiting
from django_jobqueue.exceptions import InvalidOption, JobNotFound, WaitInsideTransaction, WaitTimeout
from django_jobqueue.managers.outcomes import Done
from django_jobqueue.models import Job, JobStatus
from django_jobqueue.waiting import wait, wait_async
from django_jobqueue.worker import Worker
from tests.moves.factories import claim, claim_again, claimed, enqueue, in_status, selected, stored, write
from tests.moves.threads import PATIENCE, in_thread, run_async, together
from tests.postgres import Cluster
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
WAITS: dict[str, Callable[[Any, Any], Job]] = {
    "wait": wait,
    "wait_async": lambda job, timeout: run_async(wait_async(job, timeout)),
}
either = pytest.mark.parametrize("waits", WAITS.values(), ids=WAITS)


@pytest.fixture(autouse=True)
def slow_poll(settings: Settings) -> None:
    """So slow that a test which is not woken fails."""
    settings.JOBQUEUE = {"EXTERNAL_TYPES": ["tests:*"], "POLL_INTERVAL": 3_600}


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    yield
    assert not waiting._watches
    assert [one.name for one in threading.enumerate() if one.name == "jobqueue-watch"] == []


def expect(error: type[Exception], waits: Any, job: Job, timeout: float) -> None:
    with pytest.raises(error):
        waits(job, timeout)


def until_watched(count: int = 1) -> None:
    """Until so many wait, and the one thread that looks after them is at rest."""

    def at_rest() -> bool:
        watch = waiting._watches.get("default")
        return watch is not None and sum(map(len, watch.waiters.values())) == count and watch._ear is not None

    eventually(at_rest)
    if connection.vendor == "postgresql":
        eventually(lambda: Job.objects.filter(awaited=True).exists())


@either
@pytest.mark.parametrize("status", [DONE, DEAD, CANCELLED], ids=lambda one: one.name)
def test_a_job_that_has_ended_is_answered_at_once(waits: Any, status: JobStatus) -> None:
    job = in_status(status)
    for what in (job, job.id, str(job.id)):
        assert waits(what, 0) == job
        assert waits(what, timedelta(seconds=1)).status == status


ENDINGS: dict[str, Callable[[Job], Any]] = {
    "complete": lambda job: Job.objects.complete(claim_again(job), {"n": 1}),
    "fail": lambda job: Job.objects.fail(claim_again(job), "no", delay=None),
    "cancel": lambda job: selected(job).cancel(),
    "expire": lambda job: (write(job, expires_at=job.created_at), Job.objects.expire()),
    "reap": lambda job: (
        Job.objects.record_started("worker-1", [(claim_again(job).id, 1.0)]),
        Job.objects.reap(worker_id="worker-1"),
    ),
    "too many releases": lambda job: (
        write(job, max_attempts=1, releases=30_000),
        Job.objects.release(claim_again(job)),
    ),
}


@either
@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
def test_every_move_that_ends_a_job_wakes_who_waits(waits: Any, end: Any) -> None:
    job = enqueue(max_attempts=1)
    with in_thread(waits, job, PATIENCE) as waiter:
        until_watched()
        end(job)
        ended = waiter.result(PATIENCE)
    assert ended.is_finished
    assert (ended.status, ended.result) == (stored(job).status, stored(job).result)


@pytest.mark.parametrize("move", ["fail", "snooze", "release"])
def test_a_job_that_will_run_again_is_waited_for_on(move: str) -> None:
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        held = claim_again(job)
        arguments = {"fail": ("no",), "snooze": (0,), "release": ()}[move]
        assert getattr(Job.objects, move)(held, *arguments)
        ENDINGS["complete"](job)
        assert waiter.result(PATIENCE).status == DONE


def test_a_job_that_is_retried_before_it_was_seen_ended_is_waited_for_on() -> None:
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        with transaction.atomic():
            ENDINGS["fail"](job)
            selected(job).retry()
        ENDINGS["complete"](job)
        assert waiter.result(PATIENCE).status == DONE


@either
def test_a_real_worker_wakes_who_waits(waits: Any) -> None:
    worker = Worker(threads=1, poll_interval=0.05)
    worker.start()
    try:
        jobs = [Job.objects.enqueue("tests:nothing") for _ in range(3)]
        assert [waits(job, PATIENCE).status for job in jobs] == [DONE] * 3
    finally:
        worker.stop(PATIENCE)


def test_many_wait_in_one_thread_and_one_word_wakes_all_of_a_flush() -> None:
    jobs = [enqueue() for _ in range(20)]

    def end_all() -> list[Job]:
        until_watched(20)
        if connection.vendor == "postgresql":
            eventually(lambda: Job.objects.filter(awaited=True).count() == 20)
        assert [one.name for one in threading.enumerate()].count("jobqueue-watch") == 1
        with transaction.atomic():
            for held in claim(20):
                Job.objects.complete(held)
        return []

    *ended, _ = together(*[lambda job=job: wait(job, PATIENCE) for job in jobs], end_all)
    assert {job.status for job in ended} == {DONE}


@either
def test_in_time_or_not_at_all(waits: Any) -> None:
    job = enqueue()
    began = monotonic()
    with pytest.raises(
        WaitTimeout, match=rf"{job.id} \(tests:any\) has not ended within 0.2 s: it is pending"
    ) as told:
        waits(job, 0.2)
    assert 0.2 <= monotonic() - began < PATIENCE
    assert isinstance(told.value, TimeoutError)
    assert told.value.job == job
    assert stored(job).status == PENDING


@either
def test_a_job_that_nobody_knows_and_one_that_is_removed_meanwhile_are_errors(
    waits: Any, settings: Settings
) -> None:
    with pytest.raises(JobNotFound, match=r"There is no job .*: it was removed"):
        waits(uuid4(), 1)
    settings.JOBQUEUE = {**settings.JOBQUEUE, "POLL_INTERVAL": 0.05}  # PostgreSQL says nothing of a removal
    job = enqueue()
    with in_thread(expect, JobNotFound, waits, job, PATIENCE):
        until_watched()
        selected(job).delete()


def test_in_the_transaction_that_enqueued_it_is_refused_with_the_reason() -> None:
    with transaction.atomic():
        job = enqueue()
        with pytest.raises(WaitInsideTransaction, match="no worker sees a job before the transaction"):
            wait(job, PATIENCE)
        assert selected(job).cancel().done == 1  # the transaction goes on
        assert wait(job, 1).status == CANCELLED


@pytest.mark.django_db(databases=["default", "other"], transaction=True)
def test_a_job_that_waits_for_the_commit_of_another_database_is_refused_too(settings: Settings) -> None:
    settings.JOBQUEUE |= {"DATABASE": "other"}
    with transaction.atomic():
        job = enqueue()
        assert job.created is None
        with pytest.raises(WaitInsideTransaction, match="on 'default'"):
            wait(job, 1)
        transaction.set_rollback(True)


@pytest.mark.parametrize(("job", "timeout"), [("x", 1), (7, 1), (None, 1), (uuid4(), -1), (uuid4(), None)])
def test_what_cannot_be_waited_for_is_refused(job: Any, timeout: Any) -> None:
    with pytest.raises(InvalidOption):
        wait(job, timeout)


# PostgreSQL


@pytest.mark.postgresql
def test_a_flush_of_outcomes_says_one_word_and_only_if_somebody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(
        "django_jobqueue.databases.waking._notify_ended", lambda alias, payload: said.append(payload)
    )
    jobs = [claimed() for _ in range(3)]
    awaited = [claimed() for _ in range(3)]
    Job.objects.settle("worker-1", [Done(job) for job in jobs])
    assert said == []
    selected(*awaited).update(awaited=True)
    more = claimed()
    Job.objects.settle("worker-1", [Done(job) for job in [*awaited, more]])
    assert [sorted(one.split(",")) for one in said] == [sorted(job.id.hex for job in awaited)]


@pytest.mark.postgresql
def test_more_than_a_notify_can_name_are_told_as_any() -> None:
    job = enqueue()
    others = [enqueue() for _ in range(300)]
    selected(*others).update(awaited=True)
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        eventually(lambda: stored(job).awaited)
        held = claim(301)
        Job.objects.settle("worker-1", [Done(one) for one in held])
        assert waiter.result(PATIENCE).status == DONE


def cut(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [pid])


def backend_of_the_watch() -> int:
    ear = waiting._watches["default"]._ear
    assert isinstance(ear, waiting.EndsWakeup)
    return int(ear._raw.info.backend_pid)


@pytest.mark.postgresql
def test_a_dropped_connection_is_replaced_and_listens_again(settings: Settings) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "POLL_INTERVAL": 0.5}
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        before = eventually(backend_of_the_watch)
        cut(before)

        def another() -> bool:
            watch = waiting._watches["default"]
            return isinstance(watch._ear, waiting.EndsWakeup) and backend_of_the_watch() != before

        eventually(another)
        settings.JOBQUEUE = {**settings.JOBQUEUE, "POLL_INTERVAL": 3_600}
        ENDINGS["complete"](job)
        assert waiter.result(PATIENCE).status == DONE


@pytest.mark.postgresql
def test_a_job_that_ends_while_nobody_listens_is_seen_when_the_connection_is_back(settings: Settings) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "POLL_INTERVAL": 1.0}
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        cut(eventually(backend_of_the_watch))
        ENDINGS["complete"](job)
        assert waiter.result(PATIENCE).status == DONE


@pytest.mark.postgresql
@pytest.mark.parametrize("listen", [True, False], ids=["deaf", "LISTEN off"])
def test_who_hears_nothing_sees_it_by_the_slow_poll(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, listen: bool
) -> None:
    """As behind a pooler in transaction mode, which takes LISTEN and hands on no word."""
    settings.JOBQUEUE = {**settings.JOBQUEUE, "POLL_INTERVAL": 0.3, "LISTEN": listen}
    monkeypatch.setattr("django_jobqueue.databases.waking._notify_ended", lambda alias, payload: None)
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        ENDINGS["complete"](job)
        assert waiter.result(PATIENCE).status == DONE


@pytest.mark.postgresql
def test_a_direct_address_is_listened_to(settings: Settings, postgres_cluster: Cluster) -> None:
    dsn = postgres_cluster.url(str(connection.settings_dict["NAME"]))
    settings.JOBQUEUE = {**settings.JOBQUEUE, "LISTEN_DSN": dsn}
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        eventually(lambda: waiting._watches["default"]._ear and backend_of_the_watch())
        ENDINGS["complete"](job)
        assert waiter.result(PATIENCE).status == DONE


@pytest.mark.postgresql
def test_an_address_that_cannot_be_listened_to_leaves_the_slow_poll(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "LISTEN_DSN": "host=/nowhere", "POLL_INTERVAL": 0.2}
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        ENDINGS["complete"](job)
        assert waiter.result(PATIENCE).status == DONE
    assert caplog.text.count("Cannot LISTEN for the ends of jobs") == 1


@pytest.mark.postgresql
def test_a_mark_waits_for_no_lock() -> None:
    job = enqueue()
    with transaction.atomic():
        list(selected(job).select_for_update())
        with in_thread(expect, WaitTimeout, wait, job, 0.2) as waiter:
            waiter.result(PATIENCE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_begins_with_no_watch_of_its_parents() -> None:
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        read, write_end = os.pipe()
        if (child := os.fork()) == 0:
            os.write(write_end, str(len(waiting._watches)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 10) == b"0"
        os.close(read)
        os.close(write_end)
        ENDINGS["complete"](job)
        assert waiter.result(PATIENCE).status == DONE


# SQLite


@pytest.mark.sqlite
def test_no_row_is_written_by_waiting() -> None:
    job = enqueue()
    with pytest.raises(WaitTimeout):
        wait(job, 0.1)
    assert stored(job).awaited is False


@pytest.mark.sqlite
def test_a_writer_outside_of_django_wakes_too() -> None:
    job = enqueue()
    with in_thread(wait, job, PATIENCE) as waiter:
        until_watched()
        bare = sqlite3.connect(str(connections["default"].settings_dict["NAME"]), timeout=PATIENCE)
        with bare:
            bare.execute(
                "UPDATE django_jobqueue_job SET status = 5, finished_at = updated_at WHERE id = ?",
                [job.id.hex],
            )
        bare.close()
        assert waiter.result(PATIENCE).status == CANCELLED
