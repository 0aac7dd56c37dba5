"""The end of an attempt: complete, fail, snooze, release. Written only while the claim still holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async

from .. import conf, logs, registry, signals
from ..databases.base import Row
from ..databases.clock import from_database
from ..databases.waking import tell_waiters
from ..exceptions import (
    InvalidOption,
    JobCancelled,
    JobTimeout,
    TooManyReleases,
    TooManySnoozes,
    UnknownTypeHere,
    as_seconds,
)
from ..payloads import encode_result
from ..states import FINISHED, JobStatus
from .base import Moves
from .failures import describe, describe_cause, next_delay
from .outcomes import Done, Failed, Outcome, Released, Snoozed, UnknownHere

if TYPE_CHECKING:
    from ..models import Job

#: "Work it out from the type's retry rule."
BY_TYPE: Any = object()


@dataclass(slots=True)
class Settlement:
    """What came of a batch of outcomes: those written, with the job's new status, and those not written."""

    accepted: list[tuple[Outcome, JobStatus]] = field(default_factory=list)
    lost: list[Outcome] = field(default_factory=list)
    held_up: list[Outcome] = field(default_factory=list)  # their rows are locked by another transaction

    @property
    def written(self) -> dict[UUID, JobStatus]:
        """The new status of each job whose outcome was accepted."""
        return {outcome.job.id: status for outcome, status in self.accepted}

    def __or__(self, other: Settlement) -> Settlement:
        return Settlement(
            self.accepted + other.accepted, self.lost + other.lost, self.held_up + other.held_up
        )


class FinishMoves(Moves):
    """The moves that end an attempt. Each takes a claimed job (or anything with its token)."""

    def complete(self, job: Job, result: Any = None) -> bool:
        """RUNNING → DONE with ``result`` (any JSON value). False if the claim was lost.

        Raises ``InvalidResult`` for what JSON cannot hold or what is over JOBQUEUE["MAX_RESULT_BYTES"].
        """
        return self._settle_one(job, Done(job, None, encode_result(result, conf.current().MAX_RESULT_BYTES)))

    def fail(
        self, job: Job, error: BaseException | str, *, delay: float | timedelta | None = BY_TYPE
    ) -> bool:
        """RUNNING → PENDING after ``delay`` (seconds or timedelta), or DEAD: out of attempts, or None.

        Left out, the delay follows the type's retry rule. CANCELLED if that was asked. False if the claim
        was lost.
        """
        exception = RuntimeError(error) if isinstance(error, str) else error
        if delay is BY_TYPE:
            delay = next_delay(exception, job, registry.find(job.job_type))
        elif delay is not None:
            delay = as_seconds(delay)
        outcome = Failed(job, failure=describe(exception, job=job), delay=delay)
        return self._settle_one(job, outcome)

    def snooze(self, job: Job, delay: float | timedelta) -> bool:
        """RUNNING → PENDING after ``delay``, not counted; DEAD past JOBQUEUE["MAX_SNOOZES"]."""
        return self._settle_one(job, Snoozed(job, delay=as_seconds(delay)))

    def release(self, job: Job) -> bool:
        """RUNNING → PENDING as it was, not counted; past JOBQUEUE["MAX_RELEASES"] the attempt counts."""
        return self._settle_one(job, Released(job, 0.0))

    async def acomplete(self, job: Job, result: Any = None) -> bool:
        """``complete`` for async code."""
        return await sync_to_async(self.complete)(job, result)

    async def afail(
        self, job: Job, error: BaseException | str, *, delay: float | timedelta | None = BY_TYPE
    ) -> bool:
        """``fail`` for async code."""
        return await sync_to_async(self.fail)(job, error, delay=delay)

    async def asnooze(self, job: Job, delay: float | timedelta) -> bool:
        """``snooze`` for async code."""
        return await sync_to_async(self.snooze)(job, delay)

    async def arelease(self, job: Job) -> bool:
        """``release`` for async code."""
        return await sync_to_async(self.release)(job)

    def settle(self, worker_id: str, outcomes: Sequence[Outcome], *, wait: bool = True) -> Settlement:
        """Write many outcomes of one worker, one statement per kind.

        An outcome that is not accepted and is ``unsure`` is looked up: if the row shows that it was
        written the first time, it counts as written. Without ``wait``, rows that another transaction has
        locked are passed over and answered as held up.
        """
        kinds: dict[type[Outcome], list[Outcome]] = defaultdict(list)
        twice: list[Outcome] = []  # a lost claim of a job and a later one: one after the other
        seen: set[int] = set()
        for outcome in outcomes:
            job_id = outcome.job.id.int  # a UUID's own hash is worked out in Python each time
            (twice if job_id in seen else kinds[type(outcome)]).append(outcome)
            seen.add(job_id)
        settlement = Settlement()
        ended: list[Any] = []
        for kind, batch in kinds.items():
            rows = _WRITERS[kind](self, worker_id, batch, wait)
            ended += _awaited(rows)
            if kind is Done and len(rows) == len(batch):
                self._tell_done(batch, settlement)
            else:
                self._sort(worker_id, batch, rows, settlement)
        tell_waiters(self.db, [self._database.to_id(one) for one in ended])
        return settlement | self.settle(worker_id, twice, wait=wait) if twice else settlement

    def _tell_done(self, batch: Sequence[Outcome], settlement: Settlement) -> None:
        """All were written, which is what mostly happens: nothing is looked up job by job."""
        settlement.accepted += [(outcome, JobStatus.DONE) for outcome in batch]
        if signals.has_listeners(signals.job_finished, self.model):
            for outcome in batch:
                self._announce_finished(outcome, JobStatus.DONE, "")

    def _sort(
        self, worker_id: str, batch: Sequence[Outcome], rows: Sequence[Row], settlement: Settlement
    ) -> None:
        """Which of a batch were written, by the rows that came back."""
        written = {self._database.to_id(row[0]): row for row in rows}
        missing = {one.job.id: one for one in batch if one.job.id not in written}
        if missing:
            self._look_up(worker_id, missing, written, settlement)
        held_up = {one.job.id for one in settlement.held_up}
        self._tell([one for one in batch if one.job.id not in held_up], written, settlement)

    def _look_up(
        self, worker_id: str, missing: dict[UUID, Outcome], written: dict[UUID, Row], settlement: Settlement
    ) -> None:
        """What became of outcomes that were not accepted: locked, written before, or lost."""
        for row in self._database.standing(self._connection, list(missing)):
            job_id, worker, fence, status, _, text = self._database.to_id(row[0]), *row[1:]
            outcome = missing[job_id]
            if (worker, fence) != (worker_id, outcome.job.fence):
                continue
            if status == JobStatus.RUNNING:
                settlement.held_up.append(outcome)
            elif outcome.unsure and outcome.shows(status, text):
                written[job_id] = (job_id, fence, *row[3:])

    def release_held(
        self,
        worker_id: str,
        only: Collection[tuple[UUID, int]] | None = None,
        *,
        started: Collection[UUID] = (),
    ) -> int:
        """Release the jobs that the table says this worker holds, or ``only`` these (id, fence); how many.

        For a worker that was stopped, with the jobs that had ``started``; and for jobs of a claim whose
        answer was lost. Rows that another transaction has locked hold up nobody: they go by their leases.
        """
        if only is None:
            held = self._database.held_by(self._connection, worker_id)
            only = [(self._database.to_id(one), fence) for one, fence, _ in held]
        rows = [(one, fence, 0.0 if one in started else None) for one, fence in only]
        if not rows:
            return 0
        released = self._database.release(self._connection, worker_id, rows, False, _release_bound())
        tell_waiters(self.db, [self._database.to_id(one) for one in _awaited(released)])
        return len(released)

    def fail_stuck(self, worker_id: str, ids: Collection[UUID]) -> None:
        """``fail`` the jobs among these that this worker, which is gone, holds: they ended only with it.

        The cause is ``JobCancelled`` where that was asked (so it is CANCELLED), else ``JobTimeout``.
        Rows that another transaction has locked go by their leases.
        """
        held = self.model.objects.using(self.db).filter(
            pk__in=ids, worker_id=worker_id, status=JobStatus.RUNNING
        )
        outcomes: list[Outcome] = []
        for job in held:
            job_type = registry.find(job.job_type)
            timeout = JobTimeout if job_type is None else job_type.timeout_error
            cause = timeout if job.cancel_requested_at is None else JobCancelled
            failure = describe_cause(
                cause, "it did not end when it was interrupted, so its process was ended"
            )
            delay = next_delay(cause(), job, job_type)
            outcomes.append(Failed(job, failure=failure, delay=delay))
        self.settle(worker_id, outcomes, wait=False)

    def _settle_one(self, job: Job, outcome: Outcome) -> bool:
        if not job.worker_id:
            raise InvalidOption(
                f"Job {job.id} was never claimed, so there is no attempt to end. Claim it first."
            )
        return bool(self.settle(job.worker_id, [outcome]).written)

    def _tell(self, batch: Sequence[Outcome], written: dict[UUID, Row], settlement: Settlement) -> None:
        """Sort a batch into written and lost; log and announce each."""
        for outcome in batch:
            job = outcome.job
            row = written.get(job.id)
            if row is None:
                settlement.lost.append(outcome)
                continue
            status = JobStatus(row[2])
            settlement.accepted.append((outcome, status))
            failed = isinstance(outcome, Failed)
            if status is JobStatus.DONE:
                self._announce_finished(outcome, status, "")
            elif status in FINISHED:
                logs.attempt_failed(job, status.name, row[4], None)
                self._announce_finished(outcome, status, row[4])
            elif failed:
                run_after = from_database(row[3])
                logs.attempt_failed(job, status.name, row[4], run_after)
                signals.announce(signals.job_retried, self.model, job, error=row[4], run_after=run_after)
        logs.claims_lost([one.job for one in batch if one.job.id not in written])

    def _announce_finished(self, outcome: Outcome, status: JobStatus, error: str) -> None:
        signals.announce(signals.job_finished, self.model, outcome.job, status=status, error=error)


def _awaited(rows: Sequence[Row]) -> list[Any]:
    """The ids, as the database gave them, of jobs that have ended and that somebody waits for."""
    return [row[0] for row in rows if row[5] and row[2] in FINISHED]


def _complete(moves: FinishMoves, worker_id: str, batch: Sequence[Any], wait: bool) -> list[Row]:
    rows = [(one.job.id, one.job.fence, one.started, one.result) for one in batch]
    written = moves._database.complete(moves._connection, worker_id, rows, wait)
    return [(one, None, JobStatus.DONE, None, "", awaited) for one, awaited in written]


def _fail(moves: FinishMoves, worker_id: str, batch: Sequence[Any], wait: bool) -> list[Row]:
    rows = [(one.job.id, one.job.fence, one.started, one.delay, *one.failure) for one in batch]
    return moves._database.fail(moves._connection, worker_id, rows, wait)


def _snooze(moves: FinishMoves, worker_id: str, batch: Sequence[Any], wait: bool) -> list[Row]:
    most = conf.current().MAX_SNOOZES
    failure = describe_cause(TooManySnoozes, f"snoozed more than {most} times")
    rows = [(one.job.id, one.job.fence, one.started, one.delay) for one in batch]
    return moves._database.snooze(
        moves._connection, worker_id, rows, wait, {"most": most, **failure.as_params()}
    )


def _release_bound() -> dict[str, object]:
    most = conf.current().MAX_RELEASES
    failure = describe_cause(TooManyReleases, f"given back more than {most} times, and no attempt is left")
    return {"most": most, **failure.as_params()}


def _release(moves: FinishMoves, worker_id: str, batch: Sequence[Any], wait: bool) -> list[Row]:
    rows = [(one.job.id, one.job.fence, one.started) for one in batch]
    return moves._database.release(moves._connection, worker_id, rows, wait, _release_bound())


def _release_unknown(moves: FinishMoves, worker_id: str, batch: Sequence[Any], wait: bool) -> list[Row]:
    grace = conf.current().UNKNOWN_TYPE_GRACE
    failure = describe_cause(UnknownTypeHere, f"no worker that took the job in {grace} knew its type")
    rows = [(one.job.id, one.job.fence) for one in batch]
    too_long = {"grace": grace.total_seconds(), **failure.as_params()}
    return moves._database.release_unknown(moves._connection, worker_id, rows, wait, too_long)


_WRITERS: dict[type[Outcome], Callable[[FinishMoves, str, Sequence[Any], bool], list[Row]]] = {
    Done: _complete,
    Failed: _fail,
    Snoozed: _snooze,
    Released: _release,
    UnknownHere: _release_unknown,
}
