"""``prune``: finished jobs leave when nobody needs them any more."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps

from .. import conf, logs
from ..databases.clock import DatabaseAgo
from ..states import FINISHED, JobStatus
from .base import SelectionMoves

#: Jobs in one statement: small, so that nobody waits for its locks.
CHUNK = 500
#: Finished jobs looked at in one go, where only those of some queues are old enough.
WINDOW = 5_000

#: Statuses that a queue may keep for a time of its own. Dead letters wait for a person.
_BY_QUEUE = frozenset({JobStatus.DONE, JobStatus.CANCELLED})

#: Up to which end jobs were seen to, by status and queues.
PruneMarks = dict[tuple[JobStatus, frozenset[str], bool], datetime]


class PruneMoves(SelectionMoves):
    """Removal of finished jobs, oldest first, a chunk a statement."""

    def prune(
        self,
        older_than: timedelta | None = None,
        *,
        most: int | None = None,
        marks: PruneMarks | None = None,
    ) -> int:
        """Remove finished jobs that ended more than ``older_than`` ago; how many went.

        Left out, JOBQUEUE["RETENTION"] says how long each status is kept (DEAD for ever, unless it names
        it), but for queues that have a retention of their own. ``most`` bounds how many go in this call;
        with one dictionary ``marks`` for many calls, no job is looked at by each of them. Rows that others
        hold are passed over.
        """
        if most == 0:
            return 0
        removed = 0
        own = self._own_retentions() if older_than is None else {}
        for status in sorted(FINISHED):
            kept = conf.current().retention_of(status) if older_than is None else older_than
            left = None if most is None else most - removed
            if own and status in _BY_QUEUE:
                removed += self._prune_by_queue(status, kept, own, left, {} if marks is None else marks)
            elif kept is not None:
                old = self.filter(status=status, finished_at__lt=DatabaseAgo(kept))
                removed += self._prune(old.order_by("finished_at"), status, left)
        return removed

    async def aprune(
        self,
        older_than: timedelta | None = None,
        *,
        most: int | None = None,
        marks: PruneMarks | None = None,
    ) -> int:
        """``prune`` for async code."""
        return await sync_to_async(self.prune)(older_than, most=most, marks=marks)

    def _own_retentions(self) -> dict[timedelta, set[str]]:
        queues: Any = apps.get_model("django_jobqueue", "Queue")
        own: dict[timedelta, set[str]] = defaultdict(set)
        for name, kept in (
            queues.objects.using(self.db).filter(retention__isnull=False).values_list("name", "retention")
        ):
            own[kept].add(name)
        return own

    def _prune_by_queue(
        self,
        status: JobStatus,
        kept: timedelta | None,
        own: dict[timedelta, set[str]],
        most: int | None,
        marks: PruneMarks,
    ) -> int:
        """Those queues that have a retention of their own, and then all others."""
        removed = 0
        for retention, queues in own.items():
            left = None if most is None else most - removed
            removed += self._walk(status, retention, frozenset(queues), False, left, marks)
        if kept is not None:
            left = None if most is None else most - removed
            others = frozenset(name for queues in own.values() for name in queues)
            removed += self._walk(status, kept, others, True, left, marks)
        return removed

    def _walk(
        self,
        status: JobStatus,
        kept: timedelta,
        queues: frozenset[str],
        but: bool,
        most: int | None,
        marks: PruneMarks,
    ) -> int:
        """Remove old jobs of these queues, or of all but these, window by window along the finish times.

        No index has the queue before the time, so jobs that stay are read too: with a mark, once each.
        """
        key = (status, queues, but)
        removed = 0
        while most is None or removed < most:
            old = self.filter(status=status, finished_at__lt=DatabaseAgo(kept)).order_by("finished_at")
            if key in marks:
                old = old.filter(finished_at__gt=marks[key])
            ends = list(old.values_list("finished_at", flat=True)[WINDOW - 1 : WINDOW])
            window = old.filter(finished_at__lte=ends[0]) if ends else old
            mine = window.exclude(queue__in=queues) if but else window.filter(queue__in=queues)
            left = None if most is None else most - removed
            gone = self._prune(mine, status, left)
            removed += gone
            if not ends or gone == left:
                break
            marks[key] = ends[0]
        return removed

    def _prune(self, old: Any, status: JobStatus, most: int | None) -> int:
        removed = 0
        while most is None or removed < most:
            size = CHUNK if most is None else min(CHUNK, most - removed)
            ids = list(old.values_list("pk", flat=True)[:size])
            gone = len(self._database.delete(self._connection, ids)) if ids else 0
            removed += gone
            if gone == 0:  # none left, or others are at these very rows
                break
        if removed:
            logs.pruned(removed, status.name)
        return removed
