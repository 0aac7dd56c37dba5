"""Jobs run here and now: those that are due, or each as soon as it is enqueued."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.test import TestCase

from .. import signals
from ..attempts import Attempt
from ..databases.claiming import ClaimRequest
from ..exceptions import JobControl
from ..execution import execute_here
from ..managers.outcomes import Failed, Released, UnknownHere
from ..models import Job, Queue
from ..states import JobStatus

#: Attempts that one call makes at the most, unless it is told otherwise.
MOST = 1_000


def run_jobs(
    *,
    queues: Sequence[str] | None = None,
    scheduled: bool = False,
    keep_failures: bool = False,
    most: int = MOST,
) -> list[Job]:
    """Run all jobs that are due, also those that they enqueue, one after another; the jobs as they are then.

    They run in this thread on this thread's connections, which are neither closed nor committed: inside a
    ``TestCase`` too. What a handler registers by ``on_commit`` runs after it. A job that is attempted twice
    is in the list twice.

    ``queues``: only these (None: all that are not paused). ``scheduled``: those for a later time as well,
    retries included, in the order of their times. ``keep_failures``: failures stay on their jobs, as in
    production; else the first one is raised, after it was recorded. ``most``: attempts, after which there
    must be nothing left to do, or it is an ``AssertionError``.
    """
    run = _Run(queues, scheduled)
    while (attempt := run.next_attempt()) is not None:
        if len(run.ended) >= most:
            run.give_back(attempt)
            raise _endless("run_jobs()", most, attempt, "raise most")
        failure = run.make(attempt)
        if failure is not None and not keep_failures:
            raise failure
    return run.ended


async def arun_jobs(**options: Any) -> list[Job]:
    """``run_jobs`` for async tests."""
    return await sync_to_async(run_jobs)(**options)


@contextlib.contextmanager
def immediate(*, keep_failures: bool = False) -> Iterator[list[Job]]:
    """Within the block, jobs run as soon as they are enqueued, or when the transaction around is committed.

    The transaction that ``TestCase`` puts around a test does not count. In one that the code under test
    opens inside it, wrap the call in ``captureOnCommitCallbacks(execute=True)``. Jobs for a later time stay.
    Gives a list that fills with the jobs that have run. At the end of the block the first failure is
    raised, unless ``keep_failures``. An ``AssertionError`` is raised in any case if one enqueue led to more
    than 1,000 attempts.
    """
    runner = _Immediately()
    signals.job_enqueued.connect(runner.receive, sender=Job)
    try:
        yield runner.ended
    finally:
        signals.job_enqueued.disconnect(runner.receive, sender=Job)
    if runner.endless is not None:
        raise runner.endless
    if runner.failure is not None and not keep_failures:
        raise runner.failure


def _endless(what: str, most: int, attempt: Attempt, remedy: str) -> AssertionError:
    return AssertionError(
        f"{what} made {most} attempts, and job {attempt.job.id} ({attempt.job.job_type}) is next. Do jobs "
        f"enqueue each other for ever? If not, {remedy}."
    )


class _Run:
    """Claims, runs and settles, as a worker does, one job at a time."""

    def __init__(self, queues: Sequence[str] | None, scheduled: bool) -> None:
        self.ended: list[Job] = []
        self._worker_id = f"run_jobs-{uuid.uuid4().hex}"
        self._queues = queues
        self._scheduled = scheduled
        self._unknown: list[str] = []  # types that nobody here can run
        self._brought_forward: set[uuid.UUID] = set()

    def next_attempt(self) -> Attempt | None:
        """The next job, claimed."""
        attempt = self._claim()
        while attempt is None and self._scheduled and self._make_next_due():
            attempt = self._claim()
        return attempt

    def make(self, attempt: Attempt) -> BaseException | None:
        """Run it and write its outcome; what it raised, unless that says what should become of the job."""
        alias = Job.objects.db
        self._brought_forward.discard(attempt.job.id)
        with contextlib.ExitStack() as stack:
            for connection in connections.all(initialized_only=True):
                if connection.in_atomic_block:
                    stack.enter_context(
                        TestCase.captureOnCommitCallbacks(using=connection.alias, execute=True)
                    )
                    stack.enter_context(_still_usable(connection))
            outcome, raised = execute_here(attempt, alias)
        if outcome is not None:
            Job.objects.settle(self._worker_id, [outcome])
        if isinstance(outcome, UnknownHere):
            self._unknown.append(attempt.job.job_type)
            return None
        self.ended.append(Job.objects.get(pk=attempt.job.id))
        if isinstance(raised, JobControl):
            return None
        if raised is None and isinstance(outcome, Failed):  # the database refused an atomic handler's work
            return AssertionError(
                f"Job {attempt.job.id} ({attempt.job.job_type}) failed: {outcome.failure.text}"
            )
        return raised

    def give_back(self, attempt: Attempt) -> None:
        """It is not run after all."""
        Job.objects.settle(self._worker_id, [Released(attempt.job)])

    def _claim(self) -> Attempt | None:
        request = ClaimRequest(
            worker_id=self._worker_id, limit=1, lease=3_600, queues=self._queues, exclude_types=self._unknown
        )
        began = time.monotonic()
        for job in Job.objects.claim_for_worker(request):
            attempt = Attempt(job, self._worker_id, began)
            attempt.started = time.monotonic()
            return attempt
        return None

    def _make_next_due(self) -> bool:
        """Whether a job of a later time is due now."""
        paused = Queue.objects.filter(paused=True).values("name")
        later = Job.objects.filter(status=JobStatus.PENDING).exclude(queue__in=paused)
        # Once until it runs is enough: what is not claimed then has another reason to wait.
        later = later.exclude(job_type__in=self._unknown).exclude(pk__in=self._brought_forward)
        if self._queues is not None:
            later = later.filter(queue__in=self._queues)
        job = later.order_by("run_after", "pk").values_list("pk", flat=True).first()
        if job is None:
            return False
        self._brought_forward.add(job)
        Job.objects.filter(pk=job).reschedule(timedelta(0))
        return True


@contextlib.contextmanager
def _still_usable(connection: Any) -> Iterator[None]:
    """A transaction that a handler broke is rolled back to where it was; else all that it wrote stays."""
    savepoint = connection.savepoint()
    callbacks = len(connection.run_on_commit)
    yield
    try:
        if not connection.needs_rollback:
            connection.savepoint_commit(savepoint)
            return
    except connection.Database.DatabaseError:
        pass  # the transaction is aborted: an error of the database was let through
    connection.needs_rollback = False
    connection.savepoint_rollback(savepoint)
    del connection.run_on_commit[callbacks:]


class _Immediately:
    """Runs what is due whenever a job was enqueued."""

    def __init__(self) -> None:
        self.ended: list[Job] = []
        self.failure: BaseException | None = None
        self.endless: AssertionError | None = None
        self._running = False

    def receive(self, **facts: Any) -> None:
        """A job was enqueued: run it now, or at the commit of the transaction around it."""
        alias = Job.objects.db
        blocks: Sequence[Any] = connections[alias].atomic_blocks
        if all(block._from_testcase for block in blocks):
            self._run()
        else:
            transaction.on_commit(self._run, using=alias)

    def _run(self) -> None:
        if self._running:
            return  # the run that is under way takes this one too
        self._running = True
        try:
            run = _Run(None, False)
            while (attempt := run.next_attempt()) is not None:
                if len(run.ended) >= MOST:
                    run.give_back(attempt)
                    self.endless = _endless("immediate()", MOST, attempt, "use run_jobs(most=…)")
                    break
                failure = run.make(attempt)
                self.failure = self.failure or failure
            self.ended += run.ended
        finally:
            self._running = False
