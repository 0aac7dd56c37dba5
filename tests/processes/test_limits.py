"""Handlers that do not end when they are interrupted: their process does, and nobody else is hurt."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from django_jobqueue.models import Job
from tests import waiting
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import CANCELLED, DEAD, DONE, RUNNING, errors, row, status, touches, wait_for, waits
from tests.processes.workers import RunWorker

Start = Callable[..., RunWorker]

#: Processes are started anew here, which takes its time on a busy machine.
equals = partial(waiting.equals, within=90)

pytestmark = pytest.mark.usefixtures("quiet_server")

TIMEOUT = "django_jobqueue.exceptions.JobTimeout"


@pytest.mark.parametrize("job_type", ["tests:deaf", "tests:async_deaf"])
def test_a_process_with_a_deaf_handler_is_replaced_and_its_other_jobs_lose_no_attempt(
    start_worker: Start, ledger: Ledger, gate: Path, job_type: str
) -> None:
    deaf = Job.objects.enqueue(job_type, {"gate": str(gate)}, timeout=1, max_attempts=1)
    neighbours = waits(2, gate, max_attempts=1)
    worker = start_worker("--interrupt-grace", "0.5", "--grace", "1")

    equals(DEAD, lambda: status(deaf))
    assert errors(deaf) == [TIMEOUT]
    equals([2, 2], lambda: [len(ledger.runs(job)) for job in neighbours])
    gate.touch()
    equals([DONE, DONE], lambda: [status(job) for job in neighbours])
    assert [row(job)["attempts"] for job in neighbours] == [1, 1]
    assert worker.exit_codes.popitem()[1] == 13
    assert worker.stop() == 0


def test_neighbours_that_end_within_the_grace_run_once_and_the_next_process_does_not_wait(
    start_worker: Start, ledger: Ledger, gate: Path, tmp_path: Path
) -> None:
    deaf = Job.objects.enqueue("tests:deaf", {"gate": str(tmp_path / "never")}, timeout=1, max_attempts=1)
    neighbour = wait_for(gate, max_attempts=1)
    worker = start_worker("--interrupt-grace", "0.5", "--grace", "60")
    equals(2, lambda: len(worker.worker_ids))

    [new] = touches(1)
    equals(DONE, lambda: status(new))
    gate.touch()
    equals(DONE, lambda: status(neighbour))
    equals(DEAD, lambda: status(deaf))
    assert len(ledger.runs(neighbour)) == 1
    assert worker.stop() == 0


def test_a_handler_that_holds_the_interpreter_past_its_time_is_ended_by_the_supervisor(
    start_worker: Start, ledger: Ledger, gate: Path
) -> None:
    neighbour = wait_for(gate, max_attempts=1, priority=1)
    worker = start_worker("--interrupt-grace", "0.5")
    equals(1, lambda: len(ledger.runs(neighbour)))  # it runs before nothing else in its process can
    job = Job.objects.enqueue("tests:gil", {"seconds": 60}, timeout=1, max_attempts=1)

    equals(DEAD, lambda: status(job))
    assert errors(job) == [TIMEOUT]
    equals(2, lambda: len(ledger.runs(neighbour)))
    gate.touch()
    equals(DONE, lambda: status(neighbour))
    assert row(neighbour)["attempts"] == 1
    assert worker.stop() == 0


@pytest.mark.parametrize("job_type", ["tests:deaf", "tests:gil"])
def test_cancel_ends_a_running_job_whatever_it_does(
    start_worker: Start, ledger: Ledger, gate: Path, job_type: str
) -> None:
    payload = {"gate": str(gate)} if job_type == "tests:deaf" else {"seconds": 60}
    job = Job.objects.enqueue(job_type, payload)
    worker = start_worker("--interrupt-grace", "0.5", "--lease", "4")
    equals(RUNNING, lambda: status(job))
    equals(1, lambda: len(ledger.runs(job)))

    Job.objects.filter(pk=job.pk).cancel()

    equals(CANCELLED, lambda: status(job))
    assert worker.stop() == 0
