"""What becomes of a new job whose dedupe key is taken."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from ..databases.clock import DatabaseAgo, DatabaseNow
from ..databases.inserting import NewJob
from ..databases.waking import wake_workers
from ..exceptions import DuplicateJob
from ..states import ACTIVE, JobStatus
from .base import Moves
from .rescue import expired_reason

if TYPE_CHECKING:
    from ..models import Job

_EXPIRED = ExpressionWrapper(
    Q(status=JobStatus.PENDING, expires_at__lte=DatabaseNow()), output_field=BooleanField()
)


class DedupeMoves(Moves):
    """The other job of a dedupe key: found, or turned into what the new one asks for."""

    def _in_place_of(self, new: NewJob) -> Job | None:
        """The job that the caller gets instead, as the policy says; None: there is none any more.

        Raises ``DuplicateJob``.
        """
        if new.dedupe.replaces and (replaced := self._replaced(new)) is not None:
            return replaced
        lately = timedelta(seconds=new.dedupe.seconds) if new.dedupe.policy == "skip_for" else None
        holder = self._holders([new.dedupe_key], lately).get(new.dedupe_key)
        if holder is not None:
            holder.created = False
            if new.dedupe.policy == "raise":
                raise DuplicateJob(holder)
        return holder

    def _replaced(self, new: NewJob) -> Job | None:
        """The pending job of the key, with what the new one asks for."""
        for job in self._loaded(self._database.replace(self._connection, new, self._columns)):
            job.created = False
            wake_workers(self.db, [job.queue])
            return job
        return None

    def _holders(self, keys: Sequence[str | None], lately: timedelta | None = None) -> dict[str | None, Job]:
        """The active job of each of these dedupe keys; or else the last one made ``lately``."""
        if not keys:
            return {}
        keyed = self.model.objects.using(self.db).filter(dedupe_key__in=keys)
        found: QuerySet[Any] = keyed.filter(status__in=ACTIVE).annotate(is_expired=_EXPIRED)
        if lately is not None:
            recent = keyed.filter(
                status__in=(JobStatus.DONE, JobStatus.DEAD),
                finished_at__isnull=False,
                created_at__gt=DatabaseAgo(lately),
            )
            found = recent.annotate(is_expired=_EXPIRED).union(found).order_by("created_at")
        holders = {job.dedupe_key: job for job in found}
        if dead := [key for key, job in holders.items() if job.is_expired]:
            # Expired and not yet swept: it will never run, so it must not swallow the new job.
            self._database.expire(
                self._connection, len(dead), expired_reason(), keys=[str(key) for key in dead]
            )
        return {key: job for key, job in holders.items() if key not in dead}
