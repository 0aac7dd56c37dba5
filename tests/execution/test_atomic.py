"""@job(atomic=True): what the handler writes and its completion happen together or not at all."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, connection, transaction

from django_jobqueue import DeadJob, RetryJob, SnoozeJob
from django_jobqueue.models import Job
from tests.execution.runner import DEAD, DONE, PENDING, RUNNING, Runner, exceptions

OTHER = "another worker"


def writes() -> str:
    Group.objects.create(name="written")
    return "done"


def written() -> int:
    return Group.objects.count()


def test_the_writes_and_the_completion_are_there_together(runner: Runner) -> None:
    statuses = []

    def handler() -> str:
        Group.objects.create(name="written")
        statuses.append(runner_sees())
        return "done"

    def runner_sees() -> bool:
        return connection.in_atomic_block

    job = runner.run(handler, atomic=True)
    assert (job.status, job.result, job.attempts, written()) == (DONE, "done", 1, 1)
    assert statuses == [True]
    assert job.run_started_at is not None


def test_nothing_is_written_if_the_claim_was_lost_meanwhile(runner: Runner) -> None:
    job = Job.objects.enqueue(runner.handle(writes, atomic=True))
    attempt = runner.claim()
    # Its lease ran out, it was taken back, and another worker has it now.
    Job.objects.filter(pk=job.pk).update(lease_until="2020-01-01T00:00:00Z")
    assert Job.objects.reap() == 1
    [held] = Job.objects.claim(worker_id=OTHER)

    assert runner.execute(attempt) is None

    assert written() == 0
    job.refresh_from_db()
    assert (job.status, job.worker_id, job.fence, job.result) == (RUNNING, OTHER, held.fence, None)
    assert Job.objects.complete(held, "by the other")


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), RetryJob(5), IntegrityError("mine")])
def test_nothing_is_written_if_the_handler_fails_and_the_failure_is_recorded(
    runner: Runner, error: BaseException
) -> None:
    def handler() -> None:
        writes()
        raise error

    job = runner.run(handler, atomic=True)
    assert (job.status, job.attempts, len(job.errors), written()) == (PENDING, 1, 1, 0)


def test_a_snooze_or_a_dead_letter_rolls_back_too(runner: Runner) -> None:
    def snoozes() -> None:
        writes()
        raise SnoozeJob(5)

    def gives_up() -> None:
        writes()
        raise DeadJob("no")

    assert runner.run(snoozes, atomic=True).snoozes == 1
    assert runner.run(gives_up, atomic=True).status == DEAD
    assert written() == 0


def test_a_result_that_cannot_be_stored_rolls_back(runner: Runner) -> None:
    def handler() -> object:
        writes()
        return object()

    job = runner.run(handler, atomic=True)
    assert (job.status, written()) == (PENDING, 0)
    assert exceptions(job) == ["django_jobqueue.exceptions.InvalidResult"]


def test_a_constraint_that_fails_at_commit_is_a_failed_attempt(runner: Runner) -> None:
    def breaks_a_deferred_constraint() -> None:
        writes()
        Permission.objects.create(name="x", codename="x", content_type_id=2**31 - 1)

    job = runner.run(breaks_a_deferred_constraint, atomic=True)
    assert (job.status, job.attempts, written()) == (PENDING, 1, 0)
    assert exceptions(job) == ["django.db.utils.IntegrityError"]


def test_an_error_of_the_database_inside_the_handler_is_a_failed_attempt(runner: Runner) -> None:
    def handler() -> None:
        writes()
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")

    job = runner.run(handler, atomic=True)
    assert (job.status, job.attempts, written()) == (PENDING, 1, 0)
    assert runner.run(writes, atomic=True).status == DONE


def test_an_error_of_the_database_that_the_handler_swallowed_still_fails_the_attempt(runner: Runner) -> None:
    def handler() -> None:
        try:
            with transaction.atomic():
                Group.objects.create(name="twice")
                Group.objects.create(name="twice")
        except IntegrityError:
            writes()

    def swallows_without_savepoint() -> None:
        transaction.set_rollback(True)

    assert runner.run(handler, atomic=True).status == DONE
    assert written() == 1
    after = runner.run(swallows_without_savepoint, atomic=True)
    assert (after.status, after.attempts) == (PENDING, 1)


def test_a_job_enqueued_by_the_handler_exists_only_if_it_completes(runner: Runner) -> None:
    follow_up = runner.handle(lambda: None)

    def enqueues(fails: bool) -> None:
        Job.objects.enqueue(follow_up, queue="follow-up")
        if fails:
            raise ValueError

    runner.run(enqueues, {"fails": True}, atomic=True)
    assert not Job.objects.filter(job_type=follow_up).exists()


def test_a_job_enqueued_by_a_completed_handler_is_there(runner: Runner) -> None:
    follow_up = runner.handle(lambda: None)

    def enqueues() -> None:
        Job.objects.enqueue(follow_up, queue="follow-up")

    assert runner.run(enqueues, atomic=True).status == DONE
    assert Job.objects.filter(job_type=follow_up).count() == 1


def test_receivers_hear_of_it_after_the_commit_and_not_of_what_was_rolled_back(runner: Runner) -> None:
    from django_jobqueue.signals import job_finished

    heard: list[Any] = []

    def receiver(sender: Any, job: Any, status: Any, **facts: Any) -> None:
        heard.append((job.id, status, connection.in_atomic_block))

    job_finished.connect(receiver)
    try:
        done = runner.run(writes, atomic=True)
        runner.run(lambda: 1 / 0, atomic=True)
    finally:
        job_finished.disconnect(receiver)
    assert heard == [(done.pk, DONE, False)]
