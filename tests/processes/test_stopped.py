"""SIGSTOP: a process that stands still loses its jobs, and when it goes on it writes nothing about them."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue.models import Job
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DONE, RUNNING, row, status, touches, wait_for
from tests.processes.prefetch import prefetched
from tests.processes.workers import RunWorker
from tests.waiting import equals, eventually

pytestmark = pytest.mark.usefixtures("quiet_server")

LEASE = 2.0


def test_the_late_worker_writes_nothing_and_starts_nothing_that_it_lost(
    start_worker: Callable[..., RunWorker], ledger: Ledger, tmp_path: Path
) -> None:
    late = start_worker("--threads", "1", "--lease", str(LEASE)).ready()
    held = prefetched(ledger, tmp_path, 10)
    late.stand_still()
    assert held.standing() == {RUNNING: 11}

    other = start_worker("--threads", "1", "--lease", str(LEASE), "--exclude-queues", "late").ready()
    equals(2, lambda: len(ledger.runs(held.first)))
    held.gate.touch()
    equals({DONE: 11}, held.standing)
    before = [row(job) for job in held]

    late.send_group(signal.SIGCONT)
    [its_own] = touches(1, queue="late")
    equals(DONE, lambda: status(its_own))
    late.says(f"Job {held.first.pk} (tests:wait): this worker no longer holds it")

    assert [row(job) for job in held] == before
    assert row(held.first)["result"] in other.worker_ids
    assert [len(ledger.runs(job)) for job in held] == [2] + [1] * 10
    assert {run.pid for job in held.others for run in ledger.runs(job)} == set(other.worker_ids)
    assert [late.stop(), other.stop()] == [0, 0]


def test_the_late_worker_cannot_end_a_job_that_another_is_running(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path
) -> None:
    late = start_worker("--lease", str(LEASE)).ready()
    job = Job.objects.enqueue("tests:wait_own", {"gate": str(gate)})
    [first] = eventually(ledger.runs)
    late.stand_still()
    other = start_worker("--lease", str(LEASE)).ready()
    equals(2, lambda: len(ledger.runs()))
    second = ledger.runs()[1]
    held = row(job)

    Path(f"{gate}-{first.pid}").touch()
    late.send_group(signal.SIGCONT)
    late.says(f"Job {job.pk} (tests:wait_own): this worker no longer holds it")
    assert (status(job), row(job)["worker_id"], row(job)["fence"]) == (
        RUNNING,
        other.worker_ids[second.pid],
        held["fence"],
    )
    Path(f"{gate}-{second.pid}").touch()

    equals(DONE, lambda: status(job))
    assert row(job)["result"] == second.pid
    assert [late.stop(), other.stop()] == [0, 0]


def test_a_process_that_was_stopped_alone_loses_its_lease_although_its_supervisor_lives(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path
) -> None:
    worker = start_worker("--processes", "2", "--threads", "1", "--lease", str(LEASE)).ready(2)
    job = wait_for(gate)
    [first] = eventually(ledger.runs)

    worker.stand_still(first.pid)
    equals(2, lambda: len(ledger.runs()))
    gate.touch()
    equals(DONE, lambda: status(job))
    before = row(job)
    os.kill(first.pid, signal.SIGCONT)
    worker.says("no longer holds it")

    assert row(job) == before
    assert before["result"] == ledger.runs()[1].pid != first.pid
    assert worker.stop() == 0
