"""A new job starts at once, however seldom the worker looks by itself."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import monotonic

import pytest
from django.db import connection

from django_jobqueue.models import Worker as WorkerRow
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DONE, RUNNING, status, touches, waits
from tests.processes.sessions import are_idle, terminate
from tests.processes.workers import RunWorker
from tests.waiting import equals, eventually, outlast

#: A worker that finds a job sooner was told of it.
SELDOM = ("--poll-interval", "30", "--processes", "2")


def test_a_new_job_starts_within_a_second_of_its_commit(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    worker = start_worker(*SELDOM).ready(2)
    for _ in range(3):
        let_it_become_idle()
        assert seconds_to_start(ledger) < 1
    assert worker.stop() == 0
    assert worker.trouble == []


def test_a_job_of_a_queue_that_the_worker_serves_wakes_it(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    worker = start_worker(*SELDOM, "--queues", "a,b").ready(2)
    let_it_become_idle()
    assert seconds_to_start(ledger, queue="b") < 1
    assert worker.stop() == 0


@pytest.mark.postgresql
def test_listening_goes_on_after_the_connection_was_lost(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    worker = start_worker(*SELDOM).ready(2)
    for _ in range(2):
        let_it_become_idle()
        assert terminate() >= 2
        # Between the loss and the new LISTEN: found by the look that follows it.
        assert seconds_to_start(ledger) < 3
        let_it_become_idle()
        assert seconds_to_start(ledger) < 1
    assert worker.stop() == 0
    assert len(worker.worker_ids) == 2


@pytest.mark.postgresql
def test_without_listen_jobs_are_found_by_polling(
    start_worker: Callable[..., RunWorker], ledger: Ledger, settings_module: Callable[[str], dict[str, str]]
) -> None:
    worker = start_worker("--poll-interval", "0.2", **settings_module('JOBQUEUE = {"LISTEN": False}')).ready()
    outlast(0.5)
    assert seconds_to_start(ledger) < 1
    assert worker.stop() == 0
    assert worker.trouble == []


#: They know of each other within a second.
FIVE = ("--poll-interval", "30", "--processes", "5", "--lease", "2", "--threads", "1")


def ranked(count: int) -> bool:
    """Whether a beat has passed since so many are there, so that each knows its rank."""
    beats = [one["last_beat"] - one["started_at"] for one in WorkerRow.objects.values()]
    return len(beats) == count and min(beats) > timedelta(seconds=1.5)


@pytest.mark.postgresql
def test_each_of_many_jobs_starts_soon_though_few_workers_are_woken(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    worker = start_worker(*FIVE).ready(5)
    eventually(lambda: ranked(5))
    for _ in range(30):
        assert seconds_to_start(ledger) < 1
    assert worker.stop() == 0


@pytest.mark.postgresql
def test_a_job_whose_turn_falls_to_a_stopped_or_full_worker_starts_within_a_second(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path
) -> None:
    worker = start_worker(*FIVE).ready(5)
    eventually(lambda: ranked(5))
    busy = waits(2, gate)
    equals(2, lambda: len([job for job in busy if ledger.runs(job)]))
    held = {ledger.runs(job)[0].pid for job in busy}
    stopped = [pid for pid in worker.children if pid not in held][:2]
    worker.stand_still(*stopped)
    try:
        for _ in range(15):
            assert seconds_to_start(ledger) < 1
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        gate.touch()
    assert worker.stop() == 0


@pytest.mark.postgresql
def test_many_jobs_at_once_are_the_business_of_all_workers(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path
) -> None:
    worker = start_worker(*FIVE).ready(5)
    eventually(lambda: ranked(5))
    jobs = waits(5, gate)
    equals([RUNNING] * 5, lambda: [status(job) for job in jobs], within=5)
    gate.touch()
    assert worker.stop() == 0


@pytest.mark.parametrize("seconds", [0.5, 2.5])
def test_a_job_for_later_starts_at_its_time(
    start_worker: Callable[..., RunWorker], ledger: Ledger, seconds: float
) -> None:
    worker = start_worker(*SELDOM).ready(2)
    let_it_become_idle()
    begun = monotonic()
    [job] = touches(1, run_after=timedelta(seconds=seconds))
    equals(DONE, lambda: status(job))
    assert seconds - 0.1 <= ledger.runs(job)[0].start - begun < seconds + 1
    assert worker.stop() == 0


def let_it_become_idle() -> None:
    """Until the workers look no more by themselves."""
    if connection.vendor == "postgresql":
        eventually(are_idle)
    else:
        outlast(0.5)


def seconds_to_start(ledger: Ledger, **options: str) -> float:
    begun = monotonic()
    [job] = touches(1, **options)
    equals(DONE, lambda: status(job))
    return ledger.runs(job)[0].start - begun
