"""SIGTERM and SIGINT: at any instant no job and no attempt is lost, and nobody waits longer than needed."""

import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from django_jobqueue.models import Job
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DONE, PENDING, row, sleeps, standing, status, touches, wait_for, waits
from tests.processes.prefetch import prefetched
from tests.processes.workers import RunWorker
from tests.waiting import equals, eventually

pytestmark = pytest.mark.usefixtures("quiet_server")

FORCED = 3


def test_an_idle_worker_leaves_within_two_seconds_whatever_its_poll_interval(
    start_worker: Callable[..., RunWorker],
) -> None:
    worker = start_worker("--poll-interval", "60", "--processes", "2").ready(2)
    [job] = touches(1)
    equals(DONE, lambda: status(job))

    asked = monotonic()
    assert worker.stop() == 0
    assert monotonic() - asked < 2
    equals([], worker.members, within=5)
    assert worker.trouble == []


def test_a_running_job_ends_within_the_grace(start_worker: Callable[..., RunWorker], ledger: Ledger) -> None:
    worker = start_worker("--grace", "10").ready()
    job = sleeps(3)
    eventually(ledger.starts)

    assert worker.stop() == 0

    assert [run.ended for run in ledger.runs(job)] == [True]
    assert (status(job), row(job)["attempts"]) == (DONE, 1)
    assert worker.trouble == []


@pytest.mark.parametrize("job_type", ["tests:wait", "tests:async_wait"])
def test_a_job_that_outlasts_the_grace_is_given_back_with_its_attempt(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path, job_type: str
) -> None:
    worker = start_worker("--grace", "1").ready()
    job = wait_for(gate, job_type=job_type)
    eventually(ledger.starts)

    asked = monotonic()
    assert worker.stop() == 0
    assert 1 <= monotonic() - asked < 5
    assert (status(job), row(job)["attempts"], row(job)["crashes"]) == (PENDING, 0, 0)
    equals([], worker.members, within=5)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_cuts_running_jobs_off_and_gives_them_back(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path, second: int
) -> None:
    worker = start_worker("--grace", "60").ready()
    jobs = waits(3, gate)
    equals(3, ledger.starts)

    worker.send(signal.SIGINT if second == signal.SIGTERM else signal.SIGTERM)
    worker.says("Stopping")
    asked = monotonic()
    worker.send(second)

    assert worker.wait() == FORCED
    assert monotonic() - asked < 4
    assert [(status(job), row(job)["attempts"]) for job in jobs] == [(PENDING, 0)] * 3
    equals([], worker.members, within=5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_group_stops_as_gracefully(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path, number: int
) -> None:
    worker = start_worker("--grace", "20", "--processes", "2").ready(2)
    jobs = waits(4, gate)
    equals(4, ledger.starts)

    worker.send_group(number)
    worker.says("Stopping")
    gate.touch()

    assert worker.wait() == 0
    assert [(status(job), row(job)["attempts"]) for job in jobs] == [(DONE, 1)] * 4
    assert worker.trouble == []


MOMENTS: dict[str, Callable[[RunWorker], object]] = {
    "at once": lambda worker: True,
    "the banner is there": lambda worker: worker.banner,
    "the supervisor has started something": lambda worker: len(worker.members()) > 1,
    "all its processes are there, still silent": lambda worker: len(worker.members()) > 3,
    "one of them is a worker": lambda worker: worker.worker_ids,
    "both are": lambda worker: len(worker.worker_ids) == 2,
}


def test_a_signal_at_any_moment_of_the_start_ends_it_and_loses_nothing(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    jobs = touches(20)
    codes = {}
    for name, reached in MOMENTS.items():
        worker = start_worker("--processes", "2")
        eventually(lambda worker=worker, reached=reached: reached(worker), every=0.002)
        worker.send(signal.SIGTERM)
        codes[name] = worker.wait(10)
        equals([], worker.members, within=5)

    # Before Python has reached the worker's first line, the signal ends it as any process.
    assert codes == dict.fromkeys(MOMENTS, 0) | {"at once": -signal.SIGTERM}
    assert set(standing()) <= {PENDING, DONE}
    assert all(row(job)["attempts"] == (status(job) == DONE) for job in jobs)
    assert ledger.starts() == ledger.ends() == standing().get(DONE, 0)


def test_leases_are_renewed_until_the_last_job_has_ended(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    options = ("--lease", "2", "--grace", "30")
    worker = start_worker(*options).ready()
    job = sleeps(6)
    eventually(ledger.starts)
    other = start_worker(*options)

    assert worker.stop() == 0

    assert [run.ended for run in ledger.runs(job)] == [True]
    assert (status(job), row(job)["attempts"], row(job)["fence"]) == (DONE, 1, 1)
    assert other.ready().stop() == 0


def test_jobs_that_have_not_started_are_free_for_others_at_once(
    start_worker: Callable[..., RunWorker], ledger: Ledger, tmp_path: Path
) -> None:
    worker = start_worker("--threads", "1", "--grace", "30").ready()
    held = prefetched(ledger, tmp_path, 10)

    worker.send(signal.SIGTERM)

    equals({"tests:touch": PENDING}, lambda: {row(job)["job_type"]: status(job) for job in held.others})
    assert [row(job)["attempts"] for job in held] == [1] + [0] * 10
    assert worker.process.poll() is None
    held.gate.touch()
    assert worker.wait() == 0
    assert status(held.first) == DONE


def test_the_word_to_stop_reaches_a_process_whose_handler_holds_the_interpreter(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    worker = start_worker("--grace", "1").ready()
    job = Job.objects.enqueue("tests:gil", {"seconds": 60})
    eventually(ledger.starts)

    asked = monotonic()
    assert worker.stop() == 0
    assert monotonic() - asked < 5
    assert (status(job), row(job)["attempts"]) == (PENDING, 0)
    equals([], worker.members, within=5)
