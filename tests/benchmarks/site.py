"""What the benchmark asks of the site itself, each in a process of its own: through the real API.

`python -m tests.benchmarks.site TASK ARGUMENTS_AS_JSON` prints the answer as JSON.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import urljoin

import django

#: Pages further on that a deep look begins.
DEEP = 50
#: The link to the next page.
NEXT = re.compile(r'<a href="([^"]*)" rel="next">')
#: Of the next pseudo-random pauses: the same in each repeat.
SEED = 20


def migrate() -> None:
    """Make the tables."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def enqueue(jobs: int) -> float:
    """Jobs a second, one call each and each committed."""
    from django_jobqueue.models import Job

    begun = 0.0
    for n in range(-10, jobs):  # the first ones connect and warm up
        if n == 0:
            begun = time.perf_counter()
        Job.objects.enqueue("bench:nothing", {"n": n})
    return jobs / (time.perf_counter() - begun)


def enqueue_many(jobs: int, job_type: str = "bench:nothing", chunk: int = 1_000) -> float:
    """Jobs a second, a thousand a call and each call committed."""
    from django_jobqueue.models import Job

    django.db.connection.ensure_connection()
    begun = time.perf_counter()
    for start in range(0, jobs, chunk):
        size = min(chunk, jobs - start)
        Job.objects.enqueue_many([(job_type, {"n": n}) for n in range(start, start + size)])
    return jobs / (time.perf_counter() - begun)


def enqueue_tasks(jobs: int, name: str, chunk: int = 1_000) -> float:
    """The same by Django's Tasks API, with the task of this name."""
    from django_jobqueue.backend import enqueue_many

    from .app import tasks

    django.db.connection.ensure_connection()
    begun = time.perf_counter()
    for start in range(0, jobs, chunk):
        size = min(chunk, jobs - start)
        enqueue_many(getattr(tasks, name), [((n,), {}) for n in range(start, start + size)])
    return jobs / (time.perf_counter() - begun)


def enqueue_slowly(jobs: int, least: float, most: float) -> list[float]:
    """When each was about to be enqueued, by the system's monotonic clock; pauses of so many seconds."""
    from django_jobqueue.models import Job

    pause = random.Random(SEED)  # noqa: S311 - no secret
    Job.objects.exists()  # connect
    sent = []
    for n in range(jobs):
        time.sleep(pause.uniform(least, most))
        sent.append(time.monotonic())
        Job.objects.enqueue("bench:stamp", {"n": n})
    return sent


def claim_cost(times: int, limit: int) -> list[float]:
    """Seconds of each claim, on a connection like a worker's own; none of them stays."""
    from django.db import connection, transaction

    from django_jobqueue.databases import database_for
    from django_jobqueue.databases.claiming import ClaimRequest
    from django_jobqueue.models import Job

    connection.ensure_connection()
    database_for("default").keep_plans(connection)
    request = ClaimRequest(worker_id="benchmark", limit=limit, lease=60)
    taken = []
    for _ in range(times):
        with transaction.atomic():
            begun = time.perf_counter()
            claimed = Job.objects.claim_for_worker(request)
            taken.append(time.perf_counter() - begun)
            transaction.set_rollback(True)
        assert len(claimed) == limit, f"{len(claimed)} jobs came instead of {limit}"
    return taken


def counts_cost(times: int, cap: int) -> list[float]:
    """Seconds of each look at the figures by status, as a dashboard takes it."""
    from django_jobqueue.models import Job

    return timed(times, lambda: Job.objects.counts(cap=cap))


def admin_cost(times: int) -> list[float]:
    """Seconds of each rendering of the admin's list of jobs, newest first."""
    return looks(times, "/admin/django_jobqueue/job/")


def timed(times: int, do: Callable[[], Any]) -> list[float]:
    """Seconds of each call."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        do()
        taken.append(time.perf_counter() - begun)
    return taken


def pause() -> None:
    """Let nobody claim."""
    from django_jobqueue.models import Queue

    Queue.objects.pause("default")


def resume() -> None:
    """Let all workers claim, and wake them."""
    from django_jobqueue.models import Queue

    Queue.objects.resume("default")


def fill(rows: int) -> None:
    """So many rows of each kind."""
    from .filling import KINDS, fill_with

    for number, holds in enumerate(KINDS.values()):
        fill_with(holds, rows, number)


def fill_site(jobs: int) -> None:
    """A table as it is after some weeks, a week of figures by the minute, and some workers."""
    from django_jobqueue.managers import Tally, WorkerFacts
    from django_jobqueue.models import Statistic, Worker

    from . import filling

    filling.fill_site(jobs)
    tally = Tally(done=100, failed=5, dead=1)
    tally.took(waited=1.0, ran=0.1)
    rows = [
        Statistic(
            span=span, start=datetime.fromtimestamp(time.time() // span * span - step * span, UTC),
            queue="default", done=tally.done, failed=tally.failed, dead=tally.dead,
            waited=tally.waited, ran=tally.ran, waits=tally.waits, runs=tally.runs,
        )
        for span in (60, 600, 3_600)
        for step in range(168)
    ]  # fmt: skip
    Statistic.objects.bulk_create(rows)
    Worker.objects.beat([WorkerFacts(f"w-{n}", "bench", n, None, 8, "1") for n in range(10)])


def page_cost(times: int, page: str) -> list[float]:
    """Seconds of each rendering of a page of the admin; deeper pages are reached as a person would."""
    from django_jobqueue.models import Job

    address = PAGES[page]
    if "{job}" in address:
        address = address.format(
            job=Job.objects.filter(status=4).order_by("-pk").values_list("pk", flat=True)[0]
        )
    return looks(times, f"/admin/django_jobqueue/{address}", further=DEEP if "deep" in page else 0)


#: Pages of the admin, from the app's index on.
PAGES = {
    "index": "",
    "dashboard": "dashboard/",
    "dashboard, a week": "dashboard/?period=week",
    "list": "job/",
    "list, as deep as 50 pages": "job/",
    "filtered list": "job/?status__exact=4&queue=default",
    "job": "job/{job}/change/",
    "dead letters": "job/dead-letters/",
    "queues": "queue/",
    "workers": "worker/",
}


def looks(times: int, address: str, *, further: int = 0) -> list[float]:
    """Seconds of each answer to a superuser who is signed in; so many pages further, or the last there is."""
    from django.contrib.auth.models import User
    from django.test import Client

    user, _ = User.objects.get_or_create(username="benchmark", is_superuser=True, is_staff=True)
    client = Client(headers={"host": "localhost"})
    client.force_login(user)

    for _ in range(further):
        onward = NEXT.search(client.get(address).content.decode())
        if onward is None:
            break
        address = urljoin(address, unescape(onward[1]))

    def look() -> None:
        response = client.get(address)
        assert response.status_code == 200, f"{address} answered {response.status_code}"

    return timed(times, look)


def tidy() -> None:
    """What the database would do in its own time, before it is measured."""
    with django.db.connection.cursor() as cursor:
        if django.db.connection.vendor == "sqlite":
            cursor.execute("ANALYZE")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            cursor.execute("VACUUM ANALYZE django_jobqueue_job")
            cursor.execute("CHECKPOINT")


TASKS: dict[str, Callable[..., Any]] = {
    task.__name__: task
    for task in (
        migrate,
        enqueue,
        enqueue_many,
        enqueue_tasks,
        enqueue_slowly,
        claim_cost,
        counts_cost,
        admin_cost,
        pause,
        resume,
        fill,
        fill_site,
        page_cost,
        tidy,
    )
}


def main(task: str, arguments: str) -> None:
    """Run one task."""
    django.setup()
    json.dump(TASKS[task](**json.loads(arguments)), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
