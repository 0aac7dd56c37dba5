"""The buttons of a job's page: what fits it now, by permission, by POST, told and logged."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_jobqueue import registry
from django_jobqueue.admin import job_page
from django_jobqueue.models import Job, JobStatus, Queue
from django_jobqueue.redaction import HIDDEN
from django_jobqueue.registry import JobType
from tests.admin.conftest import Person
from tests.admin.pages import INLINE, told, words
from tests.admin.pages import job_page as shown
from tests.moves.factories import (
    WORKER,
    claimed,
    dead,
    enqueue,
    in_status,
    seconds_from_now,
    selected,
    stored,
)

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def do(client: Client, job: Job, name: str, **data: Any) -> Any:
    return client.post(job_page.url(job, "do", name), data, follow=True)


def edit(client: Client, job: Job, payload: Any) -> Any:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return client.post(job_page.url(job, "payload"), {"payload": text}, follow=True)


def buttons(html: str) -> set[str]:
    """What can be done: the actions of forms, and links to pages that ask."""
    found = re.findall(r'(?:action|href)="/admin/django_jobqueue/job/[0-9a-f-]{36}/(?:do/)?([\w-]+)/"', html)
    return set(found) - {"history"}


@pytest.mark.parametrize(
    ("status", "offered"),
    [
        (PENDING, {"snooze", "cancel"}),
        (RUNNING, {"cancel"}),
        (DONE, {"delete"}),
        (DEAD, {"retry", "payload", "delete"}),
        (CANCELLED, {"retry", "payload", "delete"}),
    ],
)
def test_a_page_offers_what_fits_the_job_now(
    admin_client: Client, status: JobStatus, offered: set[str]
) -> None:
    html = shown(admin_client, in_status(status))
    assert buttons(html) == offered
    assert not INLINE.search(html)


def test_a_job_that_waits_for_later_can_be_run_now_and_one_that_was_asked_is_not_asked_again(
    admin_client: Client,
) -> None:
    assert "run-now" in buttons(shown(admin_client, enqueue(run_after=timedelta(hours=1))))
    running = claimed()
    selected(running).cancel()
    html = shown(admin_client, running)
    assert buttons(html) == set()
    assert "asked to stop" in html


def test_a_pending_job_says_if_its_queue_is_paused(admin_client: Client) -> None:
    job = enqueue(queue="mail")
    assert "its queue is paused" not in shown(admin_client, job)
    Queue.objects.pause("mail")
    assert "its queue is paused" in shown(admin_client, job)


def test_each_button_does_what_it_says_tells_it_and_logs_it(admin_client: Client) -> None:
    retried, waiting, snoozed, running = dead(), enqueue(run_after=timedelta(hours=1)), enqueue(), claimed()
    assert told(do(admin_client, retried, "retry")) == ["1 job runs again."]
    assert told(do(admin_client, waiting, "run-now")) == ["1 job is due now."]
    assert told(do(admin_client, snoozed, "snooze", minutes="60")) == ["1 job waits for later."]
    assert told(do(admin_client, running, "cancel"))[0].startswith("1 job is cancelled, or asked")
    assert stored(retried).status == PENDING
    assert seconds_from_now(stored(waiting).run_after) <= 0
    assert seconds_from_now(stored(snoozed).run_after) == pytest.approx(3600, abs=10)
    assert stored(running).cancel_requested_at
    logged = LogEntry.objects.values_list("object_id", "change_message")
    assert set(logged) == {
        (str(retried.pk), "Retried"),
        (str(waiting.pk), "Due now"),
        (str(snoozed.pk), "Snoozed"),
        (str(running.pk), "Cancelled, or asked to stop"),
    }


def test_the_second_person_is_told_why_nothing_was_done(admin_client: Client) -> None:
    job = dead()
    do(admin_client, job, "retry")
    assert told(do(admin_client, job, "retry")) == ["1 refused: is pending"]
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("minutes", ["", "x", "-5", "7", "99999999999"])
def test_a_job_is_put_off_by_what_is_offered_only(admin_client: Client, minutes: str) -> None:
    job = enqueue()
    assert do(admin_client, job, "snooze", minutes=minutes).status_code == 404
    assert seconds_from_now(stored(job).run_after) <= 0


@pytest.mark.parametrize(
    ("name", "codename", "status"),
    [
        ("retry", "retry_job", DEAD),
        ("cancel", "cancel_job", PENDING),
        ("snooze", "snooze_job", PENDING),
        ("run-now", "run_job_now", PENDING),
    ],
)
def test_each_button_takes_its_own_permission(
    person: Person, name: str, codename: str, status: JobStatus
) -> None:
    job = in_status(status)
    if status is PENDING:
        selected(job).reschedule(timedelta(days=1))
    everything = {"retry_job", "cancel_job", "snooze_job", "run_job_now", "edit_job_payload", "delete_job"}
    without = person("view_job", *(everything - {codename}))
    assert name not in buttons(shown(without, job))
    before = selected(job).values().get()
    assert do(without, job, name, minutes="60").status_code == 403
    assert selected(job).values().get() == before
    User.objects.all().delete()
    allowed = person("view_job", codename)
    assert name in buttons(shown(allowed, job))
    assert do(allowed, job, name, minutes="60").status_code == 200
    assert selected(job).values().get() != before


def test_without_the_permission_to_view_nothing_can_be_done(person: Person) -> None:
    job = dead()
    client = person("retry_job", "edit_job_payload")
    assert do(client, job, "retry").status_code == 403
    assert edit(client, job, {}).status_code == 403
    assert client.get(reverse("admin:django_jobqueue_job_live")).status_code == 403
    assert stored(job).status == DEAD


def test_whoever_may_only_view_sees_no_buttons(person: Person) -> None:
    client = person("view_job")
    assert [buttons(shown(client, in_status(status))) for status in JobStatus] == [set()] * 5


def test_a_get_a_forged_post_and_a_nonsense_do_nothing(admin_client: Client, admin_user: Any) -> None:
    job = dead()
    assert admin_client.get(job_page.url(job, "do", "retry")).status_code == 405
    assert do(admin_client, job, "discard").status_code == 404
    assert do(admin_client, job, "nonsense").status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin_user)
    assert do(strict, job, "retry").status_code == 403
    assert edit(strict, job, {}).status_code == 403
    assert stored(job).status == DEAD
    selected(job).discard()
    assert do(admin_client, job, "retry").status_code == 404


def test_a_job_is_retried_with_another_payload_and_the_first_one_stays_on_its_page(
    admin_client: Client,
) -> None:
    job = dead(payload={"report_id": 7})
    asked = admin_client.get(job_page.url(job, "payload")).content.decode()
    assert "&quot;report_id&quot;: 7" in asked
    assert not INLINE.search(asked)
    response = edit(admin_client, job, {"report_id": 8})
    assert told(response) == ["1 job runs again."]
    assert (stored(job).status, stored(job).payload) == (PENDING, {"report_id": 8})
    html = words(response.content.decode())
    assert "Original payload: { &quot;report_id&quot;: 7 }" in html
    assert LogEntry.objects.get().change_message == "Retried with another payload"


def test_the_same_payload_is_a_plain_retry(admin_client: Client) -> None:
    job = dead(payload={"a": 1})
    edit(admin_client, job, {"a": 1})
    assert stored(job).status == PENDING
    assert "original_payload" not in stored(job).context
    assert LogEntry.objects.get().change_message == "Retried"


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ("{", "This is no JSON: line 1, column 2"),
        ("", "This field is required."),
        ("[1]", "must be a dict"),
        ('{"a": NaN}', "is not a JSON number"),
        ('{"a": "\\u0000"}', "NUL character"),
        ('{"a": "\\ud800"}', "lone surrogate"),
        ("[" * 100_000, "Nested too deeply."),
        ('{"a":' * 300 + "1" + "}" * 300, "nested deeper than 200"),
        ({"a": "x" * 1_048_576}, "over the limit of 1,048,576"),
        ({"a": HIDDEN}, "Dots stand where"),
    ],
)
def test_a_payload_that_cannot_be_is_refused_with_the_reason(
    admin_client: Client, payload: Any, problem: str
) -> None:
    job = dead(payload={"n": 1})
    response = edit(admin_client, job, payload)
    assert problem in response.content.decode()
    assert (stored(job).status, stored(job).payload) == (DEAD, {"n": 1})


def test_a_payload_that_the_handler_could_not_take_is_refused(admin_client: Client) -> None:
    def greet(name: str) -> None: ...

    registry.register(JobType(name="tests:greet", function=greet))
    try:
        job = dead(job_type="tests:greet", payload={"name": "Ada"})
        assert "does not fit the handler" in edit(admin_client, job, {"nam": "Ada"}).content.decode()
        assert stored(job).status == DEAD
    finally:
        registry.unregister("tests:greet")


def test_hidden_values_are_not_shown_and_stay_where_their_dots_stay(
    admin_client: Client, settings: Any
) -> None:
    settings.JOBQUEUE |= {"REDACT": ["password"]}
    job = dead(payload={"user": "ada", "password": "hunter22"})
    for html in (admin_client.get(job_page.url(job, "payload")).content.decode(), shown(admin_client, job)):
        assert "hunter22" not in html
        assert HIDDEN in html
    edit(admin_client, job, {"user": "eve", "password": HIDDEN})
    assert stored(job).payload == {"user": "eve", "password": "hunter22"}
    html = shown(admin_client, job)
    assert "hunter22" not in html
    assert words(html).count(HIDDEN) == 2  # in the original payload too


@pytest.mark.parametrize("codename", ["retry_job", "edit_job_payload"])
def test_another_payload_takes_two_permissions(person: Person, codename: str) -> None:
    job = dead(payload={"n": 1})
    client = person("view_job", codename)
    assert "payload" not in buttons(shown(client, job))
    assert client.get(job_page.url(job, "payload")).status_code == 403
    assert edit(client, job, {"n": 2}).status_code == 403
    assert stored(job).payload == {"n": 1}


def test_only_what_has_ended_badly_is_given_another_payload(admin_client: Client) -> None:
    job = in_status(DONE, payload={"n": 1})
    assert told(edit(admin_client, job, {"n": 2}))[0].startswith("Only a dead or cancelled job")
    assert stored(job).payload == {"n": 1}


def test_a_page_links_to_the_jobs_relatives(admin_client: Client) -> None:
    job = claimed(queue="mail", dedupe_key="a&b", lock_key="l")
    html = shown(admin_client, job)
    for query in ("type=tests%3Aany", "queue=mail", "dedupe_key=a%26b", "lock_key=l"):
        address = f"/admin/django_jobqueue/job/?{query}"
        assert f'href="{address}"' in html
        assert list(admin_client.get(address).context["cl"].result_list) == [stored(job)]
    assert f"worker={WORKER}" in html
    dead_one = dead()
    selected(dead_one).update(error_fingerprint="boom")
    assert "fingerprint=boom" in shown(admin_client, dead_one)


def test_the_state_of_a_pages_jobs_is_told_as_cells(admin_client: Client) -> None:
    running, done = claimed(), in_status(DONE)
    Job.objects.report_progress(WORKER, [(running.id, running.fence, 0.25, "")])
    address = reverse("admin:django_jobqueue_job_live")
    answer = admin_client.get(f"{address}?ids={running.pk},{done.pk}").json()
    assert (answer[str(running.pk)]["is_live"], answer[str(done.pk)]["is_live"]) == (True, False)
    cells = answer[str(running.pk)]["cells"]
    assert "jobqueue-running" in cells["status"]
    assert 'value="0.250"' in cells["status"]
    assert set(cells) == {"status", "attempts", "run_after", "run_started_at", "finished_at"}
    assert admin_client.get(f"{address}?ids=nonsense").status_code == 404
    assert admin_client.get(address).json() == {}
