"""Pausing a queue, resuming it, and how long its finished jobs are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from .. import conf
from ..databases.clock import DatabaseNow
from ..databases.waking import EVERYBODY, wake_workers
from ..exceptions import InvalidOption
from .base import QueueAliasManager
from .preparing import check_queue


class QueueManager(QueueAliasManager):
    """``Queue.objects``: which queues are paused, and which keep their jobs for a time of their own."""

    def pause(self, name: str) -> None:
        """No job of this queue is claimed any more; running ones end. Raises ``UnknownQueue``."""
        self._set(name, paused=True)

    def resume(self, name: str) -> None:
        """Jobs of this queue are claimed again. Raises ``UnknownQueue``."""
        self._set(name, paused=False)
        wake_workers(self.get_queryset().db, {name: EVERYBODY})

    def keep_for(self, name: str, retention: timedelta | None) -> None:
        """Keep this queue's DONE and CANCELLED jobs for so long; None: as JOBQUEUE["RETENTION"] says.

        DEAD jobs stay as that setting says. Raises ``UnknownQueue``, and ``InvalidOption`` for a timedelta
        that is negative or longer than a hundred years.
        """
        if retention is not None and not conf.is_span(retention):
            raise InvalidOption(
                f"retention={retention!r} must be a timedelta from 0 to 36,525 days, or None for "
                'what JOBQUEUE["RETENTION"] says.'
            )
        self._set(name, retention=retention)

    def _set(self, name: str, **values: Any) -> None:
        row: Any = self.model(name=check_queue(name, conf.current()), updated_at=DatabaseNow(), **values)
        self.get_queryset().bulk_create(
            [row], update_conflicts=True, update_fields=[*values, "updated_at"], unique_fields=["name"]
        )
