"""``prune``: finished jobs leave when nobody needs them any more."""

from __future__ import annotations

from datetime import timedelta

from asgiref.sync import sync_to_async

from .. import conf, logs
from ..databases.clock import DatabaseAgo
from ..states import FINISHED, JobStatus
from .base import SelectionMoves

#: Jobs in one statement: small, so that nobody waits for its locks.
CHUNK = 500


class PruneMoves(SelectionMoves):
    """Removal of finished jobs, oldest first, a chunk a statement."""

    def prune(self, older_than: timedelta | None = None, *, most: int | None = None) -> int:
        """Remove finished jobs that ended more than ``older_than`` ago; how many went.

        Left out, JOBQUEUE["RETENTION"] says how long each status is kept (DEAD for ever, unless it names
        it). ``most`` bounds how many go in this call. Rows that others hold are passed over.
        """
        removed = 0
        for status in sorted(FINISHED):
            kept = conf.current().retention_of(status) if older_than is None else older_than
            if kept is not None:
                removed += self._prune(status, kept, None if most is None else most - removed)
        return removed

    async def aprune(self, older_than: timedelta | None = None, *, most: int | None = None) -> int:
        """``prune`` for async code."""
        return await sync_to_async(self.prune)(older_than, most=most)

    def _prune(self, status: JobStatus, kept: timedelta, most: int | None) -> int:
        old = self.filter(status=status, finished_at__lt=DatabaseAgo(kept)).order_by("finished_at")
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
