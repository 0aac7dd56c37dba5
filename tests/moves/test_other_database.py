"""The queue on a database of its own: JOBQUEUE["DATABASE"], or DATABASE_ROUTERS."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, models, transaction
from pytest_django import Settings

from django_jobqueue.exceptions import InvalidOption, InvalidPayload
from django_jobqueue.models import Job, JobStatus, Queue, Worker
from tests.moves.factories import TYPE, WORKER, claim, claimed, dead, enqueue, selected, statements

pytestmark = pytest.mark.django_db(databases=["default", "other"], transaction=True)


class JobsElsewhere:
    """Writes the app's models to "other" and reads them from a replica that knows nothing yet."""

    def db_for_write(self, model: type[models.Model], **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "django_jobqueue" else None

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str | None:
        return "default" if model._meta.app_label == "django_jobqueue" else None


@pytest.fixture
def elsewhere(settings: Settings) -> None:
    settings.JOBQUEUE |= {"DATABASE": "other"}


@pytest.fixture(params=["setting", "router"])
def either_way(request: pytest.FixtureRequest, settings: Settings) -> None:
    if request.param == "setting":
        settings.JOBQUEUE |= {"DATABASE": "other"}
    else:
        settings.DATABASE_ROUTERS = [f"{__name__}.JobsElsewhere"]


def count(alias: str) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_jobqueue_job")
        return int(cursor.fetchone()[0])


@pytest.mark.usefixtures("either_way")
def test_every_move_goes_to_the_queues_database() -> None:
    with statements("default") as made:
        job = claimed(dedupe_key="k", lock_key="l")
        assert enqueue(dedupe_key="k").created is False
        Job.objects.enqueue_many([(TYPE, {}), (TYPE, {})])
        assert Job.objects.renew_lease(worker_ids=[WORKER]).held[WORKER] == {job.id: job.fence}
        Job.objects.record_started(WORKER, [(job.id, 1.0)])
        Job.objects.report_progress(WORKER, [(job.id, job.fence, 0.5, "half")])
        assert Job.objects.held_by(WORKER) == {job.id: (1, False)}
        assert Job.objects.complete(job, [1])
        assert Job.objects.fail(claimed(), "no")
        assert Job.objects.snooze(claimed(), 5)
        assert Job.objects.release(claimed())
        assert Job.objects.reap() == Job.objects.expire() == 0
        assert selected(dead()).retry().done == 1
        assert Job.objects.filter(queue="default").reschedule(priority=3).done == 2
        assert Job.objects.filter(queue="default").cancel().done == 2
        assert Job.objects.counts()[JobStatus.CANCELLED] == 2
        assert selected(job).prune(timedelta(0)) == 1
        Queue.objects.pause("mail")
        Queue.objects.resume("mail")
        Worker.objects.beat([])
        Worker.objects.forget("nobody")
        Worker.objects.forget_silent()
    assert not made
    assert (count("default"), count("other")) == (0, 6)


@pytest.mark.usefixtures("either_way")
def test_a_row_knows_where_it_came_from() -> None:
    job = enqueue()
    [held] = claim()
    held.refresh_from_db()
    assert {job._state.db, held._state.db, Job.objects.get()._state.db} == {"other"}


@pytest.mark.usefixtures("either_way")
def test_a_job_is_written_when_the_open_transaction_elsewhere_commits() -> None:
    with transaction.atomic():
        job = enqueue({"a": 1}, dedupe_key="k", priority=7)
        many = Job.objects.enqueue_many([(TYPE, {}), (TYPE, {})])
        assert job.created is None
        assert [one.created for one in many] == [None, None]
        assert count("other") == 0
    assert {job.id, *(one.id for one in many)} == set(Job.objects.values_list("id", flat=True))
    stored = Job.objects.get(pk=job.pk)
    assert (stored.payload, stored.dedupe_key, stored.priority) == ({"a": 1}, "k", 7)
    assert count("default") == 0


@pytest.mark.usefixtures("elsewhere")
def test_a_job_is_not_written_when_that_transaction_rolls_back() -> None:
    with transaction.atomic():
        enqueue()
        Job.objects.enqueue_many([(TYPE, {}), (TYPE, {})])
        transaction.set_rollback(True)
    assert count("other") == 0


@pytest.mark.usefixtures("elsewhere")
def test_an_inner_rollback_elsewhere_takes_its_jobs_along() -> None:
    with transaction.atomic():
        outer = enqueue()
        with transaction.atomic():
            enqueue()
            transaction.set_rollback(True)
    assert Job.objects.get() == outer


@pytest.mark.usefixtures("elsewhere")
def test_what_is_wrong_is_still_said_at_the_call() -> None:
    with transaction.atomic():
        with pytest.raises(InvalidPayload):
            enqueue({"a": {1}})
        with pytest.raises(InvalidOption):
            enqueue(priority=101)
        with pytest.raises(InvalidPayload):
            Job.objects.enqueue_many([(TYPE, {}), (TYPE, {"a": object()})])
    assert count("other") == 0


@pytest.mark.usefixtures("elsewhere")
def test_a_key_that_is_taken_by_the_time_of_the_commit_makes_no_second_job() -> None:
    with transaction.atomic():
        enqueue({"n": 1}, dedupe_key="k")
        enqueue({"n": 2}, dedupe_key="k")
    assert Job.objects.get().payload == {"n": 1}


@pytest.mark.usefixtures("elsewhere")
def test_without_a_transaction_a_job_is_written_at_once() -> None:
    assert enqueue().created is True
    assert count("other") == 1


@pytest.mark.usefixtures("elsewhere")
def test_a_transaction_of_the_queues_database_itself_decides_if_there_is_one() -> None:
    with transaction.atomic(), transaction.atomic(using="other"):
        assert enqueue().created is True
        transaction.set_rollback(True, using="other")
    assert count("other") == 0


def test_an_open_transaction_of_another_database_does_not_hold_back_the_queue_at_home() -> None:
    with transaction.atomic(), transaction.atomic(using="other"):
        assert enqueue().created is True


def test_a_manager_may_be_asked_for_another_alias() -> None:
    job = Job.objects.db_manager("other").enqueue(TYPE)
    assert (count("default"), count("other")) == (0, 1)
    [held] = Job.objects.db_manager("other").claim(worker_id=WORKER)
    assert held.id == job.id
    assert Job.objects.using("other").cancel().done == 1


def test_a_job_at_home_waits_for_the_only_open_transaction_there_is() -> None:
    with transaction.atomic(using="other"):
        assert enqueue().created is None
        assert count("default") == 0
    assert count("default") == 1
