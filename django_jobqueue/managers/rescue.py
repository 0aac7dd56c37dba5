"""What keeps claims alive, and takes back those of workers that are gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async

from .. import conf, logs, signals
from ..bounds import check_whole
from ..databases.base import Row
from ..databases.waking import tell_waiters, wake_workers
from ..exceptions import JobExpired, TooManyCrashes, WorkerLost
from ..states import FINISHED, JobStatus
from .base import Moves
from .claim import LIMIT_MAX, check_lease
from .failures import describe_cause

#: Jobs in one statement of a sweep.
SWEEP = 500


@dataclass(slots=True)
class Renewal:
    """What a renewal found: by worker, the fences of all jobs it still holds, and who is to be cancelled."""

    held: dict[str, dict[UUID, int]] = field(default_factory=lambda: defaultdict(dict))
    to_cancel: dict[str, set[UUID]] = field(default_factory=lambda: defaultdict(set))


class RescueMoves(Moves):
    """Moves by worker and by lease."""

    def renew_lease(
        self, *, worker_ids: Sequence[str], lease: float = 60, started: Sequence[tuple[UUID, float]] = ()
    ) -> Renewal:
        """Prolong all claims of these workers to ``lease`` seconds from now.

        Expired ones too, as long as nobody has reaped them.

        ``started``: (job id, seconds since its handler started), recorded on the way. A job that the worker
        believes to hold and that is not in the answer was lost.
        """
        check_lease(lease)
        renewal = Renewal()
        for worker_id, one, fence, asked in self._database.renew(
            self._connection, worker_ids, lease, started
        ):
            job_id = self._database.to_id(one)
            renewal.held[worker_id][job_id] = fence
            if asked is not None:
                renewal.to_cancel[worker_id].add(job_id)
        return renewal

    def record_started(self, worker_id: str, started: Sequence[tuple[UUID, float]]) -> None:
        """Record which jobs of a worker have started: (job id, seconds since)."""
        if started:
            self._database.record_started(self._connection, worker_id, started)

    def held_by(self, worker_id: str) -> dict[UUID, tuple[int, bool]]:
        """Fence, and whether cancel was asked, of every job that this worker holds in the table."""
        rows = self._database.held_by(self._connection, worker_id)
        return {self._database.to_id(one): (fence, asked is not None) for one, fence, asked in rows}

    def report_progress(self, worker_id: str, rows: Sequence[tuple[UUID, int, float | None, str]]) -> None:
        """Store progress of held jobs: (id, fence, 0 … 1 or None, note)."""
        if rows:
            self._database.report_progress(self._connection, worker_id, rows)

    def overdue(self, size: int = LIMIT_MAX) -> set[UUID]:
        """Up to ``size`` (1 … 10,000) running jobs whose lease is over: their ids, for ``reap(only=…)``.

        On PostgreSQL without those whose row another transaction has locked: that may have kept their worker
        from renewing.
        """
        check_whole("size", size, 1, LIMIT_MAX)
        return {self._database.to_id(one) for (one,) in self._database.overdue(self._connection, size)}

    def reap(
        self,
        *,
        worker_id: str | None = None,
        exact: bool = False,
        size: int = SWEEP,
        only: Collection[UUID] | None = None,
    ) -> int:
        """Take back up to ``size`` jobs whose lease is over, or all jobs of one worker that is known dead.

        A job recorded as started loses the attempt (PENDING, or DEAD if it was the last or its worker died
        JOBQUEUE["MAX_CRASHES"] times, CANCELLED if that was asked) and is a suspect from now on. One never
        started gets its attempt back; it is a suspect too unless the record is ``exact``. ``only``: of these
        jobs. Returns how many were taken back.
        """
        check_whole("size", size, 1, LIMIT_MAX)
        errors = _loss_errors()
        rows = self._database.reap(
            self._connection, size, errors, worker_id, exact, None if only is None else list(only)
        )
        for row in rows:
            self._tell_reaped(row, str(errors["last_error"] if row[8] is None else row[9]))
        ended = [row[0] for row in rows if row[10] and row[1] in FINISHED]
        tell_waiters(self.db, [self._database.to_id(one) for one in ended])
        logs.taken_back([row[7] for row in rows if row[8] is None])
        return len(rows)

    def expire(self, size: int = SWEEP) -> int:
        """PENDING → CANCELLED for up to ``size`` jobs not started by their ``expires_at``; how many."""
        check_whole("size", size, 1, LIMIT_MAX)
        reason = expired_reason()
        rows = self._database.expire(self._connection, size, reason)
        tell_waiters(self.db, [self._database.to_id(row[0]) for row in rows if row[7]])
        for row in rows:
            job = self._partial((*row[:3], *row[4:7]))
            signals.announce(signals.job_finished, self.model, job, status=JobStatus.CANCELLED, error=reason)
        return len(rows)

    async def arenew_lease(self, **options: Any) -> Renewal:
        """``renew_lease`` for async code."""
        return await sync_to_async(self.renew_lease)(**options)

    async def areap(self, **options: Any) -> int:
        """``reap`` for async code."""
        return await sync_to_async(self.reap)(**options)

    async def aexpire(self, size: int = SWEEP) -> int:
        """``expire`` for async code."""
        return await sync_to_async(self.expire)(size)

    def _tell_reaped(self, row: Row, text: str) -> None:
        status, worker_id, started_at = JobStatus(row[1]), row[7], row[8]
        job = self._partial((row[0], *row[2:7]))
        if started_at is not None:
            logs.reaped(job, worker_id, status.name, text)
        signals.announce(signals.job_reaped, self.model, job, status=status, worker_id=worker_id)
        if status in FINISHED:
            signals.announce(signals.job_finished, self.model, job, status=status, error=text)
        else:
            wake_workers(self.db, [job.queue])

    def _partial(self, values: Sequence[Any]) -> Any:
        """A job with the columns that receivers are promised: id, type, queue, priority, attempts, max."""
        names = ("id", "job_type", "queue", "priority", "attempts", "max_attempts")
        return self.model.from_db(self.db, names, (self._database.to_id(values[0]), *values[1:]))


def _loss_errors() -> dict[str, object]:
    """What is recorded on a job whose worker was lost, and on one that this has happened to too often."""
    most = conf.current().MAX_CRASHES
    lost = describe_cause(WorkerLost, "the worker died or stopped renewing its lease while the job ran")
    poison = describe_cause(TooManyCrashes, f"{most} workers died or stopped renewing while the job ran")
    named = {f"poison_{name}": value for name, value in poison.as_params().items()}
    return {**lost.as_params(), **named, "poison_crashes": most}


def expired_reason() -> str:
    """What an expired job says."""
    return f"{JobExpired.__qualname__}: not started by its expires_at"
