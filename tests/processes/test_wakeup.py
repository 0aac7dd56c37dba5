"""A new job starts at once, however seldom the worker looks by itself."""

from collections.abc import Callable
from time import monotonic

import pytest
from django.db import connection

from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DONE, status, touches
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
