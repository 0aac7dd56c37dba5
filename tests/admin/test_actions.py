"""What a person does to the selected jobs: done, refused and why, logged, and only by permission."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.test import Client
from django.urls import reverse

from django_jobqueue.models import Job, JobStatus
from tests.admin.conftest import Person
from tests.admin.pages import act, job_list, told
from tests.moves.factories import (
    claim,
    claimed,
    dead,
    enqueue,
    in_status,
    selected,
    statuses,
    stored,
)

pytestmark = pytest.mark.django_db

VERBS = ["retry_jobs", "run_jobs_now", "cancel_jobs"]


def test_retry_makes_dead_and_cancelled_jobs_pending_again(admin_client: Client) -> None:
    jobs = [dead(), in_status(JobStatus.CANCELLED)]
    response = act(admin_client, "retry_jobs", jobs)
    assert statuses(*jobs) == [JobStatus.PENDING] * 2
    assert told(response) == ["2 jobs run again."]


def test_run_now_makes_a_scheduled_job_due(admin_client: Client) -> None:
    job = enqueue(run_after=timedelta(days=1))
    response = act(admin_client, "run_jobs_now", [job])
    assert told(response) == ["1 job is due now."]
    assert [one.id for one in claim()] == [job.id]


def test_cancel_ends_pending_jobs_and_asks_running_ones_to_stop(admin_client: Client) -> None:
    pending, running = enqueue(), claimed()
    response = act(admin_client, "cancel_jobs", [pending, running])
    assert told(response) == ["2 jobs are cancelled, or asked to stop if they were running."]
    assert statuses(pending, running) == [JobStatus.CANCELLED, JobStatus.RUNNING]
    assert stored(running).cancel_requested_at is not None
    assert stored(pending).last_error == "cancelled by admin"


@pytest.mark.parametrize(
    ("verb", "status"), [("retry_jobs", "running"), ("run_jobs_now", "done"), ("cancel_jobs", "done")]
)
def test_what_was_refused_is_told_with_the_reason(admin_client: Client, verb: str, status: str) -> None:
    job = in_status(JobStatus[status.upper()])
    response = act(admin_client, verb, [job])
    assert told(response) == [f"1 refused: is {status}"]
    assert stored(job).status == job.status


def test_each_of_a_few_jobs_has_the_action_in_its_own_history(admin_client: Client) -> None:
    moved, refused = dead(), in_status(JobStatus.DONE)
    act(admin_client, "retry_jobs", [moved, refused])
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.action_flag, entry.change_message) == (str(moved.pk), CHANGE, "Retried")
    history = admin_client.get(reverse("admin:django_jobqueue_job_history", args=[moved.pk]))
    assert "Retried" in history.content.decode()


@pytest.mark.parametrize(
    ("verb", "codename"),
    [("retry_jobs", "retry_job"), ("run_jobs_now", "run_job_now"), ("cancel_jobs", "cancel_job")],
)
def test_each_action_takes_its_own_permission(person: Person, verb: str, codename: str) -> None:
    enqueue()
    html = job_list(person("view_job", codename)).content.decode()
    assert [one for one in VERBS if f'value="{one}"' in html] == [verb]


@pytest.mark.parametrize("verb", [*VERBS, "delete_selected"])
def test_a_forged_post_without_the_permission_changes_nothing(person: Person, verb: str) -> None:
    jobs = [dead(), enqueue(run_after=timedelta(days=1))]
    before = list(selected(*jobs).order_by("pk").values())
    act(person("view_job"), verb, jobs, post="yes")
    assert list(selected(*jobs).order_by("pk").values()) == before
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("verb", VERBS)
def test_a_get_does_nothing(admin_client: Client, verb: str) -> None:
    job = dead()
    job_list(admin_client, f"?action={verb}&_selected_action={job.pk}")
    assert stored(job).status == JobStatus.DEAD


def test_finished_jobs_are_deleted_after_a_confirmation(admin_client: Client) -> None:
    jobs = [dead(), in_status(JobStatus.DONE)]
    asked = act(admin_client, "delete_selected", jobs)
    assert all(str(job.pk) in asked.content.decode() for job in jobs)
    assert selected(*jobs).count() == 2
    response = act(admin_client, "delete_selected", jobs, post="yes")
    assert told(response) == ["Successfully deleted 2 jobs."]
    assert not selected(*jobs).exists()
    assert LogEntry.objects.count() == 2


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_job_that_was_retried_meanwhile_is_not_deleted_and_the_person_told_why(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, meanwhile: bool
) -> None:
    job = dead()
    selected(job).retry()
    if meanwhile:  # between Django's look and the deletion
        monkeypatch.setattr(Job, "is_finished", True)
    address = reverse("admin:django_jobqueue_job_delete", args=[job.pk])
    response = admin_client.post(address, {"post": "yes"}, follow=True)
    assert response.status_code == 200
    assert [one.partition(":")[0] for one in told(response)] == ["1 refused"]
    assert selected(job).exists()
    assert not LogEntry.objects.exists()


def test_a_deletion_that_includes_an_active_job_is_refused_with_its_name(admin_client: Client) -> None:
    jobs = [dead(), claimed()]
    response = act(admin_client, "delete_selected", jobs, post="yes")
    html = response.content.decode()
    assert "Cannot delete jobs" in html
    assert str(jobs[1]) in html
    assert selected(*jobs).count() == 2
