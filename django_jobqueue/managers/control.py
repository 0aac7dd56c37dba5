"""What people do to jobs: cancel, retry, reschedule, discard. Each on every job the query set selects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import IntegrityError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import conf, signals
from ..bounds import check_whole
from ..databases.base import Row
from ..databases.clock import moment
from ..databases.controlling import FACTS
from ..databases.waking import tell_waiters, wake_workers
from ..exceptions import InvalidOption, as_seconds
from ..payloads import clean_text, encode_payload
from ..states import FINISHED, MOVES, PRIORITY_MAX, PRIORITY_MIN, JobStatus
from .base import SelectionMoves
from .failures import MESSAGE_LIMIT

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

#: Jobs in one statement.
CHUNK = 500

RETRYABLE = MOVES["retry"][0]


@dataclass(slots=True)
class Report:
    """How many jobs a move changed, and how many it refused by reason."""

    done: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def __int__(self) -> int:
        return self.done

    def __str__(self) -> str:
        parts = [f"{self.done} done"]
        parts += [f"{count} refused: {reason}" for reason, count in self.refused.items()]
        return "; ".join(parts)


class ControlMoves(SelectionMoves):
    """Guarded by status, so a worker that is faster wins and the job is counted as refused."""

    def cancel(self, reason: str = "cancelled by a person") -> Report:
        """PENDING → CANCELLED; a RUNNING job is asked to stop, which its handler sees within 2 s."""

        reason = clean_text(reason, MESSAGE_LIMIT)

        def move(ids: Sequence[UUID]) -> list[Row]:
            return self._database.cancel(self._connection, ids, reason)

        def tell(job: Any) -> None:
            if job.status == JobStatus.CANCELLED:
                signals.announce(
                    signals.job_finished, self.model, job, status=JobStatus.CANCELLED, error=reason
                )

        return self._move(move, tell, {JobStatus.RUNNING: _("was asked to stop before")})

    def retry(
        self,
        payload: Mapping[str, Any] | None = None,
        *,
        delay: float | timedelta = 0,
        per_minute: float | None = None,
    ) -> Report:
        """DEAD, CANCELLED → PENDING, due after ``delay`` (seconds or timedelta), attempts from 0.

        ``payload`` replaces the job's own, which its context keeps under ``original_payload``.
        ``per_minute``: no more than so many of them become due in a minute, evenly spread. A job whose dedupe
        key another active job has is refused, and does not stop the others. Raises ``InvalidOption`` and
        ``InvalidPayload``.
        """
        text = None if payload is None else encode_payload(payload, conf.current().MAX_PAYLOAD_BYTES)
        first, step = as_seconds(delay), _seconds_between(per_minute)
        done = 0

        def move(ids: Sequence[UUID]) -> list[Row]:
            nonlocal done
            rows = self._retry([(one, first + (done + n) * step) for n, one in enumerate(ids)], text)
            done += len(rows)
            return rows

        def tell(job: Any) -> None:
            signals.announce(signals.job_retried, self.model, job, error="", run_after=None)
            wake_workers(self.db, [job.queue])

        taken = _("another active job has its dedupe key")
        return self._move(move, tell, {JobStatus.DEAD: taken, JobStatus.CANCELLED: taken})

    def reschedule(
        self, run_after: datetime | timedelta | None = None, *, priority: int | None = None
    ) -> Report:
        """Another due time or priority for PENDING jobs.

        ``run_after``: an aware datetime or a timedelta; ``timedelta(0)`` is now. Raises ``InvalidOption``.
        """
        changes: dict[str, object] = {}
        if run_after is not None:
            run_at, changes["run_delay"] = moment("run_after", run_after)
            changes["run_at"] = self._database.from_time(run_at)
        if priority is not None:
            check_whole("priority", priority, PRIORITY_MIN, PRIORITY_MAX)
            changes["priority"] = priority
        if not changes:
            raise InvalidOption("reschedule() needs run_after, priority or both.")

        def move(ids: Sequence[UUID]) -> list[Row]:
            return self._database.reschedule(self._connection, ids, changes)

        return self._move(move, lambda job: wake_workers(self.db, [job.queue]))

    def discard(self) -> Report:
        """Remove jobs that have ended; those that have not are refused."""

        def move(ids: Sequence[UUID]) -> list[Row]:
            return self._database.delete(self._connection, ids)

        held = _("is being changed by somebody else")
        return self._move(move, lambda job: None, dict.fromkeys(FINISHED, held))

    async def acancel(self, reason: str = "cancelled by a person") -> Report:
        """``cancel`` for async code."""
        return await sync_to_async(self.cancel)(reason)

    async def aretry(
        self,
        payload: Mapping[str, Any] | None = None,
        *,
        delay: float | timedelta = 0,
        per_minute: float | None = None,
    ) -> Report:
        """``retry`` for async code."""
        return await sync_to_async(self.retry)(payload, delay=delay, per_minute=per_minute)

    async def adiscard(self) -> Report:
        """``discard`` for async code."""
        return await sync_to_async(self.discard)()

    async def areschedule(
        self, run_after: datetime | timedelta | None = None, *, priority: int | None = None
    ) -> Report:
        """``reschedule`` for async code."""
        return await sync_to_async(self.reschedule)(run_after, priority=priority)

    def _move(
        self,
        move: Callable[[Sequence[UUID]], list[Row]],
        tell: Callable[[Any], None],
        reasons: Mapping[JobStatus, StrPromise] | None = None,
    ) -> Report:
        """Move the selected jobs chunk by chunk, each its own statement, and count what was refused.

        ``reasons``: why a job in a status that the move takes was refused all the same.
        """
        report = Report()
        for ids in self._chunks():
            moved = {self._database.to_id(row[0]): row for row in move(ids)}
            report.done += len(moved)
            report.refused += self._refusals([one for one in ids if one not in moved], reasons or {})
            jobs = [self._brief(row) for row in moved.values()]
            for job in jobs:
                tell(job)
            tell_waiters(self.db, [job.id for job in jobs if job.awaited and job.is_finished])
        return report

    def _chunks(self) -> Iterator[list[UUID]]:
        """The ids selected now, by key, without holding a million of them."""
        if self.query.is_sliced:
            ids = list(self.values_list("pk", flat=True))
            yield from (ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK))
            return
        by_key = self.order_by("pk").values_list("pk", flat=True)
        chunk = list(by_key[:CHUNK])
        while chunk:
            yield chunk
            chunk = list(by_key.filter(pk__gt=chunk[-1])[:CHUNK])

    def _refusals(self, ids: Sequence[UUID], reasons: Mapping[JobStatus, StrPromise]) -> Counter[str]:
        """Why these were not moved: where they stand now."""
        if not ids:
            return Counter()
        standing = {
            self._database.to_id(row[0]): JobStatus(row[3])
            for row in self._database.standing(self._connection, ids)
        }
        return Counter(self._reason(standing.get(one), reasons) for one in ids)

    def _reason(self, status: JobStatus | None, reasons: Mapping[JobStatus, StrPromise]) -> str:
        if status is None:
            return gettext("is gone")
        return str(reasons.get(status) or gettext("is %(status)s") % {"status": status.label})

    def _brief(self, row: Row) -> Any:
        """A job with just the columns that receivers are promised."""
        names = FACTS.split(", ")  # in the order of the fields, as from_db wants them
        values = (self._database.to_id(row[0]), *row[1:])
        return self.model.from_db(self.db, names, values)

    def _retry(self, rows: Sequence[Row], payload: str | None) -> list[Row]:
        """Retry a chunk: those without a dedupe key at once, the others one of a key at a time."""
        delays: dict[UUID, float] = {one: delay for one, delay in rows}  # noqa: C416 - for the types
        ended = self.model.objects.using(self.db).filter(pk__in=list(delays), status__in=RETRYABLE)
        keys = dict(ended.values_list("pk", "dedupe_key"))
        first_of_key = {key: one for one, key in reversed(keys.items()) if key is not None}
        chosen = [(one, delays[one]) for one, key in keys.items() if key is None or first_of_key[key] == one]
        try:
            with self._undoable():
                return self._database.retry(self._connection, chosen, payload)
        except IntegrityError:
            return [row for one in chosen for row in self._retry_one(one, payload)]

    def _retry_one(self, one: Row, payload: str | None) -> list[Row]:
        try:
            with self._undoable():
                return self._database.retry(self._connection, [one], payload)
        except IntegrityError:  # its key was taken between the statement's look and its write
            return []


def _seconds_between(per_minute: float | None) -> float:
    """Seconds between two jobs of a speed; none without one."""
    if per_minute is None:
        return 0.0
    if isinstance(per_minute, bool) or not isinstance(per_minute, int | float) or not per_minute > 0:
        raise InvalidOption(
            f"per_minute={per_minute!r} must be a number of jobs above 0, or None for all now."
        )
    return 60.0 / per_minute
