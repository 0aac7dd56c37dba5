"""Pausing a queue, and resuming it."""

from __future__ import annotations

from typing import Any

from .. import conf
from ..databases.clock import DatabaseNow
from ..databases.waking import EVERYBODY, wake_workers
from .base import QueueAliasManager
from .preparing import check_queue


class QueueManager(QueueAliasManager):
    """``Queue.objects``: which queues are paused."""

    def pause(self, name: str) -> None:
        """No job of this queue is claimed any more; running ones end. Raises ``UnknownQueue``."""
        self._set(name, True)

    def resume(self, name: str) -> None:
        """Jobs of this queue are claimed again. Raises ``UnknownQueue``."""
        self._set(name, False)
        wake_workers(self.get_queryset().db, {name: EVERYBODY})

    def _set(self, name: str, paused: bool) -> None:
        row: Any = self.model(name=check_queue(name, conf.current()), paused=paused, updated_at=DatabaseNow())
        self.get_queryset().bulk_create(
            [row], update_conflicts=True, update_fields=["paused", "updated_at"], unique_fields=["name"]
        )
