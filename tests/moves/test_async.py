"""Every move has a twin for async code, as Django does it."""

from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue.managers.claim import ClaimMoves
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import TYPE, WORKER
from tests.moves.threads import run_async


@pytest.mark.django_db(transaction=True)
def test_a_job_lives_its_whole_life_in_async_code() -> None:
    async def life() -> dict[str, Any]:
        job = await Job.objects.aenqueue(TYPE, {"a": 1}, priority=5)
        again = await Job.objects.aenqueue(TYPE, dedupe_key="k")
        same = await Job.objects.aenqueue(TYPE, dedupe_key="k")
        many = await Job.objects.aenqueue_many([(TYPE, {}), (TYPE, {})], queue="many")
        [held] = await Job.objects.aclaim(worker_id=WORKER)
        ended = [
            await Job.objects.arelease(held),
            await Job.objects.asnooze((await Job.objects.aclaim(worker_id=WORKER))[0], 0),
            await Job.objects.afail((await Job.objects.aclaim(worker_id=WORKER))[0], "no", delay=0),
            await Job.objects.acomplete((await Job.objects.aclaim(worker_id=WORKER))[0], {"done": True}),
        ]
        moved = await Job.objects.filter(queue="many").areschedule(priority=3)
        cancelled = await Job.objects.filter(queue="many").acancel("enough")
        retried = await Job.objects.filter(queue="many")[:1].aretry({"b": 2})
        pruned = await Job.objects.filter(queue="many").aprune(timedelta(0))
        counts = await Job.objects.acounts()
        return {
            "ended": (ended, (await Job.objects.aget(pk=job.pk)).result),
            "claimed": (held.id, held.payload) == (job.id, {"a": 1}),
            "deduped": (same.id, same.created) == (again.id, False),
            "done": (len(many), moved.done, cancelled.done, retried.done, pruned),
            "counts": (counts[JobStatus.PENDING], counts[JobStatus.RUNNING]),
        }

    assert run_async(life()) == {
        "ended": ([True] * 4, {"done": True}),
        "claimed": True,
        "deduped": True,
        "done": (2, 2, 2, 1, 1),
        "counts": (2, 0),
    }


@pytest.mark.parametrize(
    "name", ["enqueue", "enqueue_many", "claim", "cancel", "retry", "reschedule", "prune", "counts"]
)
def test_every_move_that_people_call_has_a_twin(name: str) -> None:
    assert callable(getattr(Job.objects, name))
    assert callable(getattr(Job.objects, f"a{name}"))
    has_token = name == "claim"
    assert hasattr(Job.objects.all(), name) is not has_token


def test_what_carries_a_token_is_not_on_query_sets() -> None:
    for name in ("claim", "complete", "fail", "snooze", "release", "renew_lease", "reap", "settle"):
        assert hasattr(Job.objects, name)
        assert not hasattr(Job.objects.all(), name)
    assert ClaimMoves not in type(Job.objects.all()).mro()
