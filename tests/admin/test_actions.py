"""What a person does to the selected jobs: done, refused and why, logged, and only by permission."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_jobqueue.admin import actions
from django_jobqueue.models import Job, JobStatus
from tests.admin.conftest import Person
from tests.admin.pages import act, job_list, told
from tests.moves.factories import (
    TYPE,
    ago,
    claim,
    claimed,
    dead,
    enqueue,
    in_status,
    selected,
    statuses,
    stored,
    write,
)

pytestmark = pytest.mark.django_db

VERBS = ["retry_jobs", "run_jobs_now", "cancel_jobs"]


def many_dead(count: int, **options: Any) -> list[Job]:
    jobs = Job.objects.enqueue_many(
        [{"job_type": TYPE, "payload": {"n": n}} for n in range(count)], **options
    )
    # By hand: hundreds of failures would only fill the log.
    assert selected(*jobs).update(status=JobStatus.DEAD, finished_at=ago(60)) == count
    return jobs


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


def test_a_taken_dedupe_key_or_a_running_job_does_not_stop_the_others(admin_client: Client) -> None:
    """500 dead jobs, 50 of them with a key that another job has by now, and 10 that are running."""
    jobs = many_dead(500, queue="ours")
    colliding, fine = jobs[::10], [job for n, job in enumerate(jobs) if n % 10]
    for n, job in enumerate(colliding):
        write(job, dedupe_key=f"k-{n}")
        assert enqueue(dedupe_key=f"k-{n}", queue="rival").created
    running = [claimed() for _ in range(10)]
    selected(*running).update(queue="ours")

    response = act(admin_client, "retry_jobs", jobs[:1], select_across="1", query="?queue=ours")

    done, refused = told(response)
    assert done == "450 jobs run again."
    assert refused == "50 refused: another active job has its dedupe key; 10 refused: is running"
    assert set(selected(*colliding).values_list("status", flat=True)) == {JobStatus.DEAD}
    assert set(selected(*fine).values_list("status", flat=True)) == {JobStatus.PENDING}
    assert set(selected(*running).values_list("status", flat=True)) == {JobStatus.RUNNING}


def test_each_of_a_few_jobs_has_the_action_in_its_own_history(admin_client: Client) -> None:
    moved, refused = dead(), in_status(JobStatus.DONE)
    act(admin_client, "retry_jobs", [moved, refused])
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.action_flag, entry.change_message) == (str(moved.pk), CHANGE, "Retried")
    history = admin_client.get(reverse("admin:django_jobqueue_job_history", args=[moved.pk]))
    assert "Retried" in history.content.decode()


def test_many_jobs_share_one_line_in_the_log(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "LOGGED_EACH", 2)
    act(admin_client, "retry_jobs", [*many_dead(3), claimed()])
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr) == (None, "jobs")
    assert entry.change_message == "Retried: 3 jobs run again.; 1 refused: is running"


def test_all_pages_are_moved_chunk_by_chunk_without_loading_the_jobs(admin_client: Client) -> None:
    jobs = Job.objects.enqueue_many([(TYPE, {"n": n}) for n in range(2_000)])
    with CaptureQueriesContext(connection) as captured:
        response = act(admin_client, "cancel_jobs", jobs[:1], select_across="1")
    assert told(response)[0].startswith("2000 jobs are cancelled")
    assert Job.objects.counts()[JobStatus.CANCELLED] == 2_000
    assert len(captured) < 30
    assert not [one for one in captured if '"payload"' in one["sql"]]


def test_all_pages_are_those_that_the_filters_leave(admin_client: Client) -> None:
    mail, other = enqueue(queue="mail"), enqueue(queue="other")
    act(admin_client, "cancel_jobs", [mail], select_across="1", query="?queue=mail")
    assert statuses(mail, other) == [JobStatus.CANCELLED, JobStatus.PENDING]


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


def test_a_deletion_that_includes_an_active_job_is_refused_with_its_name(admin_client: Client) -> None:
    jobs = [dead(), claimed()]
    response = act(admin_client, "delete_selected", jobs, post="yes")
    html = response.content.decode()
    assert "Cannot delete jobs" in html
    assert str(jobs[1]) in html
    assert selected(*jobs).count() == 2


def test_more_jobs_than_the_confirmation_can_hold_are_not_deleted(admin_client: Client) -> None:
    jobs = many_dead(501)
    response = act(admin_client, "delete_selected", jobs[:1], select_across="1")
    [text] = told(response)
    assert "At most 500 jobs" in text
    assert Job.objects.count() == 501
