"""``claim``: due jobs become this worker's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import IntegrityError

from ..bounds import check_whole
from ..databases.base import Row
from ..databases.claiming import ClaimRequest, Mark
from ..exceptions import InvalidOption
from ..payloads import decode
from .base import Moves
from .preparing import check_text

if TYPE_CHECKING:
    from ..models import Job

WORKER_ID_LENGTH = 64
LEASE_MAX = 86_400.0
LIMIT_MAX = 10_000


class ClaimedJob(NamedTuple):
    """A claimed job as a worker needs it, and as handlers, retry functions and signals see it.

    No model instance: the payload stays text until somebody looks at it.
    """

    id: UUID
    fence: int
    job_type: str
    queue: str
    priority: int
    attempts: int
    max_attempts: int
    crashes: int
    lock_key: str | None
    payload_text: str
    context_text: str
    waited: float = 0.0  # seconds from when it was due to its claim
    created: Any = None  # when it was enqueued, as the database gave it
    errors_text: str | None = None  # those of earlier attempts; None at the first claim
    worker_id: str = ""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload, decoded anew at each look."""
        payload: dict[str, Any] = decode(self.payload_text)
        return payload

    @property
    def context(self) -> dict[str, Any]:
        """What travelled with the job, decoded anew at each look."""
        context: dict[str, Any] = decode(self.context_text)
        return context


#: The columns of a ``ClaimedJob`` that every database gives alike, in order.
CLAIMED_COLUMNS = (*ClaimedJob._fields[:-6], "payload", "context")
#: Most jobs are claimed once.
EARLIER_ERRORS = "CASE WHEN fence > 1 THEN errors END"
WIDTH = len(ClaimedJob._fields) - 1


class ClaimMoves(Moves):
    """The move that gives jobs to workers."""

    def claim(
        self,
        *,
        worker_id: str,
        limit: int = 1,
        lease: float = 60,
        queues: Sequence[str] | None = None,
        exclude_queues: Sequence[str] = (),
        exclude_types: Sequence[str] = (),
        suspects: bool = True,
    ) -> list[Job]:
        """Take up to ``limit`` due jobs for ``worker_id`` and return them in claim order.

        Order is priority (higher first), due time, age. The claim holds for ``lease`` seconds (1 … 86,400)
        unless renewed. ``queues``: only these (None: all); paused ones never. A job whose worker was lost
        before is given out alone, or not at all with ``suspects=False``. Of jobs with one lock key at
        most one is given out, and none while one runs. Raises ``InvalidOption``.
        """
        request = ClaimRequest(
            worker_id=worker_id,
            limit=limit,
            lease=lease,
            queues=queues,
            exclude_queues=exclude_queues,
            exclude_types=exclude_types,
            suspects=suspects,
        )
        return self._loaded(self.claim_rows(request, self._columns))

    async def aclaim(self, **options: Any) -> list[Job]:
        """``claim`` for async code."""
        return await sync_to_async(self.claim)(**options)

    def claim_for_worker(self, request: ClaimRequest) -> list[ClaimedJob]:
        """``claim`` without model instances."""
        jobs, _ = self.claim_and_mark(request)
        return jobs

    def claim_and_mark(self, request: ClaimRequest) -> tuple[list[ClaimedJob], list[Mark]]:
        """``claim`` without model instances; and where the next claim may go on, if the database gains by it.

        That is in each lane at the last job taken that has no lock key: with one it takes a whole look.
        """
        to_id = self._database.to_id
        mark_time = self._database.mark_time
        columns = (*CLAIMED_COLUMNS, self._database.waited, self._database.created_at, EARLIER_ERRORS)
        rows = self.claim_rows(request, (*columns, mark_time) if mark_time else columns)
        worker = request.worker_id
        jobs = [ClaimedJob._make((to_id(row[0]), *row[1:WIDTH], worker)) for row in rows]
        if not mark_time:
            return jobs, []
        last = {
            (job.queue, job.priority): (row[-1], job.id)
            for job, row in zip(jobs, rows, strict=True)
            if job.lock_key is None
        }
        return jobs, [Mark(*lane, *place) for lane, place in last.items()]

    def next_due(self, request: ClaimRequest) -> float | None:
        """Seconds until the first pending job of the queues asked for is due; None: there is none."""
        return self._database.next_due(self._connection, request)

    def claim_rows(self, request: ClaimRequest, columns: Sequence[str]) -> list[Row]:
        """The claimed jobs' columns, as the database gives them."""
        check_request(request)
        try:
            return self._claim(request, columns)
        except IntegrityError:
            # A lock key started elsewhere between our look and our write. Not an error: take what has no
            # key now, or else one job; the next claim sees which key it was.
            return self._claim_past_collision(request, columns)

    def _claim_past_collision(self, request: ClaimRequest, columns: Sequence[str]) -> list[Row]:
        if rows := self._claim(replace(request, keyed=False), columns):
            return rows
        try:
            return self._claim(replace(request, limit=1), columns)
        except IntegrityError:
            return []

    def _claim(self, request: ClaimRequest, columns: Sequence[str]) -> list[Row]:
        with self._undoable():
            return self._database.claim(self._connection, request, columns)


def check_request(request: ClaimRequest) -> None:
    """Raise ``InvalidOption`` for what no claim can be made of."""
    check_text("worker_id", request.worker_id, WORKER_ID_LENGTH)
    check_whole("limit", request.limit, 1, LIMIT_MAX)
    check_lease(request.lease)
    for name in ("queues", "exclude_queues", "exclude_types"):
        value = getattr(request, name)
        if isinstance(value, str) or not all(isinstance(one, str) for one in value or ()):
            raise InvalidOption(f"{name}={value!r} must be a list of names, e.g. ['default'].")


def check_lease(lease: Any) -> None:
    """Raise ``InvalidOption`` unless ``lease`` is a number of seconds from 1 to a day."""
    if isinstance(lease, bool) or not isinstance(lease, int | float) or not 1 <= lease <= LEASE_MAX:
        raise InvalidOption(f"lease={lease!r} must be a number of seconds from 1 to {LEASE_MAX:.0f}.")
