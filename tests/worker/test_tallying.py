"""What a worker counts of its jobs, and when it adds it to the figures of all."""

from collections.abc import Callable

import pytest
from django.db import DataError, OperationalError

from django_jobqueue.exceptions import DeadJob, SnoozeJob
from django_jobqueue.managers import Settlement, StatisticManager
from django_jobqueue.managers.outcomes import Done
from django_jobqueue.models import Job, JobStatus, Statistic
from django_jobqueue.worker import Worker
from django_jobqueue.worker.tallying import Tallying
from tests.moves.factories import ago, selected
from tests.waiting import equals
from tests.worker.handlers import Handlers

pytestmark = pytest.mark.django_db(transaction=True)

Start = Callable[..., Worker]


def minute(queue: str = "default") -> Statistic | None:
    """The sums of the spans of a minute: there may be two of them."""
    rows = list(Statistic.objects.filter(span=60, queue=queue))
    if not rows:
        return None
    first = rows[0]
    for row in rows[1:]:
        for name in ("done", "failed", "dead", "waited", "ran"):
            setattr(first, name, getattr(first, name) + getattr(row, name))
    return first


def ended() -> int:
    return Job.objects.filter(finished_at__isnull=False).count()


def test_what_ended_is_added_when_the_worker_stops(start_worker: Start, handlers: Handlers) -> None:
    def fail() -> None:
        raise DeadJob("no")

    quick = handlers.add(lambda: None)
    Job.objects.enqueue_many([(quick, {})] * 20)
    late = Job.objects.enqueue(quick, queue="mail")
    selected(late).update(run_after=ago(100))
    Job.objects.enqueue(handlers.add(fail), queue="mail")
    worker = start_worker()
    equals(22, ended)
    assert minute() is None
    assert worker.stop()
    row, mail = minute(), minute("mail")
    assert row is not None
    assert (row.done, row.failed, row.dead) == (20, 0, 0)
    assert mail is not None
    assert (mail.done, mail.failed, mail.dead) == (1, 1, 1)
    assert 100 <= mail.waited < 130
    assert 0 < mail.ran < 10


def test_what_is_put_off_or_given_back_is_not_counted(start_worker: Start, handlers: Handlers) -> None:
    def snooze() -> None:
        raise SnoozeJob(3_600)

    job = Job.objects.enqueue(handlers.add(snooze))
    worker = start_worker()
    equals(1, lambda: Job.objects.get(pk=job.pk).snoozes)
    assert worker.stop()
    assert minute() is None


def test_an_atomic_handler_and_an_async_one_count_as_well(start_worker: Start, handlers: Handlers) -> None:
    async def later() -> None:
        pass

    Job.objects.enqueue_many([(handlers.add(lambda: None, atomic=True), {}), (handlers.add(later), {})])
    worker = start_worker()
    equals(2, ended)
    assert worker.stop()
    row = minute()
    assert row is not None
    assert row.done == 2


def test_figures_are_added_while_the_worker_runs(
    start_worker: Start, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_jobqueue.worker.tallying.INTERVAL", 0.1)
    quick = handlers.add(lambda: None)
    Job.objects.enqueue(quick)
    start_worker()
    equals(1, lambda: getattr(minute(), "done", 0))
    Job.objects.enqueue(quick)
    equals(2, lambda: getattr(minute(), "done", 0))


def test_figures_that_the_database_did_not_take_are_kept_and_those_it_refuses_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tallying = Tallying("default")
    job = Job.objects.enqueue("tests:touch")
    [claimed] = Job.objects.claim_for_worker(_request())
    assert claimed.id == job.id
    attempt = _attempt(claimed)
    outcome = Done(claimed, 0.1)
    tallying.count([(attempt, outcome)], Settlement(accepted=[(outcome, JobStatus.DONE)]))

    def fails(error: Exception) -> None:
        def add(self: StatisticManager, tallies: object) -> None:
            raise error

        monkeypatch.setattr(StatisticManager, "add", add)

    with monkeypatch.context():
        fails(OperationalError("away"))
        with pytest.raises(OperationalError):
            tallying.add()
    monkeypatch.undo()
    tallying.add()
    row = minute()
    assert row is not None
    assert row.done == 1

    tallying.count([(attempt, outcome)], Settlement(accepted=[(outcome, JobStatus.DONE)]))
    fails(DataError("no"))
    tallying.add()
    assert not tallying.is_due(1e12)


def test_the_claim_says_how_long_the_job_has_been_due() -> None:
    job = Job.objects.enqueue("tests:touch")
    selected(job).update(run_after=ago(50))
    [claimed] = Job.objects.claim_for_worker(_request())
    assert claimed.waited == pytest.approx(50, abs=5)


def _request():  # type: ignore[no-untyped-def]
    from django_jobqueue.databases.claiming import ClaimRequest

    return ClaimRequest(worker_id="w", limit=10, lease=60)


def _attempt(claimed):  # type: ignore[no-untyped-def]
    from django_jobqueue.attempts import Attempt

    attempt = Attempt(claimed, "w", 0.0)
    attempt.started, attempt.ran = 0.1, 0.2
    return attempt
