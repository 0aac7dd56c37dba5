"""What people ask of running workers: to stop, to leave a queue alone, to say how they are."""

from collections.abc import Callable
from pathlib import Path

from django_jobqueue.models import Job, Queue, Statistic, Worker
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DONE, PENDING, RUNNING, status, touches, wait_for
from tests.processes.workers import RunWorker
from tests.waiting import equals, eventually, outlast


def test_a_worker_that_is_asked_ends_when_its_job_has_and_runworker_with_the_last_one(
    start_worker: Callable[..., RunWorker], ledger: Ledger, gate: Path
) -> None:
    worker = start_worker("--processes", "2", "--threads", "1", "--lease", "2").ready(2)
    equals(2, Worker.objects.count)
    job = wait_for(gate)
    [run] = eventually(ledger.runs)
    busy = worker.worker_ids[run.pid]
    [other] = set(worker.worker_ids.values()) - {busy}

    assert Worker.objects.ask_to_stop(other)
    equals([run.pid], lambda: worker.children)
    assert Worker.objects.ask_to_stop(busy)
    equals(2, lambda: worker.log.count("was asked to stop: it ends when its jobs have"))
    assert worker.children == [run.pid]
    gate.touch()

    assert worker.wait() == 0
    assert status(job) is DONE
    assert len(worker.worker_ids) == 2
    assert not Worker.objects.exists()
    assert set(worker.exit_codes.values()) == {0}


def test_a_paused_queue_is_held_within_two_seconds_by_a_worker_that_is_busy_with_it(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    Job.objects.enqueue_many([("tests:sleep", {"seconds": 0.02})] * 2_000)
    worker = start_worker("--threads", "4").ready()
    eventually(lambda: len(ledger.runs()) > 50)
    Queue.objects.pause("default")
    outlast(2.0)
    started = len(ledger.runs())
    outlast(1.0)

    assert len(ledger.runs()) == started
    assert Job.objects.counts()[PENDING] > 500
    assert Job.objects.counts()[RUNNING] == 0
    Queue.objects.resume("default")
    eventually(lambda: len(ledger.runs()) > started)
    assert worker.stop() == 0


def test_figures_of_all_processes_are_in_the_rows_of_the_queue(
    start_worker: Callable[..., RunWorker],
) -> None:
    touches(100)
    worker = start_worker("--processes", "2", "--drain")
    assert worker.wait() == 0
    rows = Statistic.objects.filter(span=3_600)
    assert sum(row.done for row in rows) == 100
    assert sum(sum(row.waits) for row in rows) == 100
    assert not Job.objects.filter(status=PENDING).exists()


def test_a_worker_is_seen_at_once_and_tells_when_its_loop_has_to_come_round(
    start_worker: Callable[..., RunWorker],
) -> None:
    worker = start_worker("--exclude-queues", "slow").ready()
    row = eventually(Worker.objects.first, within=5)
    assert row is not None
    assert (row.exclude_queues, row.stop_requested_at) == (["slow"], None)
    assert worker.stop() == 0
