"""The page of one job: everything there is to know, shown harmlessly."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from django_jobqueue.admin import display
from django_jobqueue.exceptions import DeadJob
from django_jobqueue.models import Job, JobStatus
from django_jobqueue.registry import JobType
from tests.admin.conftest import Person, noop
from tests.admin.pages import INLINE, job_page, told, words
from tests.moves.factories import WORKER, claim_again, claimed, dead, enqueue, in_status, stored, write

pytestmark = pytest.mark.django_db


def fail(job: Job, message: str) -> None:
    try:
        raise ValueError(message)
    except ValueError as error:
        Job.objects.fail(job, error, delay=0)


def events(html: str) -> list[str]:
    """What stands in the time line."""
    return re.findall(r'<li class="jobqueue-event.*?</li>', html, re.DOTALL)


def titles(html: str) -> list[str]:
    return [words(title) for title in re.findall(r"<p><strong>(.*?)</strong> <span", html)]


def test_it_shows_payload_result_keys_claim_and_times(admin_client: Client) -> None:
    job = claimed(payload={"report_id": 7}, dedupe_key="report-7", lock_key="account-1")
    Job.objects.complete(job, {"rows": [1, 2]})
    html = job_page(admin_client, job)
    shown = words(html)
    assert "&quot;report_id&quot;: 7" in html
    assert "&quot;rows&quot;: [" in html
    for text in ("✓ done", "1 / 3", "report-7", "account-1", WORKER, str(job.pk), "Fence: 1"):
        assert text in shown
    assert f"{stored(job).finished_at:%Y-%m-%d %H:%M:%S}" in shown


def test_every_failed_attempt_stands_in_the_life_of_the_job_with_its_traceback_folded(
    admin_client: Client,
) -> None:
    job = claimed()
    fail(job, "the first time")
    fail(claim_again(job), "the second time")
    html = job_page(admin_client, job)
    life = events(html)
    assert [words(one).split(" 20")[0] for one in life] == [
        "Enqueued", "Attempt 1 failed", "Attempt 2 failed", "Due"
    ]  # fmt: skip
    assert f"worker {WORKER}" in words(life[2])
    assert "ValueError : the second time" in words(life[2])
    folded = re.search(r"<details><summary>Traceback</summary>(.*)</details>", life[2], re.DOTALL)
    assert folded
    assert "raise ValueError(message)" in folded[1]


def test_an_error_without_traceback_has_nothing_to_unfold(admin_client: Client) -> None:
    job = claimed()
    Job.objects.fail(job, DeadJob("refused for good"))
    html = job_page(admin_client, job)
    assert "refused for good" in html
    assert "Traceback" not in html


def test_progress_is_shown_as_a_bar_and_in_words(admin_client: Client) -> None:
    job = claimed()
    Job.objects.report_progress(WORKER, [(job.id, job.fence, 0.5, "half of it")])
    html = job_page(admin_client, job)
    assert html.count('<progress max="1" value="0.500" aria-label="progress">50%</progress> 50%') == 2
    assert "50% half of it" in html


def test_a_note_is_shown_where_nobody_knows_how_much_is_left(admin_client: Client) -> None:
    job = claimed()
    Job.objects.report_progress(WORKER, [(job.id, job.fence, None, "still reading")])
    assert "Progress: still reading" in words(job_page(admin_client, job))


def test_the_handler_is_named_if_this_process_has_one(admin_client: Client, registered: JobType) -> None:
    known = enqueue(job_type=registered.name)
    assert f"Handler: {noop.__module__}.noop" in words(job_page(admin_client, known))
    assert "Handler: None is registered" in words(job_page(admin_client, enqueue()))


def test_hostile_values_are_escaped(admin_client: Client) -> None:
    attack = "</pre><script>alert(1)</script>"
    job = claimed(payload={attack: attack}, dedupe_key=attack)
    fail(job, attack)
    html = job_page(admin_client, job)
    assert "<script>alert" not in html
    assert html.count("&lt;/pre&gt;&lt;script&gt;alert(1)") >= 5


def test_nothing_in_the_page_needs_more_than_a_policy_of_self(admin_client: Client) -> None:
    html = job_page(admin_client, dead())
    assert "jobqueue-event-failed" in html
    assert not INLINE.search(html)


def test_characters_that_reorder_text_are_shown_as_escapes_and_right_to_left_text_as_it_is(
    admin_client: Client,
) -> None:
    html = job_page(admin_client, enqueue({"name": "\u202egnp.exe שלום"}))
    assert "\\u202egnp.exe שלום" in html
    assert "\u202e" not in html


def test_what_was_no_text_before_it_was_stored_is_shown_as_stored(admin_client: Client) -> None:
    job = claimed()
    fail(job, "a NUL \x00 and half a pair \ud800")
    assert r"a NUL \x00 and half a pair \ud800" in job_page(admin_client, job)


def test_a_payload_of_a_megabyte_is_cut_with_a_note(admin_client: Client) -> None:
    html = job_page(admin_client, enqueue({"text": "x" * 1_000_000}))
    assert "Cut here: 20,000 of 1,000,016 characters are shown." in html
    assert len(html) < 60_000


def test_what_is_nested_deeper_than_json_can_be_written_is_not_shown() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert "Nested too deeply" in str(display.pretty_json(value))
    while value:  # taken apart by hand: some Pythons run out of stack where they free it
        value = value[0]


@pytest.mark.parametrize(
    "errors", [["by hand"], [{}], [{"started_at": 7, "ended_at": "2020-13-45T00:00:00Z"}]]
)
def test_errors_that_somebody_wrote_by_hand_are_shown_all_the_same(
    admin_client: Client, errors: list[Any]
) -> None:
    job = dead()
    write(job, errors=errors)
    assert "jobqueue-event-failed" in job_page(admin_client, job)


def test_times_are_those_of_the_current_zone(admin_client: Client, settings: Settings) -> None:
    settings.USE_TZ, settings.TIME_ZONE = True, "UTC"
    job = enqueue()
    utc = f"{stored(job).created_at:%Y-%m-%d %H}"
    settings.TIME_ZONE = "Asia/Kolkata"
    html = job_page(admin_client, job)
    assert "+05:30" in html
    assert f"Created at: {utc}" not in words(html)


@pytest.mark.parametrize("status", JobStatus)
def test_only_a_finished_job_can_be_deleted(admin_client: Client, status: JobStatus) -> None:
    job = in_status(status)
    page = reverse("admin:django_jobqueue_job_delete", args=[job.pk])
    assert admin_client.get(page).status_code == (200 if job.is_finished else 403)
    response = admin_client.post(page, {"post": "yes"}, follow=True)
    assert [one.partition(" ")[0] for one in told(response)] == (["The"] if job.is_finished else ["1"])
    assert Job.objects.filter(pk=job.pk).exists() != job.is_finished
    assert ("deletelink" in job_page(admin_client, in_status(status))) == job.is_finished


def test_a_deletion_is_confirmed_and_logged(admin_client: Client) -> None:
    job = dead()
    page = reverse("admin:django_jobqueue_job_delete", args=[job.pk])
    assert str(job.pk) in words(admin_client.get(page).content.decode())
    admin_client.post(page, {"post": "yes"})
    assert LogEntry.objects.get().object_id == str(job.pk)


def test_whoever_may_only_view_cannot_delete(person: Person) -> None:
    job = dead()
    client = person("view_job")
    assert "deletelink" not in job_page(client, job)
    assert client.post(reverse("admin:django_jobqueue_job_delete", args=[job.pk])).status_code == 403


def test_nobody_can_add_or_change_a_job(admin_client: Client) -> None:
    job = enqueue()
    assert admin_client.get(reverse("admin:django_jobqueue_job_add")).status_code == 403
    change = reverse("admin:django_jobqueue_job_change", args=[job.pk])
    assert admin_client.post(change, {"priority": "9"}).status_code == 403
    assert stored(job).priority == 0
    assert 'name="_save"' not in job_page(admin_client, job)


def test_the_page_is_read_with_one_query_for_the_job(
    admin_client: Client, django_assert_max_num_queries: Any
) -> None:
    job = dead()
    # Session, person, job, the database's time, content type of the history link.
    with django_assert_max_num_queries(5):
        job_page(admin_client, job)


def test_instants_without_a_zone_are_shown_as_they_are(settings: Settings, admin_client: Client) -> None:
    settings.USE_TZ = False
    job = enqueue(run_after=timedelta(days=1))
    assert f"{stored(job).run_after:%Y-%m-%d %H:%M:%S}" in words(job_page(admin_client, job))
