"""Each statement goes by its index, among many finished jobs that nobody should have to read."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from django_jobqueue import Dedupe
from django_jobqueue.conf import JobQueueSettings
from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.managers.failures import describe
from django_jobqueue.managers.outcomes import Done, Failed, Outcome, Released, Snoozed
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import TYPE, ago, claim, dead, enqueue, heads, ids, statements

pytestmark = pytest.mark.django_db

FINISHED, PENDING, RUNNING = 20_000, 2_000, 500
COLUMNS = """INSERT INTO django_jobqueue_job (
    id, job_type, queue, priority, status, payload, context, attempts, max_attempts, fence, worker_id,
    claimed_at, finished_at, run_after, created_at, updated_at)"""
VALUES = "'tests:any', 'q' || n % 4, n % 3, 3 + n % 3, '{}', '{}', 1, 3, 1, 'old', now, now, now, now, now"
FINISHED_ROWS = {
    "postgresql": f"""{COLUMNS} SELECT gen_random_uuid(), {VALUES}
        FROM generate_series(1, {FINISHED}) AS n, now()""",
    "sqlite": f"""WITH RECURSIVE numbers(n) AS (
            SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {FINISHED})
        {COLUMNS} SELECT lower(hex(randomblob(16))), {VALUES}
        FROM numbers, (SELECT strftime('%Y-%m-%d %H:%M:%f000', 'now') AS now)""",
}


@pytest.fixture(autouse=True, scope="module")
def big_table(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Committed once for all tests of this module; each of them undoes what it changes."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("django_jobqueue.conf._current", JobQueueSettings(EXTERNAL_TYPES=["tests:*"]))
        _fill()
        _analyze()
        yield
        Job.objects.all().delete()
        _analyze()


def _fill() -> None:
    with connection.cursor() as cursor:
        cursor.execute(FINISHED_ROWS[connection.vendor])
    spread = [{"job_type": TYPE, "queue": f"q{n % 4}", "priority": n % 3} for n in range(PENDING)]
    Job.objects.enqueue_many(spread[:RUNNING])
    claim(RUNNING // 2, worker_id="worker-1")
    claim(RUNNING // 2, worker_id="worker-2")
    Job.objects.enqueue_many(spread)


def _analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def plan(sql: str) -> set[str]:
    """The indexes that a statement uses on the job table, and "everything" if it reads the whole table."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            return {used for *_, detail in cursor.fetchall() for used in _of_sqlite(detail)}
    return {used for node in tree(sql) for used in _of_postgresql(node)}


def tree(sql: str) -> list[dict[str, Any]]:
    """All nodes of PostgreSQL's plan, the topmost first."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
        [[answer]] = cursor.fetchall()
    [top] = json.loads(answer) if isinstance(answer, str) else answer
    return list(_below(top["Plan"]))


def _below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _below(child)


def _of_sqlite(detail: str) -> Iterator[str]:
    table = detail.split()[1] if detail.startswith(("SCAN", "SEARCH")) else ""
    if table not in {"job", "j", "r", "t", "other", "django_jobqueue_job"}:
        return
    if "sqlite_autoindex" in detail or "PRIMARY KEY" in detail:
        yield "primary key"
    elif "INDEX " in detail:
        yield detail.partition("INDEX ")[2].split()[0].removeprefix("jobqueue_job_")
    else:
        yield "everything"


def _of_postgresql(node: dict[str, Any]) -> Iterator[str]:
    if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "django_jobqueue_job":
        yield "everything"
    if "Index Name" in node and not node["Index Name"].startswith("django_jobqueue_queue"):
        name = node["Index Name"].removeprefix("jobqueue_job_")
        yield "primary key" if name == "django_jobqueue_job_pkey" else name


def used_by(act: Any) -> set[str]:
    """What the one statement of a move uses."""
    [used] = all_used_by(act)
    return used


def all_used_by(act: Any) -> list[set[str]]:
    """What each statement of a move uses."""
    with statements() as made:
        assert act()
    return [plan(sql) for sql in made]


def assert_a_claim_goes_by_the_claim_index(act: Any) -> None:
    taking, *reading = all_used_by(act)
    assert "claim" in taking
    assert taking <= {"claim", "primary key", "lock"}
    assert reading == ([{"worker"}] if connection.vendor == "sqlite" else [])


@pytest.mark.parametrize("limit", [1, 10, 100, 500])
def test_a_claim_goes_by_the_claim_index(limit: int) -> None:
    assert_a_claim_goes_by_the_claim_index(lambda: claim(limit))


@pytest.mark.parametrize(
    "options",
    [
        {"queues": ["q1", "q2"]},
        {"exclude_queues": ["q1"]},
        {"exclude_types": ["tests:nothing"]},
        {"queues": ["q1"], "exclude_types": ["tests:nothing"], "suspects": False},
    ],
    ids=str,
)
def test_a_claim_that_chooses_goes_by_the_claim_index(options: dict[str, Any]) -> None:
    assert_a_claim_goes_by_the_claim_index(lambda: claim(10, **options))


@pytest.mark.postgresql
@pytest.mark.parametrize("limit", [1, 10, 100, 500])
@pytest.mark.parametrize("lanes", [1, 12])
def test_a_claim_from_marks_begins_there_in_the_claim_index(lanes: int, limit: int) -> None:
    marks = heads()[:lanes]
    request = ClaimRequest(worker_id="worker-1", limit=limit, lease=60, marks=marks)
    with statements() as made:
        assert Job.objects.claim_for_worker(request)
    [sql] = made
    used = plan(sql)
    assert "claim" in used
    assert used <= {"claim", "primary key"}
    begins = [node for node in tree(sql) if "ROW(run_after, id) >= ROW(" in node.get("Index Cond", "")]
    assert len(begins) == len([node for node in tree(sql) if "run_after <=" in node.get("Index Cond", "")])
    assert len(begins) >= 2


@pytest.mark.postgresql
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("limit", [1, 16, 17, 100, 500, 1000])
def test_no_claim_looks_so_costly_that_its_plan_is_compiled(limit: int, marked: bool) -> None:
    """With jit on, as it is by default, that took two seconds for every claim of a hundred."""
    request = ClaimRequest(worker_id="w", limit=limit, lease=60, marks=heads() if marked else [])
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('jit_above_cost')::float")
        [[threshold]] = cursor.fetchall()
        # As if there were millions.
        cursor.execute(
            "UPDATE pg_class SET reltuples = reltuples * 1000 WHERE relname LIKE %s",
            ["%jobqueue_job%"],
        )
    with statements() as made:
        assert Job.objects.claim_for_worker(request)
    assert tree(made[0])[0]["Total Cost"] < threshold


@pytest.mark.parametrize("options", [{}, {"queues": ["q1", "q2"]}, {"exclude_queues": ["q1"]}], ids=str)
def test_the_question_when_a_job_is_due_goes_by_the_claim_index(options: dict[str, Any]) -> None:
    request = ClaimRequest(worker_id="w", limit=1, lease=60, **options)
    assert used_by(lambda: Job.objects.next_due(request) is not None) == {"claim"}


def test_reaping_goes_by_the_index_of_running_jobs() -> None:
    Job.objects.filter(worker_id="worker-1", status=JobStatus.RUNNING).update(lease_until=ago(1))
    used = used_by(lambda: Job.objects.reap(size=50))
    assert used in ({"worker"}, {"worker", "primary key"})


def test_reaping_of_one_worker_goes_by_the_index_of_running_jobs() -> None:
    used = used_by(lambda: Job.objects.reap(worker_id="worker-1", size=50))
    assert used in ({"worker"}, {"worker", "primary key"})


def test_a_renewal_goes_by_the_index_of_running_jobs() -> None:
    used = used_by(lambda: Job.objects.renew_lease(worker_ids=["worker-1", "worker-2"]).held)
    assert used in ({"worker"}, {"worker", "primary key"})


def test_what_a_worker_holds_is_found_by_the_index_of_running_jobs() -> None:
    assert used_by(lambda: Job.objects.held_by("worker-1")) == {"worker"}


def outcome(kind: str, job: Job) -> Outcome:
    match kind:
        case "complete":
            return Done(job)
        case "fail":
            return Failed(job, failure=describe(ValueError("no")), delay=1)
        case "snooze":
            return Snoozed(job, delay=1)
        case _:
            return Released(job)


@pytest.mark.parametrize("size", [1, 10, 50])
@pytest.mark.parametrize("kind", ["complete", "fail", "snooze", "release"])
def test_every_outcome_goes_by_the_primary_key(kind: str, size: int) -> None:
    held = list(Job.objects.filter(worker_id="worker-1", status=JobStatus.RUNNING)[:size])
    outcomes = [outcome(kind, job) for job in held]
    used = used_by(lambda: Job.objects.settle("worker-1", outcomes).written)
    assert used == {"primary key"}


def test_progress_and_starts_go_by_the_primary_key() -> None:
    held = list(Job.objects.filter(worker_id="worker-1", status=JobStatus.RUNNING)[:50])
    for act in (
        lambda: Job.objects.record_started("worker-1", [(job.id, 1.0) for job in held]) or True,
        lambda: Job.objects.report_progress("worker-1", [(job.id, 1, 0.5, "") for job in held]) or True,
    ):
        assert used_by(act) == {"primary key"}


def test_pruning_looks_by_the_finish_time_and_removes_by_the_primary_key() -> None:
    with statements() as made:
        assert Job.objects.prune(most=0) == 0
    assert not made
    done = Job.objects.filter(status=JobStatus.DONE)
    done.filter(pk__in=ids(list(done[:300]))).update(finished_at=ago(30 * 86_400))
    with statements() as made:
        assert Job.objects.prune() == 300
    looks = [sql for sql in made if sql.startswith("SELECT") and "finished_at" in sql]
    removals = [sql for sql in made if "DELETE" in sql]
    assert len(looks) >= 2
    assert {frozenset(plan(sql)) for sql in looks} == {frozenset({"finished"})}
    assert {frozenset(plan(sql)) for sql in removals} == {frozenset({"primary key"})}


def test_expiry_goes_by_the_index_of_jobs_that_expire() -> None:
    Job.objects.filter(pk__in=ids([enqueue() for _ in range(5)])).update(expires_at=ago(1))
    used = used_by(Job.objects.expire)
    assert used in ({"expiry"}, {"expiry", "primary key"})


def test_a_holder_of_a_dedupe_key_is_found_by_the_dedupe_index() -> None:
    enqueue(dedupe_key="k")
    with statements() as made:
        assert not enqueue(dedupe_key="k").created
    insert, look_up = made
    assert insert.split()[0] == "INSERT"
    assert plan(look_up) == {"dedupe"}


def test_a_pending_job_that_is_replaced_is_found_by_the_dedupe_index() -> None:
    enqueue(dedupe_key="k")
    with statements() as made:
        assert not enqueue(dedupe_key="k", dedupe="replace").created
    _, replace = made
    assert plan(replace) <= {"dedupe", "primary key"}


def test_a_job_that_a_throttled_key_had_lately_is_found_by_an_index() -> None:
    ended = Job.objects.filter(status=JobStatus.DONE)
    ended.filter(pk=ended.first().pk).update(dedupe_key="k", created_at=ago(60))
    with statements() as made:
        assert not enqueue(dedupe_key="k", dedupe=Dedupe.skip_for(timedelta(hours=1))).created
    insert, look_up = made
    assert plan(look_up) <= {"dedupe", "recent"}
    if connection.vendor == "sqlite":  # on PostgreSQL a function looks
        assert plan(insert) == {"recent"}


@pytest.mark.parametrize("move", ["cancel", "retry", "reschedule"])
def test_what_people_do_to_chosen_jobs_goes_by_the_primary_key(move: str) -> None:
    jobs = [dead(dedupe_key=f"k{n}") if move == "retry" else enqueue() for n in range(20)]
    chosen = Job.objects.filter(pk__in=ids(jobs))
    arguments = {"priority": 1} if move == "reschedule" else {}
    with statements() as made:
        assert getattr(chosen, move)(**arguments).done == 20
    [update] = [sql for sql in made if "UPDATE" in sql]
    # Where few have the status that the move wants, PostgreSQL may look for them by it.
    assert plan(update) <= {"primary key", "dedupe", "finished", "claim"}
