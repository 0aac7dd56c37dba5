"""A worker's own connections keep plans: made for a table that is empty, used when it has a million rows."""

from collections.abc import Iterator

import pytest
from django.db import connection

from django_jobqueue.databases import database_for
from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.managers.outcomes import Done
from django_jobqueue.models import Job
from tests.moves.factories import claim, enqueue, heads

from .test_plans import plan

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


@pytest.fixture
def keeping() -> Iterator[None]:
    """A new connection, with its plans kept."""
    connection.close()
    connection.ensure_connection()
    database_for("default").keep_plans(connection)
    yield
    connection.close()


def kept() -> list[tuple[str, str]]:
    """Of each statement that the server has a plan for: its text, and what executes it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements")
        rows = cursor.fetchall()
    return [
        (sql, f'EXECUTE "{name}"({", ".join(["NULL"] * count)})' if count else f'EXECUTE "{name}"')
        for name, sql, count in rows
    ]


def work(rounds: int = 4) -> None:
    """What a worker does all day, with two jobs in the table."""
    for _ in range(rounds):
        enqueue()
        enqueue(queue="other")
        marks = heads()
        request = ClaimRequest(worker_id="w", limit=100, lease=60, exclude_types=["tests:other"])
        Job.objects.next_due(request)
        jobs = claim(1, worker_id="w")
        Job.objects.settle("w", [Done(job) for job in jobs], wait=False)
        for limit in (1, 100, 500):
            marked = ClaimRequest(worker_id="w", limit=limit, lease=60, marks=marks)
            Job.objects.claim_for_worker(marked)
            claim(limit, worker_id="w")
    Job.objects.all().delete()


@pytest.mark.usefixtures("keeping")
def test_plans_made_for_an_empty_table_go_by_the_indexes_that_a_full_one_needs() -> None:
    work()
    plans = kept()
    claims = [execute for sql, execute in plans if "lease_until = (" in sql]
    outcomes = [execute for sql, execute in plans if "status = 3" in sql and "UPDATE" in sql]
    looks = [execute for sql, execute in plans if sql.split()[0] == "WITH" and "UPDATE" not in sql]
    assert len(claims) == 6  # three sizes, from the heads of the lanes and from marks
    assert outcomes
    assert looks
    for execute in claims:
        assert "claim" in plan(execute)
        assert plan(execute) <= {"claim", "primary key", "lock"}
    for execute in outcomes:
        assert plan(execute) == {"primary key"}
    for execute in looks:
        assert plan(execute) == {"claim"}


@pytest.mark.usefixtures("keeping")
def test_whether_a_lock_key_is_running_is_asked_of_its_own_index() -> None:
    """Not of all running jobs, which may be many when the plan is used."""
    for n in range(300):
        enqueue(lock_key=f"k{n}")
    claim(20, worker_id="w")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE django_jobqueue_job")
    work()
    for sql, execute in kept():
        if "lease_until = (" in sql:
            assert "worker" not in plan(execute)


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize("limit", [1, 100, 500])
def test_what_many_limits_have_in_common_is_one_statement(limit: int) -> None:
    for n in range(6):
        request = ClaimRequest(worker_id="w", limit=limit + n, lease=60)
        Job.objects.claim_for_worker(request)
    assert len([sql for sql, _ in kept() if "lease_until = (" in sql]) == 1


def test_a_connection_whose_server_answers_with_another_process_keeps_no_plans() -> None:
    """As behind a pooler: the process that answers is not the one that the connection was told of."""
    connection.close()
    connection.ensure_connection()
    raw = connection.connection

    class Pooled:
        info = type("Info", (), {"backend_pid": raw.info.backend_pid + 1})()

        def __getattr__(self, name: str) -> object:
            return getattr(raw, name)

    connection.connection = Pooled()
    try:
        database_for("default").keep_plans(connection)
        assert raw.prepare_threshold is None
    finally:
        connection.connection = raw
        connection.close()
    for _ in range(6):
        claim(1)
    assert kept() == []
