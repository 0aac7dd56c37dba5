"""What a person does in the admin, with a worker beside it, under the strictest Content-Security-Policy."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from playwright.sync_api import Page, expect

from django_jobqueue.admin import dead_letters, job_page
from django_jobqueue.models import Job, JobStatus, Queue
from tests.browser.conftest import PATIENCE, Visitor
from tests.moves.factories import ago, dead, enqueue, in_status, selected, stored
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

JOBS = "/admin/django_jobqueue/job/"
PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus

expect.set_options(timeout=PATIENCE)


def many_dead(count: int, job_type: str = "tests:nothing") -> None:
    """By hand: thousands of failures would only fill the log."""
    jobs = Job.objects.enqueue_many([(job_type, {})] * count)
    ids = [job.pk for job in jobs]
    for start in range(0, count, 500):
        Job.objects.filter(pk__in=ids[start : start + 500]).update(
            status=DEAD, finished_at=ago(60), error_fingerprint="ValueError in mail.send"
        )


def row(page: Page, job: Job) -> Any:
    return page.locator("#result_list tbody tr", has=page.locator(f'a[href*="{job.pk}"]'))


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_a_job_goes_from_pending_to_done_before_ones_eyes(
    visitor: Visitor, start_worker: Callable[..., Any], gate: Path
) -> None:
    job = enqueue({"gate": str(gate)}, job_type="tests:wait")
    listed, alone = visitor(), visitor(name="second")
    listed.goto(JOBS)
    alone.goto(job_page.url(job))
    expect(row(listed, job)).to_contain_text("pending")
    start_worker()
    expect(row(listed, job)).to_contain_text("running")
    expect(alone.locator(".jobqueue-timeline")).to_contain_text(re.compile("Claimed|Attempt 1 started"))
    gate.touch()
    expect(row(listed, job)).to_contain_text("done")
    expect(alone.locator(".jobqueue-badge")).to_contain_text("done")
    expect(alone.locator(".jobqueue-timeline")).to_contain_text("ran for")


def test_a_dead_job_is_retried_and_done(visitor: Visitor, start_worker: Callable[..., Any]) -> None:
    job = dead(job_type="tests:nothing")
    start_worker()
    page = visitor()
    page.goto(job_page.url(job))
    press(page, "Retry")
    expect(page.locator(".messagelist")).to_contain_text("1 job runs again.")
    expect(page.locator(".jobqueue-badge")).to_contain_text("done")
    assert stored(job).status == DONE


def test_a_payload_is_edited_and_the_job_done_with_it(
    visitor: Visitor, start_worker: Callable[..., Any]
) -> None:
    job = dead(job_type="tests:touch", payload={"n": 1})
    start_worker()
    page = visitor()
    page.goto(job_page.url(job))
    page.get_by_role("link", name="Retry with another payload").click()
    page.get_by_label("Payload").fill('{"m": 2}')
    press(page, "Retry")
    expect(page.locator(".errorlist")).to_contain_text("does not fit the handler")
    page.get_by_label("Payload").fill('{"n": 2}')
    press(page, "Retry")
    expect(page.locator(".jobqueue-badge")).to_contain_text("done")
    assert (stored(job).result, stored(job).context["original_payload"]) == (2, {"n": 1})


def test_ten_thousand_of_one_kind_are_retried_at_a_speed(visitor: Visitor) -> None:
    many_dead(10_000)
    page = visitor()
    page.goto(dead_letters.url())
    expect(page.locator(".jobqueue-kinds tbody tr")).to_contain_text("10,000")
    page.get_by_role("link", name="Retry … tests:nothing").click()
    expect(page.locator(".jobqueue-count")).to_contain_text("10000 jobs match now.")
    page.get_by_label("Jobs due in a minute").fill("600")
    press(page, "Retry")
    expect(page.locator(".jobqueue-over")).to_be_visible()
    expect(page.locator(".jobqueue-done")).to_contain_text("10000 jobs run again.")
    due = sorted(Job.objects.filter(status=PENDING).values_list("run_after", flat=True))
    assert len(due) == 10_000
    # Ten a second, whatever the steps: the last one some seventeen minutes after the first.
    assert (due[-1] - due[0]).total_seconds() == pytest.approx(999.9, abs=15)
    assert LogEntry.objects.get().change_message.startswith("Retried: 10000 jobs run again.")


@pytest.mark.parametrize("job_type", ["tests:until_cancelled", "tests:async_until_cancelled"])
def test_a_running_job_is_cancelled(
    visitor: Visitor, start_worker: Callable[..., Any], job_type: str
) -> None:
    job = enqueue({"raises": True}, job_type=job_type)
    start_worker()
    page = visitor()
    page.goto(job_page.url(job))
    expect(page.locator(".jobqueue-badge")).to_contain_text("running")
    press(page, "Cancel")
    expect(page.locator(".jobqueue-badge")).to_contain_text("cancelled")
    expect(page.locator(".jobqueue-timeline")).to_contain_text("stopped as asked")
    assert stored(job).status == CANCELLED


def test_nothing_of_a_paused_queue_starts(visitor: Visitor, start_worker: Callable[..., Any]) -> None:
    page = visitor()
    page.goto(reverse("admin:django_jobqueue_queue_add"))
    page.get_by_label("Name").fill("mail")
    press(page, "Save")
    eventually(lambda: Queue.objects.filter(name="mail", paused=True).exists())
    held_back, other = enqueue(job_type="tests:nothing", queue="mail"), enqueue(job_type="tests:nothing")
    start_worker()
    page.goto(JOBS)
    expect(row(page, other)).to_contain_text("done")
    expect(row(page, held_back)).to_contain_text("pending")
    page.goto(job_page.url(held_back))
    expect(page.locator(".jobqueue-head")).to_contain_text("its queue is paused")


def test_the_dashboard_follows_what_happens_and_pauses_a_queue(
    visitor: Visitor, start_worker: Callable[..., Any]
) -> None:
    page = visitor()
    page.goto(reverse("admin:django_jobqueue_dashboard_changelist"))
    page.evaluate("window.isTheSame = true")
    dead(queue="mail")
    queues = page.locator("#jobqueue-queues-scroll")
    expect(queues).to_contain_text("mail")
    start_worker()
    expect(page.locator("#jobqueue-workers-scroll")).to_contain_text("idle")
    assert page.evaluate("window.isTheSame")

    press(page, "Pause mail")
    expect(queues).to_contain_text("paused")
    expect(page.get_by_role("button", name="Resume mail", exact=True)).to_be_visible()
    assert Queue.objects.filter(name="mail", paused=True).exists()


def test_whoever_may_only_view_sees_no_buttons_and_a_forged_post_is_refused(visitor: Visitor) -> None:
    jobs = [in_status(status) for status in JobStatus]
    page = visitor("view_job", name="ada")
    for job in jobs:
        page.goto(job_page.url(job))
        expect(page.locator("#content button, #content .jobqueue-actions")).to_have_count(0)
    for address in (dead_letters.url(), JOBS):
        page.goto(address)
        expect(page.locator("#content button", has_text="Retry")).to_have_count(0)
        expect(page.get_by_role("link", name="Retry")).to_have_count(0)
    forged = page.request.post(job_page.url(jobs[3], "do", "retry"))
    assert forged.status == 403
    assert stored(jobs[3]).status == DEAD


def test_two_people_at_the_same_job_the_second_is_told(visitor: Visitor) -> None:
    job = dead()
    first, second = visitor(), visitor(name="second")
    for page in (first, second):
        page.goto(job_page.url(job))
    press(first, "Retry")
    press(second, "Retry")
    expect(first.locator(".messagelist")).to_contain_text("1 job runs again.")
    expect(second.locator(".messagelist")).to_contain_text("1 refused: is pending")


def test_all_that_match_are_chosen_and_gone_through(visitor: Visitor) -> None:
    many_dead(60)
    other = dead()
    page = visitor()
    page.goto(f"{JOBS}?status__exact=4&type=tests:nothing")
    page.locator("#action-toggle").check()
    page.get_by_role("button", name="Select all that match").click()
    page.locator("select[name=action]").select_option("retry_jobs")
    page.locator(".actions button[name=index]").click()  # "Go", from Django 6.1 on "Run"
    press(page, "Retry")
    expect(page.locator(".jobqueue-over")).to_be_visible()
    assert Job.objects.filter(status=PENDING).count() == 60
    assert stored(other).status == DEAD


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"a": value}
    return value


HOSTILE = {
    "script": {"</pre><script>document.title = 'owned'</script>": "<img src=x onerror=alert(1)>"},
    "right-to-left": {"name": "\u202egnp.exe שלום العربية"},
    "megabyte": {"text": "x" * 1_000_000},
    "deep": deep(190),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_payloads_show_harmlessly(visitor: Visitor, name: str) -> None:
    job = dead(payload=HOSTILE[name], dedupe_key="<script>document.title = 'owned'</script>")
    selected(job).update(error_fingerprint="<script>", last_error="<b onclick=alert(1)>\u202e")
    page = visitor()
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    for address in (job_page.url(job), job_page.url(job, "payload"), JOBS, dead_letters.url()):
        page.goto(address)
        assert "owned" not in page.title()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), address
        # Django's own page of a list has a picture, and a script, of its own.
        ours = (
            '#content script:not([src^="/static/"]), #content b[onclick], #content img:not([src^="/static/"])'
        )
        assert page.locator(ours).count() == 0


def test_without_scripts_everything_can_still_be_done(visitor: Visitor) -> None:
    many_dead(3)
    page = visitor(java_script_enabled=False)
    page.goto(dead_letters.url())
    page.get_by_role("link", name="Retry … tests:nothing").click()
    press(page, "Retry")
    expect(page.locator(".jobqueue-done")).to_contain_text("3 jobs run again.")
    job = dead()
    page.goto(job_page.url(job))
    press(page, "Retry")
    expect(page.locator(".messagelist")).to_contain_text("1 job runs again.")
