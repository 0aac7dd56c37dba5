"""What receivers hear from a worker, where they run, and that a broken one breaks nothing."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connections, transaction

from django_jobqueue import signals
from django_jobqueue.models import Job
from django_jobqueue.worker import Worker
from tests.jobsapp.ledger import Ledger
from tests.waiting import equals, eventually
from tests.worker.handlers import DEAD, DONE, PENDING, Handlers, status, touches

Start = Callable[..., Worker]
NAMES = ("job_started", "job_finished", "job_retried", "job_reaped")


class Heard(list[tuple[str, dict[str, Any]]]):
    def of(self, name: str) -> list[dict[str, Any]]:
        return [facts for one, facts in self if one == name]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Everything that receivers of every signal are told."""
    heard = Heard()

    def listen(name: str) -> Callable[..., None]:
        def receiver(sender: Any, signal: Any, **facts: Any) -> None:
            Group.objects.count()
            wrapper = connections["default"]
            heard.append((name, {**facts, "thread": threading.current_thread().name, "on": wrapper}))

        return receiver

    receivers = {name: listen(name) for name in NAMES}
    for name, receiver in receivers.items():
        getattr(signals, name).connect(receiver)
    yield heard
    for name, receiver in receivers.items():
        getattr(signals, name).disconnect(receiver)


def test_started_and_finished_are_heard_of_a_job_that_is_done(
    start_worker: Start, heard: Heard, ledger: Ledger
) -> None:
    start_worker()
    [job] = touches(1)
    equals(1, lambda: len(heard.of("job_finished")))
    assert [name for name, _ in heard] == ["job_started", "job_finished"]
    [finished] = heard.of("job_finished")
    assert (finished["job"].id, finished["status"], finished["error"]) == (job.pk, DONE, "")


def test_retried_and_finished_are_heard_of_a_job_that_fails(
    start_worker: Start, heard: Heard, handlers: Handlers
) -> None:
    def fails() -> None:
        raise ValueError("no")

    start_worker()
    job = Job.objects.enqueue(handlers.add(fails, retry=lambda exception, job: 0.1), max_attempts=2)
    equals(1, lambda: len(heard.of("job_finished")))
    assert [name for name, _ in heard] == ["job_started", "job_retried", "job_started", "job_finished"]
    [retried], [finished] = heard.of("job_retried"), heard.of("job_finished")
    assert retried["error"] == "ValueError: no"
    assert retried["run_after"] is not None
    assert (finished["status"], finished["error"]) == (DEAD, "ValueError: no")
    assert status(job) == DEAD


def test_reaped_is_heard_of_a_job_that_was_taken_back(
    start_worker: Start, heard: Heard, ledger: Ledger
) -> None:
    [job] = touches(1)
    [held] = Job.objects.claim(worker_id="gone", lease=1)
    Job.objects.filter(pk=job.pk).update(lease_until="2020-01-01T00:00:00Z")
    start_worker(lease=1)
    equals(DONE, lambda: status(job))
    equals(1, lambda: len(heard.of("job_finished")))
    [reaped] = heard.of("job_reaped")
    assert (reaped["job"].id, reaped["status"], reaped["worker_id"]) == (held.pk, PENDING, "gone")


def test_receivers_of_outcomes_do_not_run_where_outcomes_are_written(
    start_worker: Start, heard: Heard, ledger: Ledger
) -> None:
    worker = start_worker()
    touches(30)
    equals(30, lambda: len(heard.of("job_finished")))
    assert {facts["thread"] for facts in heard.of("job_finished")} == {"jobqueue-signals"}
    assert not {facts["thread"] for _, facts in heard} & {"jobqueue-settler", "jobqueue-poller"}
    assert not worker.died.is_set()


def test_a_receiver_that_hangs_or_leaves_a_transaction_open_holds_up_no_outcome(
    start_worker: Start, ledger: Ledger
) -> None:
    release = threading.Event()

    def hangs(sender: Any, **facts: Any) -> None:
        transaction.set_autocommit(False)
        Group.objects.exists()
        release.wait(30)
        transaction.rollback()
        transaction.set_autocommit(True)

    signals.job_finished.connect(hangs)
    try:
        start_worker()
        jobs = touches(50)
        equals([DONE] * 50, lambda: [status(job) for job in jobs], within=10)
    finally:
        release.set()
        signals.job_finished.disconnect(hangs)


@pytest.mark.parametrize("error", [RuntimeError("broken"), SystemExit(1), KeyboardInterrupt()])
def test_a_receiver_that_raises_is_logged_with_the_job_and_breaks_nothing(
    start_worker: Start, ledger: Ledger, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def broken(sender: Any, **facts: Any) -> None:
        raise error

    for name in NAMES:
        getattr(signals, name).connect(broken)
    try:
        worker = start_worker()
        jobs = touches(5)
        equals([DONE] * 5, lambda: [status(job) for job in jobs])
        eventually(lambda: caplog.text.count("failed for job") >= 10)
        assert str(jobs[0].pk) in caplog.text
        assert not worker.died.is_set()
    finally:
        for name in NAMES:
            getattr(signals, name).disconnect(broken)
