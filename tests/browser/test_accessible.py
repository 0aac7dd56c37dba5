"""Pages for everybody: axe-core finds nothing, keys reach everything, nothing runs out of the window."""

import json
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from django_jobqueue.admin import bulk_views, dead_letters, job_page
from django_jobqueue.managers import Tally, WorkerFacts
from django_jobqueue.models import Job, JobStatus, Queue, Statistic, Worker
from tests.browser.conftest import Visitor
from tests.moves.factories import WORKER, claimed, dead, enqueue, in_status

pytestmark = pytest.mark.django_db(transaction=True)

JOBS = "/admin/django_jobqueue/job/"
DASHBOARD = "/admin/django_jobqueue/dashboard/"

#: What is ours. The admin's own frame around it, and its search field, are Django's to mend.
OURS = {"include": [["#content"]], "exclude": [["#searchbar"]]}


#: What sticks out of a page that is wider than its window, but for what scrolls inside of a box of its own.
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth + 1 ? [] :
  [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => `too wide: ${one.tagName} ${one.className} ${one.getBoundingClientRect().right}`)
    .slice(0, 12)"""


def addresses() -> dict[str, str]:
    """Every page of ours, with something of each kind on it."""
    running = claimed(dedupe_key="k", lock_key="l")
    Job.objects.report_progress(WORKER, [(running.id, running.fence, 0.5, "half of it")])
    failed = dead(payload={"n": 1})
    for status in JobStatus:
        in_status(status)
    enqueue(priority=7)
    Queue.objects.pause("mail")
    facts = {"host": "box", "pid": 4711, "queues": ["mail", "default"], "capacity": 8, "version": "1.0"}
    Worker.objects.beat([WorkerFacts(WORKER, **facts)])
    tally = Tally(done=120, failed=4, dead=1)
    tally.took(waited=2.0, ran=0.3)
    Statistic.objects.add([("mail", tally)])
    return {
        "index": "/admin/django_jobqueue/",
        "dashboard": DASHBOARD,
        "dashboard of a week": f"{DASHBOARD}?span=week",
        "queues": reverse("admin:django_jobqueue_queue_changelist"),
        "a new queue": reverse("admin:django_jobqueue_queue_add"),
        "queue": reverse("admin:django_jobqueue_queue_change", args=["mail"]),
        "workers": reverse("admin:django_jobqueue_worker_changelist"),
        "worker": reverse("admin:django_jobqueue_worker_change", args=[WORKER]),
        "delete": reverse("admin:django_jobqueue_job_delete", args=[failed.pk]),
        "list": JOBS,
        "filtered": f"{JOBS}?status__exact=4&q=tests&created_at__range__gte_0=2020-01-01",
        "running": job_page.url(running),
        "dead": job_page.url(failed),
        "payload": job_page.url(failed, "payload"),
        "dead letters": dead_letters.url(),
        "retry all": bulk_views.url("retry", "status__exact=4"),
    }


def problems(page: Page, axe: str) -> list[str]:
    """What axe-core says against our part of the page."""
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate(f"axe.run({json.dumps(OURS)})")
    return [
        f"{one['id']}: {node['html']} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_no_page_has_a_fault_that_axe_finds_or_runs_out_of_the_window(
    visitor: Visitor, axe: str, scheme: str, width: int
) -> None:
    page = visitor(color_scheme=scheme, viewport={"width": width, "height": 800})
    found: dict[str, list[str]] = {}
    for name, address in addresses().items():
        page.goto(address)
        found[name] = problems(page, axe)
        found[name] += page.evaluate(TOO_WIDE)
    assert {name: said for name, said in found.items() if said} == {}


def test_a_dead_job_is_retried_with_the_keyboard_alone(visitor: Visitor) -> None:
    job = dead()
    page = visitor()
    page.goto(job_page.url(job))
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == "Retry":
            break
    page.keyboard.press("Enter")
    expect(page.locator(".messagelist")).to_contain_text("1 job runs again.")
