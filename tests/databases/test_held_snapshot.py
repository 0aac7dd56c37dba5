"""With a snapshot held open elsewhere nothing that is finished leaves the index: claims go on from marks."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections, transaction

from django_jobqueue.databases.claiming import ClaimRequest, Mark
from django_jobqueue.managers import ClaimedJob
from django_jobqueue.managers.outcomes import Done
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import WORKER, statements

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

JOBS, BATCH = 12_000, 100


@pytest.fixture
def held_snapshot() -> Iterator[None]:
    """Jobs, and a transaction that saw them and stays open, like a dump's."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""INSERT INTO django_jobqueue_job (
                    id, job_type, queue, priority, status, payload, context, attempts, max_attempts, fence,
                    run_after, created_at, updated_at)
                SELECT gen_random_uuid(), 'tests:any', 'default', 0, 1, '{{}}', '{{}}', 0, 3, 0, now, now, now
                FROM generate_series(1, {JOBS}), now()"""
        )
        cursor.execute("ANALYZE django_jobqueue_job")
    other = connections.create_connection("default")
    with other.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM django_jobqueue_job")
        yield
    other.close()


def take(marks: list[Mark]) -> tuple[list[ClaimedJob], list[Mark]]:
    request = ClaimRequest(worker_id=WORKER, limit=BATCH, lease=60, marks=marks)
    return Job.objects.claim_and_mark(request)


def finish(jobs: list[ClaimedJob]) -> None:
    assert len(Job.objects.settle(WORKER, [Done(job) for job in jobs]).written) == len(jobs)


def pages(marks: list[Mark]) -> int:
    """How many pages the next claim of these marks looks at to find its jobs; it is undone."""
    with transaction.atomic(), statements() as made:
        assert len(take(marks)[0]) == BATCH
        transaction.set_rollback(True)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {made[0]}")
        [[answer]] = cursor.fetchall()
        transaction.set_rollback(True)
    [top] = json.loads(answer) if isinstance(answer, str) else answer
    return sum(_read(top["Plan"]))


def _read(node: dict[str, Any]) -> Iterator[int]:
    if node.get("Index Name") == "jobqueue_job_claim":
        yield node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    for child in node.get("Plans", ()):
        yield from _read(child)


@pytest.mark.usefixtures("held_snapshot")
def test_claims_that_go_on_from_marks_read_no_more_at_the_end_than_at_the_start() -> None:
    jobs, marks = take([])
    finish(jobs)
    first = pages(marks)
    while Job.objects.filter(status=JobStatus.PENDING).count() > 2 * BATCH:
        jobs, marks = take(marks)
        finish(jobs)
    assert pages(marks) <= 1.5 * first
    assert pages([]) > 10 * first  # what is spared
