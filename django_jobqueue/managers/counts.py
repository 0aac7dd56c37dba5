"""``counts``: how many jobs stand where, instead of hand-written SQL."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Count

from ..bounds import check_whole
from ..exceptions import InvalidOption
from ..states import FINISHED, JobStatus
from .base import SelectionMoves

GROUPS = ("queue", "job_type")


class Counts(SelectionMoves):
    """Figures by status."""

    def counts(self, by: str | tuple[str, ...] | None = None, *, cap: int | None = None) -> dict[Any, Any]:
        """How many jobs are in each status: ``{JobStatus.PENDING: 3, …}``, zeros included.

        ``by="queue"``, ``"job_type"`` or both as a tuple: such a dict for each. ``cap``: stop counting a
        status there, so that the call stays fast with millions of rows (``cap`` then means "or more").
        Only statuses are capped, so ``cap`` does not go with ``by``.
        """
        if by is None:
            return self._capped(cap) if cap is not None else self._all()
        if cap is not None:
            raise InvalidOption(
                f"counts(by={by!r}, cap={cap!r}): cap counts statuses only. Leave one of them out."
            )
        return self._by((by,) if isinstance(by, str) else tuple(by), isinstance(by, str))

    async def acounts(
        self, by: str | tuple[str, ...] | None = None, *, cap: int | None = None
    ) -> dict[Any, Any]:
        """``counts`` for async code."""
        return await sync_to_async(self.counts)(by, cap=cap)

    def _all(self) -> dict[JobStatus, int]:
        found = dict(self.order_by().values_list("status").annotate(jobs=Count("*")))
        return {status: found.get(status.value, 0) for status in JobStatus}

    def _capped(self, cap: int) -> dict[JobStatus, int]:
        check_whole("cap", cap, 1, 2**31 - 1)
        # "Has ended" lets SQLite use the index of finished jobs. The others have indexes of their own, where
        # the opposite would make it look up each row.
        ended = {status: {"finished_at__isnull": False} if status in FINISHED else {} for status in JobStatus}
        return {
            status: self.filter(status=status, **ended[status]).order_by()[:cap].count()
            for status in JobStatus
        }

    def _by(self, by: tuple[str, ...], single: bool) -> dict[Any, dict[JobStatus, int]]:
        if not by or any(name not in GROUPS for name in by):
            raise InvalidOption(f"counts(by={by!r}): give one or both of {', '.join(GROUPS)}.")
        groups: dict[Any, dict[JobStatus, int]] = {}
        for *key, status, count in self.order_by().values_list(*by, "status").annotate(jobs=Count("*")):
            group = groups.setdefault(key[0] if single else tuple(key), dict.fromkeys(JobStatus, 0))
            group[JobStatus(status)] = count
        return groups
