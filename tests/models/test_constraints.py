"""The database itself refuses an illegal row: one UPDATE, written by hand, for every rule."""

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from django_jobqueue.models import Job, JobStatus
from django_jobqueue.models.constraints import CONSTRAINTS
from tests.moves.factories import claimed, enqueue, in_status, row, stored

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
TIME = "'2026-01-01 00:00:00.000000+00'"

#: Rule, where the job stands, what is written by hand.
ILLEGAL = [
    ("status", DONE, "status = 0"),
    ("status", DONE, "status = 6"),
    ("priority", PENDING, "priority = 101"),
    ("priority", PENDING, "priority = -101"),
    ("type_length", PENDING, "job_type = ''"),
    ("queue_length", PENDING, "queue = ''"),
    ("dedupe_length", PENDING, "dedupe_key = ''"),
    ("lock_length", PENDING, "lock_key = ''"),
    ("max_attempts", DONE, "max_attempts = 0, attempts = 0"),
    ("max_attempts", PENDING, "max_attempts = 10001"),
    ("attempts", PENDING, "attempts = -1"),
    ("attempts", DONE, "attempts = max_attempts + 1"),
    ("pending_attempts", PENDING, "attempts = max_attempts"),
    ("counters", PENDING, "fence = -1"),
    ("counters", PENDING, "crashes = -1"),
    ("counters", PENDING, "snoozes = -1"),
    ("counters", PENDING, "releases = -1"),
    ("running_lease", RUNNING, "lease_until = NULL"),
    ("running_lease", PENDING, f"lease_until = {TIME}"),
    ("running_lease", DONE, f"lease_until = {TIME}"),
    ("running_owner", RUNNING, "worker_id = NULL"),
    ("running_owner", RUNNING, "claimed_at = NULL"),
    ("running_owner", RUNNING, "attempts = 0"),
    ("running_owner", RUNNING, "fence = 0"),
    ("finished_time", PENDING, f"finished_at = {TIME}"),
    ("finished_time", RUNNING, f"finished_at = {TIME}"),
    ("finished_time", DONE, "finished_at = NULL"),
    ("finished_time", DEAD, "finished_at = NULL"),
    ("finished_time", CANCELLED, "finished_at = NULL"),
    ("progress", RUNNING, "progress = -0.01"),
    ("progress", RUNNING, "progress = 1.01"),
    ("payload_object", PENDING, "payload = '[]'"),
    ("payload_object", PENDING, "payload = 'null'"),
    ("context_object", PENDING, "context = '\"text\"'"),
    ("errors_list", PENDING, "errors = '{}'"),
    ("errors_list", PENDING, "errors = 'null'"),
]

LEGAL = [
    (PENDING, "priority = 100, queue = 'q', dedupe_key = 'k', lock_key = 'l'"),
    (PENDING, "priority = -100, max_attempts = 10000, attempts = 9999"),
    (RUNNING, "progress = 0, fence = 1000000, crashes = 3, snoozes = 4, releases = 5"),
    (RUNNING, "progress = 1, attempts = max_attempts"),
    (DONE, "attempts = max_attempts, result = '[1]', dedupe_key = 'k', lock_key = 'l'"),
    (DEAD, "errors = '[{}]', payload = '{}', context = '{\"a\": 1}'"),
    (DEAD, f"status = 1, attempts = 0, finished_at = NULL, run_after = {TIME}"),
]


def sentence(value: JobStatus | str) -> str:
    return value.name if isinstance(value, JobStatus) else value.replace(" ", "")


def by_hand(job: Job, assignments: str) -> None:
    id_in_sql = job.pk.hex if connection.vendor == "sqlite" else str(job.pk)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE django_jobqueue_job SET {assignments} WHERE id = '{id_in_sql}'")
        assert cursor.rowcount == 1


@pytest.mark.parametrize(("rule", "status", "assignments"), ILLEGAL, ids=sentence)
def test_an_illegal_row_is_refused(rule: str, status: JobStatus, assignments: str) -> None:
    job = in_status(status)
    before = row(job)
    # No status outside the five has a legal finish time either, and PostgreSQL names the first by alphabet.
    name = "(status|finished_time)" if rule == "status" else rule
    with pytest.raises(IntegrityError, match=f"jobqueue_job_{name}\\b"), transaction.atomic():
        by_hand(job, assignments)
    assert row(job) == before


@pytest.mark.parametrize(("status", "assignments"), LEGAL, ids=sentence)
def test_a_legal_row_passes(status: JobStatus, assignments: str) -> None:
    job = in_status(status)
    before = row(job)
    by_hand(job, assignments)
    assert row(job) != before


@pytest.mark.parametrize(
    ("column", "most"), [("job_type", 200), ("queue", 100), ("dedupe_key", 200), ("lock_key", 200)]
)
def test_text_of_one_character_too_many_is_refused(column: str, most: int) -> None:
    job = enqueue()
    by_hand(job, f"{column} = '{'x' * most}'")
    # PostgreSQL's varchar is faster than the rule and calls it a DataError.
    with pytest.raises(DatabaseError), transaction.atomic():
        by_hand(job, f"{column} = '{'x' * (most + 1)}'")
    assert getattr(stored(job), column) == "x" * most


@pytest.mark.parametrize(
    "rest",
    [
        "status = 1",
        f"status = 2, attempts = 1, fence = 1, worker_id = 'w', claimed_at = {TIME}, lease_until = {TIME}",
    ],
    ids=["pending", "running"],
)
def test_a_second_active_job_of_a_dedupe_key_is_refused(rest: str) -> None:
    enqueue(dedupe_key="k")
    second = enqueue()
    with pytest.raises(IntegrityError), transaction.atomic():
        by_hand(second, f"dedupe_key = 'k', {rest}")
    assert stored(second).dedupe_key is None


def test_finished_jobs_may_share_the_dedupe_key_of_an_active_one() -> None:
    enqueue(dedupe_key="k")
    for status in (DONE, DEAD, CANCELLED):
        job = in_status(status)
        by_hand(job, "dedupe_key = 'k'")
    assert Job.objects.filter(dedupe_key="k").count() == 4


def test_a_second_running_job_of_a_lock_key_is_refused() -> None:
    claimed(lock_key="k")
    second = claimed()
    with pytest.raises(IntegrityError), transaction.atomic():
        by_hand(second, "lock_key = 'k'")
    assert stored(second).lock_key is None


def test_jobs_that_wait_or_ended_may_share_the_lock_key_of_a_running_one() -> None:
    claimed(lock_key="k")
    for status in (PENDING, DONE, DEAD, CANCELLED):
        by_hand(in_status(status), "lock_key = 'k'")
    assert Job.objects.filter(lock_key="k").count() == 5


def test_no_rule_is_left_without_a_test() -> None:
    tested = {rule for rule, *_ in ILLEGAL} | {"dedupe", "lock"}
    assert {one.name.removeprefix("jobqueue_job_") for one in CONSTRAINTS} == tested
