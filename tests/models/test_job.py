import time

import pytest
from django.core.management import call_command

from django_jobqueue.managers.ids import new_job_id
from django_jobqueue.models import Job, JobStatus, Queue, Worker
from tests.moves.factories import claimed, enqueue, in_status


def test_ids_sort_by_the_time_they_were_made() -> None:
    ids = [new_job_id() for _ in range(10_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_an_id_is_a_version_7_uuid_of_now() -> None:
    made = new_job_id()
    assert made.version == 7
    milliseconds = made.int >> 80
    assert abs(milliseconds / 1000 - time.time()) < 60


@pytest.mark.django_db
def test_the_newest_job_is_the_first_by_id_backwards() -> None:
    jobs = [enqueue() for _ in range(5)]
    assert list(Job.objects.order_by("-id")) == jobs[::-1]


@pytest.mark.django_db
@pytest.mark.parametrize("status", JobStatus)
def test_a_job_is_finished_in_three_of_the_five_statuses(status: JobStatus) -> None:
    job = in_status(status)
    assert job.is_finished is (status.name in {"DONE", "DEAD", "CANCELLED"})
    assert (job.finished_at is not None) is job.is_finished


@pytest.mark.django_db
def test_a_claimed_job_knows_its_token_without_another_query() -> None:
    job = claimed("me")
    assert job.token == (job.id, "me", 1)


def test_rows_are_named_for_people() -> None:
    job = Job(job_type="report:generate")
    assert str(job) == f"report:generate {job.id}"
    assert str(Queue(name="mail")) == "mail"
    assert str(Worker(host="box", pid=7)) == "box:7"


@pytest.mark.django_db
def test_the_migrations_say_all_that_the_models_say() -> None:
    call_command("makemigrations", "django_jobqueue", check=True, dry_run=True, verbosity=0)


def test_every_name_in_the_database_carries_the_apps_prefix() -> None:
    tables = {model._meta.db_table for model in (Job, Queue, Worker)}
    names = {
        one.name for model in (Job, Queue, Worker) for one in (*model._meta.indexes, *model._meta.constraints)
    }
    assert all(table.startswith("django_jobqueue_") for table in tables)
    assert all(name.startswith("jobqueue_") for name in names)


def test_the_tables_have_no_foreign_keys() -> None:
    assert not [f for model in (Job, Queue, Worker) for f in model._meta.get_fields() if f.is_relation]
