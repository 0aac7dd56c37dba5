"""Moves of every kind over the same rows at once: no deadlock, no locked database, no job in two places."""

import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import Any

import pytest

from django_jobqueue.managers.failures import describe
from django_jobqueue.managers.outcomes import Done, Failed, Outcome
from django_jobqueue.models import Job, JobStatus
from tests.moves.factories import TYPE, ago, claim, ids
from tests.moves.threads import PATIENCE, together

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 2_000


def at_once(*functions: Callable[[], Any]) -> list[Any]:
    """Run all from the same instant on. The first error of any of them is raised."""
    start = Barrier(len(functions))

    def begin(function: Callable[[], Any]) -> Any:
        start.wait(PATIENCE)
        return function()

    return together(*[partial(begin, one) for one in functions])


def settle_shuffled(jobs: list[Job], seed: int) -> int:
    """Settle all in batches whose rows come in some order of their own."""
    written = 0
    shuffled = random.Random(seed).sample(jobs, len(jobs))  # noqa: S311 - the same order in every run
    for start in range(0, len(shuffled), 100):
        batch: list[Outcome] = [
            Done(job) if number % 3 else Failed(job, failure=describe(ValueError("no")), delay=0)
            for number, job in enumerate(shuffled[start : start + 100])
        ]
        written += len(Job.objects.settle("worker", batch).written)
    return written


def test_prune_reap_complete_cancel_retry_and_renew_over_the_same_rows_do_not_collide() -> None:
    Job.objects.enqueue_many([(TYPE, {})] * ROWS)
    held = claim(ROWS, worker_id="worker")
    expired = ids(held[::4])
    Job.objects.filter(pk__in=expired[:250]).update(lease_until=ago(60))
    Job.objects.filter(pk__in=expired[250:]).update(lease_until=ago(60), run_started_at=ago(90))

    pruned, _, done, also_done, cancelled, *_ = at_once(
        lambda: sum(Job.objects.prune(timedelta(0)) for _ in range(5)),
        lambda: sum(Job.objects.reap(size=100) for _ in range(10)),
        lambda: settle_shuffled(held, 1),
        lambda: settle_shuffled(held, 2),
        lambda: Job.objects.all().cancel().done,
        lambda: [Job.objects.renew_lease(worker_ids=["worker"]) for _ in range(10)],
        lambda: Job.objects.filter(status__in=[JobStatus.DEAD, JobStatus.CANCELLED]).retry().done,
        lambda: [claim(20, worker_id="other") for _ in range(10)],
    )
    assert Job.objects.count() == ROWS - pruned
    assert 0 < done + also_done <= ROWS
    assert cancelled


def test_two_batches_with_the_same_rows_in_other_orders_do_not_deadlock() -> None:
    for seed in range(5):
        Job.objects.enqueue_many([(TYPE, {})] * 400)
        held = claim(400, worker_id="worker")
        answers = at_once(*[partial(settle_shuffled, held, 10 * seed + n) for n in range(4)])
        assert sum(answers) == 400
        Job.objects.all().delete()


def test_two_people_who_cancel_the_same_jobs_in_other_orders_do_not_deadlock() -> None:
    for _ in range(3):
        Job.objects.enqueue_many([(TYPE, {})] * 1_000)
        answers = at_once(
            lambda: Job.objects.order_by("id")[:1_000].cancel().done,
            lambda: Job.objects.order_by("-id")[:1_000].cancel().done,
            lambda: Job.objects.order_by("id")[:1_000].reschedule(priority=3).done,
            lambda: Job.objects.order_by("-id")[:1_000].reschedule(timedelta(0)).done,
        )
        assert answers[0] + answers[1] == 1_000
        Job.objects.all().delete()


def test_moves_lock_rows_in_the_order_of_ids_however_they_lie_in_the_table() -> None:
    """Rows written last lie last, so here the table's own order is the reverse of that of the ids."""
    for seed in range(3):
        Job.objects.enqueue_many([(TYPE, {})] * 300)
        held = claim(300, worker_id="worker")
        for job in reversed(held):
            Job.objects.report_progress("worker", [(job.id, job.fence, 0.5, "x" * 500)])
        settled, asked, also_asked, _ = at_once(
            partial(settle_shuffled, held, seed),
            lambda: Job.objects.filter(status=JobStatus.RUNNING).cancel().done,
            lambda: Job.objects.order_by("id")[:300].cancel().done,
            lambda: Job.objects.renew_lease(worker_ids=["worker"]),
        )
        assert settled == 300
        assert asked + also_asked <= 300
        Job.objects.all().delete()
