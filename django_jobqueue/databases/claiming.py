"""What a claim asks for, and the parts of its SQL that are the same on every database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from uuid import UUID

from .base import JOB_TABLE, QUEUE_TABLE, Dialect, Row

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


class Mark(NamedTuple):
    """A place in a lane: the due time and id of a job there."""

    queue: str
    priority: int
    run_after: Any  # as the database gave it
    id: UUID


@dataclass(frozen=True, kw_only=True)
class ClaimRequest:
    """For whom to claim, how many, for how long, from where."""

    worker_id: str
    limit: int
    lease: float  # seconds
    queues: Sequence[str] | None = None  # None: all
    exclude_queues: Sequence[str] = ()
    exclude_types: Sequence[str] = ()
    suspects: bool = True  # may a job whose worker was lost be taken (always alone)
    keyed: bool = True  # may jobs with a lock key be taken
    marks: Sequence[Mark] = ()  # look at these lanes only, each from its mark on; none: at everything

    def __post_init__(self) -> None:
        if self.marks:
            # Of the jobs with one key the first must run first, and it may stand before the mark.
            object.__setattr__(self, "keyed", False)


class Claiming(Dialect):
    """One statement: find the first due jobs, make them this worker's, and answer with them.

    A *lane* is one queue at one priority: within it the index is already in claim order, so the cost of a
    claim depends on the number of lanes and the jobs taken, not on jobs that are done, or wait for a later
    time, or stand in a queue that this worker does not serve.
    """

    #: What is known of a lane.
    lane_columns: ClassVar[str] = "queue, priority"
    #: Columns to sort the answer by, at its end.
    place_columns: ClassVar[int] = 1
    #: SQL of a job's due time for a mark, where it is of use to go on from one: where finished entries stay
    #: in the index for a while.
    mark_time: ClassVar[str] = ""
    #: SQL of when a job was enqueued, as text where the driver takes long over a timestamp.
    created_at: ClassVar[str] = "created_at"

    def claim(
        self, connection: BaseDatabaseWrapper, request: ClaimRequest, columns: Sequence[str]
    ) -> list[Row]:
        """The claimed jobs' ``columns``, in claim order."""
        rows = self.run(connection, self.claim_sql(request, columns), self.claim_params(request))
        return self.in_claim_order(rows)

    def in_claim_order(self, rows: Sequence[Row]) -> list[Row]:
        """The rows sorted by the columns at their end, and without these."""
        width = self.place_columns
        return [row[:-width] for row in sorted(rows, key=lambda row: row[-width:])]

    @property
    @abstractmethod
    def waited(self) -> str:
        """SQL: the seconds from when a claimed job was due to its claim."""

    @abstractmethod
    def claim_sql(self, request: ClaimRequest, columns: Sequence[str]) -> str:
        """The statement; it returns ``columns`` and then what to sort by: RETURNING has no order."""

    def claim_params(self, request: ClaimRequest) -> dict[str, Any]:
        """The parameters of the statement."""
        return {
            "worker_id": request.worker_id,
            "size": request.limit,
            "lease": request.lease,
            "queues": self.values(request.queues or ()),
            "exclude_queues": self.values(request.exclude_queues),
            "exclude_types": self.values(request.exclude_types),
            "suspects": request.suspects,
        }

    def lanes(self, request: ClaimRequest) -> str:
        """CTEs ``lane`` (where to look) and ``served`` (those of them that this claim may take from)."""
        served = [f"NOT EXISTS (SELECT 1 FROM {QUEUE_TABLE} AS q WHERE q.name = lane.queue AND q.paused)"]
        if request.queues is not None:
            served.append(self.among("lane.queue", "queues"))
        if request.exclude_queues:
            served.append(f"NOT ({self.among('lane.queue', 'exclude_queues')})")
        return f"""
            lane({self.lane_columns}) AS ({self.known_lanes(request)}),
            served AS (
                SELECT {self.lane_columns} FROM lane WHERE queue IS NOT NULL AND {" AND ".join(served)}
            )"""

    def known_lanes(self, request: ClaimRequest) -> str:
        """A SELECT of every queue and priority with pending jobs: one index probe each."""
        return f"{self.first_lane()} UNION ALL {self.next_lane()}"

    @abstractmethod
    def first_lane(self) -> str:
        """A SELECT of the first lane, in descending order of queue and priority."""

    @abstractmethod
    def next_lane(self) -> str:
        """A SELECT of the lane after ``lane``."""

    def due(self, request: ClaimRequest, job: str) -> str:
        """The condition on ``job``, in the lane ``served``, to be taken now."""
        conditions = [
            f"{job}.status = 1",
            f"{job}.queue = served.queue",
            f"{job}.priority = served.priority",
            f"{job}.run_after <= {self.now}",
            f"({job}.expires_at IS NULL OR {job}.expires_at > {self.now})",
        ]
        if request.keyed:
            conditions.append(
                f"({job}.lock_key IS NULL OR NOT EXISTS (SELECT 1 FROM {JOB_TABLE} AS r "
                f"WHERE r.lock_key = {job}.lock_key AND r.status = 2 AND r.lock_key IS NOT NULL "
                "LIMIT 1 OFFSET 0))"  # so it is asked key by key, and never of all running jobs at once
            )
        else:
            conditions.append(f"{job}.lock_key IS NULL")
        if request.exclude_types:
            conditions.append(f"NOT ({self.among(f'{job}.job_type', 'exclude_types')})")
        return " AND ".join(conditions)

    def claimed(self) -> str:
        """The assignments of a claim."""
        return f"""
            status = 2, attempts = job.attempts + 1, fence = job.fence + 1, worker_id = %(worker_id)s,
            claimed_at = {self.now}, lease_until = {self.shifted(self.now, "%(lease)s")},
            run_started_at = CASE WHEN job.crashes > 0 THEN {self.now} ELSE NULL END,
            progress = NULL, progress_note = '', updated_at = {self.now}"""
