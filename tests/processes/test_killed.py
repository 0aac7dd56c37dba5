"""SIGKILL: nothing is lost, nothing runs twice at once, and nobody pays for what a neighbour did."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from django_jobqueue.models import Job
from tests.jobsapp.ledger import Ledger, overlaps
from tests.processes.jobs import DEAD, DONE, errors, ids, row, standing, waits
from tests.processes.prefetch import prefetched
from tests.processes.workers import RunWorker, is_alive
from tests.waiting import equals, eventually

pytestmark = pytest.mark.usefixtures("quiet_server")

LEASE = 2.0
#: Longest time until a job of a killed worker starts elsewhere: lease, heartbeat and sweep (a quarter of the
#: lease each), and some more for a busy machine.
TAKEN_OVER = LEASE * 1.5 + 5
WORKER_LOST = "django_jobqueue.exceptions.WorkerLost"


def test_jobs_of_a_killed_process_are_done_by_others_and_never_twice_at_once(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path
) -> None:
    jobs = waits(50, gate)
    worker = start_worker("--processes", "2", "--threads", "25", "--lease", str(LEASE)).ready(2)
    equals(50, ledger.starts)
    victim = worker.children[0]
    its_jobs = {run.job for run in ledger.runs() if run.pid == victim}

    killed = {victim: monotonic()}
    os.kill(victim, signal.SIGKILL)
    gate.touch()

    equals({DONE: 50}, standing)
    runs = ledger.runs()
    assert overlaps(runs, cut=killed) == []
    assert ledger.times_run() == {job: 2 if job in its_jobs else 1 for job in ids(jobs)}
    assert all(row(job)["crashes"] == (str(job.pk) in its_jobs) for job in jobs)
    assert len(its_jobs) == 25
    assert worker.stop() == 0


def test_jobs_of_a_killed_supervisor_are_done_by_another_within_lease_heartbeat_and_sweep(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path
) -> None:
    jobs = waits(10, gate)
    options = ("--threads", "12", "--lease", str(LEASE))
    doomed = start_worker(*options).ready()
    equals(10, ledger.starts)
    other = start_worker(*options).ready()
    [victim] = doomed.children

    killed = {victim: monotonic()}
    doomed.send_group(signal.SIGKILL)

    equals(20, ledger.starts)
    assert max(run.start for run in ledger.runs()) - killed[victim] < TAKEN_OVER
    gate.touch()
    equals({DONE: 10}, standing)
    runs = ledger.runs()
    assert overlaps(runs, cut=killed) == []
    assert ledger.times_run() == dict.fromkeys(ids(jobs), 2)
    assert other.stop() == 0


@pytest.mark.parametrize("job_type", ["tests:wait", "tests:gil"])
def test_the_processes_of_a_killed_supervisor_do_not_live_on(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path, job_type: str
) -> None:
    payloads = {"tests:wait": {"gate": str(gate)}, "tests:gil": {"seconds": 60}}
    worker = start_worker("--processes", "2").ready(2)
    Job.objects.enqueue(job_type, payloads[job_type])
    eventually(ledger.starts)
    children = worker.children

    worker.send(signal.SIGKILL)

    equals([], lambda: [pid for pid in children if is_alive(pid)], within=5)
    equals([], worker.members, within=5)


def test_neighbours_waiting_behind_a_job_that_killed_its_process_lose_nothing(
    start_worker: Callable[..., RunWorker], ledger: Ledger, tmp_path: Path
) -> None:
    worker = start_worker("--threads", "1", "--lease", str(LEASE)).ready()
    [victim] = worker.children
    held = prefetched(ledger, tmp_path, 99, max_attempts=1)

    os.kill(victim, signal.SIGKILL)

    equals({DONE: 99, DEAD: 1}, held.standing)
    assert errors(held.first) == [WORKER_LOST]
    assert [row(job)["attempts"] for job in held] == [1] * 100
    assert [row(job)["crashes"] for job in held] == [1] + [0] * 99
    assert victim not in {run.pid for job in held.others for run in ledger.runs(job)}
    assert worker.stop() == 0


def test_neighbours_lose_nothing_when_the_supervisor_was_killed_too(
    start_worker: Callable[..., RunWorker], ledger: Ledger, tmp_path: Path
) -> None:
    doomed = start_worker("--threads", "1", "--lease", str(LEASE)).ready()
    held = prefetched(ledger, tmp_path, 30, max_attempts=1)
    eventually(lambda: row(held.first)["run_started_at"], every=0.005)  # noted by a heartbeat

    doomed.send_group(signal.SIGKILL)
    other = start_worker("--threads", "1", "--lease", str(LEASE))

    equals({DONE: 30, DEAD: 1}, held.standing)
    assert errors(held.first) == [WORKER_LOST]
    assert [row(job)["attempts"] for job in held] == [1] * 31
    assert other.stop() == 0
