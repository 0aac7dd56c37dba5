"""PostgreSQL may choose any plan, for instance with statistics of an hour ago: limits hold all the same."""

import pytest
from django.db import connection

from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.models import Job
from tests.moves.factories import ago, claim, claimed, enqueue, heads, lose_lease, selected

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

#: Ways of joining and of keeping rows that are forbidden to the planner.
FORBIDDEN = {
    "none": [],
    "all but nested loops": ["hashjoin", "mergejoin", "hashagg", "material", "sort"],
    "nested loops": ["nestloop"],
    "index scans": ["indexscan", "indexonlyscan", "bitmapscan"],
    "sequential scans": ["seqscan", "material", "hashjoin"],
}


@pytest.fixture(params=FORBIDDEN.values(), ids=FORBIDDEN)
def stale(request: pytest.FixtureRequest) -> None:
    """One row analysed, fifty there, and a planner in a corner."""
    first = enqueue()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE django_jobqueue_job")
        for way in request.param:
            cursor.execute(f"SET LOCAL enable_{way} = off")
    selected(first).delete()


@pytest.mark.usefixtures("stale")
@pytest.mark.parametrize("limit", [3, 20])
def test_a_claim_of_some_takes_so_many(limit: int) -> None:
    for n in range(50):
        enqueue(queue=f"q{n % 3}", priority=n % 2)
    assert len(claim(limit)) == limit
    assert Job.objects.counts()[2] == limit


@pytest.mark.usefixtures("stale")
def test_a_claim_of_three_from_one_queue_takes_three() -> None:
    for _ in range(50):
        enqueue()
    assert len(claim(3)) == 3
    assert Job.objects.counts()[2] == 3


@pytest.mark.usefixtures("stale")
@pytest.mark.parametrize("queues", [1, 3])
@pytest.mark.parametrize("limit", [3, 20])
def test_a_claim_from_marks_takes_no_more_than_it_may(limit: int, queues: int) -> None:
    for n in range(50):
        enqueue(queue=f"q{n % queues}", priority=n % 2 if queues > 1 else 0)
    request = ClaimRequest(worker_id="w", limit=limit, lease=60, marks=heads())
    assert len(Job.objects.claim_for_worker(request)) == limit
    assert Job.objects.counts()[2] == limit


@pytest.mark.usefixtures("stale")
def test_a_sweep_of_three_takes_three() -> None:
    jobs = [claimed() for _ in range(20)]
    lose_lease(*jobs)
    assert Job.objects.reap(size=3) == 3
    assert Job.objects.counts()[1] == 3


@pytest.mark.usefixtures("stale")
def test_three_expire_when_three_were_asked_for() -> None:
    jobs = [enqueue() for _ in range(20)]
    selected(*jobs).update(expires_at=ago(1))
    assert Job.objects.expire(3) == 3
    assert Job.objects.counts()[5] == 3
