"""All moves in any order by several workers, on the real database, against a model in plain Python.

After each step the whole table is compared with the model: what stands where, what was counted, who holds it.
"""

import os
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)

from django_jobqueue.databases.clock import DatabaseAgo
from django_jobqueue.managers.outcomes import Released
from django_jobqueue.models import Job, JobStatus
from django_jobqueue.states import FINISHED
from tests.moves.factories import TYPE

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
WORKERS = st.sampled_from(["one", "two"])
KEYS = st.sampled_from([None, None, None, "a", "b"])
FAR = timedelta(days=1)
#: How many sequences of moves are tried; `make mutants` asks for more than the suite has time for.
EXAMPLES = "JOBQUEUE_TEST_EXAMPLES"


@dataclass
class Model:
    """One job as it has to be."""

    number: int
    priority: int
    max_attempts: int
    dedupe: str | None
    lock: str | None
    status: JobStatus = PENDING
    attempts: int = 0
    fence: int = 0
    crashes: int = 0
    snoozes: int = 0
    releases: int = 0
    errors: int = 0
    worker: str | None = None
    due: bool = True
    started: bool = False  # recorded
    lapsed: bool = False  # its lease is over
    asked: bool = False  # to stop
    expired: bool = False

    def shown(self) -> tuple[Any, ...]:
        """What the table has of it."""
        return (
            self.status,
            *(self.priority, self.attempts, self.max_attempts, self.fence, self.crashes),
            *(self.snoozes, self.releases, self.errors),
            self.worker,
        )

    def back(self, again: bool) -> None:
        """An attempt is over without success."""
        self.status = CANCELLED if self.asked else PENDING if again else DEAD
        self.started = self.lapsed = False


@dataclass(frozen=True)
class Claim:
    """A worker's word for a claim: a job as it got it."""

    job: Any = field(compare=False)
    model: Model = field(compare=False)
    fence: int
    worker: str

    @property
    def holds(self) -> bool:
        """Whether it does by the model."""
        model = self.model
        return (model.status, model.fence, model.worker) == (RUNNING, self.fence, self.worker)


class Moves(RuleBasedStateMachine):
    """Rules are moves; bundles are the claims that workers believe to hold, for long after they lost them."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        Job.objects.all().delete()
        self.models: dict[Any, Model] = {}
        self.numbers = count()

    # What people do.

    @rule(
        priority=st.integers(-1, 1),
        max_attempts=st.integers(1, 3),
        dedupe=KEYS,
        lock=KEYS,
        due=st.sampled_from([True, True, False]),
    )
    def enqueue(
        self, priority: int, max_attempts: int, dedupe: str | None, lock: str | None, due: bool
    ) -> None:
        active = [
            one for one in self.models.values() if one.dedupe == dedupe and one.status in (PENDING, RUNNING)
        ]
        job = Job.objects.enqueue(
            TYPE,
            {},
            priority=priority,
            max_attempts=max_attempts,
            dedupe_key=dedupe,
            lock_key=lock,
            run_after=None if due else FAR,
        )
        if dedupe is not None and active:
            assert self.models[job.pk] is active[0]
            assert not job.created
        else:
            assert job.created
            self.models[job.pk] = Model(next(self.numbers), priority, max_attempts, dedupe, lock, due=due)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if (one := self.some(data)) is None:
            return
        job, model = one
        done = int(Job.objects.filter(pk=job).cancel())
        assert done == (model.status is PENDING or (model.status is RUNNING and not model.asked))
        if model.status is PENDING:
            model.status = CANCELLED
        elif model.status is RUNNING:
            model.asked = True

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        if (one := self.some(data)) is None:
            return
        job, model = one
        taken = model.dedupe is not None and any(
            other.dedupe == model.dedupe and other.status in (PENDING, RUNNING)
            for other in self.models.values()
        )
        possible = model.status in (DEAD, CANCELLED) and not taken
        assert int(Job.objects.filter(pk=job).retry()) == possible
        if possible:
            model.status, model.attempts, model.due, model.asked = PENDING, 0, True, False
            model.crashes = model.snoozes = model.releases = 0

    @rule(data=st.data(), due=st.booleans(), priority=st.integers(-1, 1))
    def reschedule(self, data: st.DataObject, due: bool, priority: int) -> None:
        if (one := self.some(data)) is None:
            return
        job, model = one
        done = int(Job.objects.filter(pk=job).reschedule(timedelta(0) if due else FAR, priority=priority))
        assert done == (model.status is PENDING)
        if done:
            model.due, model.priority = due, priority

    @rule()
    def prune(self) -> None:
        """All that has ended and is kept for no time."""
        Job.objects.filter(status__in=FINISHED).prune()
        left = set(Job.objects.values_list("pk", flat=True))
        assert {job for job, model in self.models.items() if model.status not in FINISHED} <= left
        self.models = {job: model for job, model in self.models.items() if job in left}

    # What workers do.

    @rule(target=claims, worker=WORKERS, limit=st.integers(1, 3), suspects=st.booleans())
    def claim(self, worker: str, limit: int, suspects: bool) -> Any:
        expected = self.claimable(limit, suspects)
        jobs = Job.objects.claim(worker_id=worker, limit=limit, suspects=suspects)
        assert [job.pk for job in jobs] == expected
        for job in jobs:
            model = self.models[job.pk]
            model.status, model.worker, model.lapsed = RUNNING, worker, False
            model.attempts += 1
            model.fence += 1
            model.started = model.crashes > 0
        claims = [Claim(job, self.models[job.pk], job.fence, worker) for job in jobs]
        return claims[0] if claims else Claim(None, Model(-1, 0, 1, None, None), -1, worker)

    def claimable(self, limit: int, suspects: bool) -> list[Any]:
        """What a claim gives out by the rules: in order, one per lock key, a suspect alone."""
        running = {one.lock for one in self.models.values() if one.status is RUNNING}
        due = [
            (job, one)
            for job, one in self.models.items()
            if one.status is PENDING
            and one.due
            and not one.expired
            and (one.lock is None or one.lock not in running)
        ]
        order = {
            job: at
            for at, job in enumerate(
                Job.objects.order_by("-priority", "run_after", "id").values_list("pk", flat=True)
            )
        }
        due = sorted(due, key=lambda pair: order[pair[0]])[:limit]
        taken: list[Any] = []
        seen: set[str] = set()
        for job, one in due:
            if one.crashes:
                return taken or ([job] if suspects else [])
            if one.lock is None or one.lock not in seen:
                taken.append(job)
            seen |= {one.lock} if one.lock is not None else set()
        return taken

    @rule(target=claims, worker=WORKERS)
    def claim_give_back_and_claim_again(self, worker: str) -> Any:
        """The same worker has the job a second time, and its first word is worth nothing any more."""
        first = self.claim(worker, 100, True)
        if first.job is None:
            return first
        self.release(first, True)
        again = self.claim(worker, 100, True)
        self.late(first)
        return again

    @rule(claim=claims)
    def late(self, claim: Claim) -> None:
        """Whoever holds a job no longer writes nothing about it."""
        if claim.job is not None and not claim.holds:
            assert not Job.objects.fail(claim.job, "late")
            assert not Job.objects.snooze(claim.job, 0)
            assert not Job.objects.release(claim.job)

    @rule(claim=consumes(claims), again=st.booleans())
    def complete(self, claim: Claim, again: bool) -> None:
        if claim.job is None:
            return
        holds = claim.holds
        assert Job.objects.complete(claim.job, 1) is holds
        if holds:
            claim.model.status = DONE
        if again:  # whoever asks twice is told that it is not held
            assert not Job.objects.complete(claim.job, 2)

    @rule(claim=claims, dead=st.booleans())
    def fail(self, claim: Claim, dead: bool) -> None:
        if claim.job is None:
            return
        holds, model = claim.holds, claim.model
        assert Job.objects.fail(claim.job, "no", delay=None if dead else 0) is holds
        if holds:
            model.errors += 1
            model.back(not dead and model.attempts < model.max_attempts)

    @rule(claim=claims)
    def snooze(self, claim: Claim) -> None:
        if claim.job is None:
            return
        holds, model = claim.holds, claim.model
        assert Job.objects.snooze(claim.job, 0) is holds
        if holds:
            model.attempts -= 1
            model.snoozes += 1
            model.back(True)

    @rule(claim=claims, started=st.booleans())
    def release(self, claim: Claim, started: bool) -> None:
        if claim.job is None:
            return
        holds, model = claim.holds, claim.model
        if started:
            assert Job.objects.release(claim.job) is holds
        else:
            assert bool(Job.objects.settle(claim.worker, [Released(claim.job)]).written) is holds
        if holds:
            model.attempts -= 1
            model.releases += started
            model.back(True)

    @rule(worker=WORKERS, start=st.booleans())
    def renew(self, worker: str, start: bool) -> None:
        mine = {
            job: one for job, one in self.models.items() if one.status is RUNNING and one.worker == worker
        }
        started = [(job, 0.0) for job in mine] if start else []
        renewal = Job.objects.renew_lease(worker_ids=[worker], lease=60, started=started)
        assert renewal.held.get(worker, {}) == {job: one.fence for job, one in mine.items()}
        assert renewal.to_cancel.get(worker, set()) == {job for job, one in mine.items() if one.asked}
        for one in mine.values():
            one.lapsed = False
            one.started |= start

    # What time and housekeeping do.

    @rule(data=st.data())
    def let_lease_run_out(self, data: st.DataObject) -> None:
        running = [(job, one) for job, one in self.models.items() if one.status is RUNNING]
        if running:
            job, model = data.draw(st.sampled_from(running))
            Job.objects.filter(pk=job).update(lease_until=DatabaseAgo(timedelta(seconds=1)))
            model.lapsed = True

    @rule()
    def reap(self) -> None:
        lapsed = [one for one in self.models.values() if one.status is RUNNING and one.lapsed]
        assert Job.objects.reap() == len(lapsed)
        for one in lapsed:
            self.lost(one, exact=False)

    @rule(worker=WORKERS, exact=st.booleans())
    def take_over(self, worker: str, exact: bool) -> None:
        """Its supervisor saw the worker die."""
        held = [one for one in self.models.values() if one.status is RUNNING and one.worker == worker]
        assert Job.objects.reap(worker_id=worker, exact=exact) == len(held)
        for one in held:
            self.lost(one, exact)

    def lost(self, one: Model, exact: bool) -> None:
        """Its worker is gone: what had started counts."""
        one.crashes += 1 if one.started or not exact else 0
        again = not one.started or one.attempts < one.max_attempts
        one.errors += one.started
        one.attempts -= not one.started
        one.back(again)

    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        pending = [(job, one) for job, one in self.models.items() if one.status is PENDING]
        if pending:
            job, model = data.draw(st.sampled_from(pending))
            Job.objects.filter(pk=job).update(expires_at=DatabaseAgo(timedelta(seconds=1)))
            assert Job.objects.expire() == 1
            model.status = CANCELLED
            Job.objects.filter(pk=job).update(expires_at=None)

    # What is always so.

    @invariant()
    def table_is_as_the_model(self) -> None:
        fields = (
            "priority",
            "attempts",
            "max_attempts",
            "fence",
            "crashes",
            "snoozes",
            "releases",
            "errors",
            "worker_id",
        )
        table = {row[0]: row[1:] for row in Job.objects.values_list("pk", "status", *fields)}
        found = {job: (JobStatus(row[0]), *row[1:8], len(row[8]), row[9]) for job, row in table.items()}
        assert found == {job: model.shown() for job, model in self.models.items()}

    @invariant()
    def keys_are_held_once(self) -> None:
        for status, key in (((PENDING, RUNNING), "dedupe"), ((RUNNING,), "lock")):
            held = [
                getattr(one, key)
                for one in self.models.values()
                if one.status in status and getattr(one, key)
            ]
            assert len(held) == len(set(held))

    def some(self, data: st.DataObject) -> tuple[Any, Model] | None:
        """Any job there is."""
        return data.draw(st.sampled_from(list(self.models.items()))) if self.models else None


@pytest.mark.django_db(transaction=True)
def test_every_order_of_moves_keeps_the_table_as_the_model_says() -> None:
    # One statement after the other, on one connection; for claims at the same instant see test_claim_races.
    run_state_machine_as_test(
        Moves,
        settings=settings(
            max_examples=int(os.environ.get(EXAMPLES, "100")),
            stateful_step_count=50,
            deadline=None,
            # Not shrunk: fifty steps are read sooner than that is done.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
    assert not connection.in_atomic_block
