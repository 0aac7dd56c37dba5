"""On SQLite a claim reads its rows by their time: as one text where they are short, else row by row."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from django_jobqueue.databases.claiming import ClaimRequest
from django_jobqueue.managers.claim import ClaimedJob
from django_jobqueue.models import Job
from tests.moves.factories import enqueue, statements

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

#: With what JSON, and JSON inside of JSON, has to write in another way.
ODD = '"\\\n\x1f\u2028ä𝄞</script>'


def claim(limit: int = 10, worker_id: str = "one") -> list[ClaimedJob]:
    return Job.objects.claim_for_worker(ClaimRequest(worker_id=worker_id, limit=limit, lease=60))


def test_short_and_long_ones_and_those_that_failed_before_come_unchanged_and_in_order() -> None:
    failed = enqueue({"text": ODD})
    [held] = claim()
    assert Job.objects.fail(held, ODD, delay=0)
    long = enqueue({"text": ODD * 3_000}, priority=2)
    short = enqueue({"text": ODD, "number": 2**53, "float": 0.1, "none": None}, priority=1, lock_key="ä")
    with statements() as sent:
        jobs = claim()

    assert len(sent) == 3
    assert [job.id for job in jobs] == [long.pk, short.pk, failed.pk]
    assert [job.payload for job in jobs] == [long.payload, short.payload, failed.payload]
    assert [(job.fence, job.attempts, job.priority, job.lock_key, job.queue) for job in jobs] == [
        (1, 1, 2, None, "default"),
        (1, 1, 1, "ä", "default"),
        (2, 2, 0, None, "default"),
    ]
    assert [job.errors_text is None for job in jobs] == [True, True, False]
    assert all(0 <= job.waited < 60 for job in jobs)


def test_a_claim_of_nothing_reads_nothing() -> None:
    with statements() as sent:
        assert claim() == []
    assert len(sent) == 1


def test_a_claim_that_others_hold_jobs_beside_reads_its_own() -> None:
    first, second = enqueue(), enqueue()
    assert [job.id for job in claim(1)] == [first.pk]
    assert [job.id for job in claim(1, worker_id="two")] == [second.pk]


def test_claims_of_the_same_time_and_of_an_earlier_one_read_only_their_own() -> None:
    jobs = [enqueue(run_after=datetime(2020, 1, 1, tzinfo=UTC)) for _ in range(4)]
    now = datetime.now(UTC) + timedelta(hours=1)
    with time_machine.travel(now, tick=False) as traveller:
        claims = [claim(1), claim(1)]
        traveller.shift(-1)
        claims += [claim(1)]
        traveller.shift(1)
        claims += [claim(1)]
    assert [[job.id for job in one] for one in claims] == [[job.pk] for job in jobs]
