"""The rows that say which workers there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connections

from ..databases import database_for
from ..databases.clock import DatabaseAgo, DatabaseNow
from .base import QueueAliasManager

#: A worker not heard of for so long is forgotten.
FORGET_AFTER = timedelta(days=1)


@dataclass(frozen=True)
class WorkerFacts:
    """What people see of a worker."""

    id: str
    host: str
    pid: int
    queues: list[str] | None  # None: all
    capacity: int
    version: str
    exclude_queues: list[str] | None = None  # None: not known


class WorkerManager(QueueAliasManager):
    """``Worker.objects``: beats, and asking a worker to stop."""

    def beat(self, workers: Sequence[WorkerFacts]) -> None:
        """Say that these workers are there; one statement for all."""
        now = DatabaseNow()
        rows: list[Any] = [self.model(**vars(facts), started_at=now, last_beat=now) for facts in workers]
        self.get_queryset().bulk_create(
            rows, update_conflicts=True, update_fields=["last_beat"], unique_fields=["id"]
        )

    def beat_again(self, due: Mapping[str, float]) -> dict[str, bool]:
        """``beat`` for workers that are known already, without a transaction. Answers with those that were.

        ``due``: by worker, the seconds until its loop has to come round; less than 0: so long ago. In the
        answer: whether somebody has asked it to stop.
        """
        rows = database_for(self.db).beat(connections[self.db], list(due.items()))
        return {worker_id: asked is not None for worker_id, asked in rows}

    def ask_to_stop(self, worker_id: str) -> bool:
        """Ask a worker to claim no more and to leave when its jobs have ended; it sees it at its next beat.

        False if there is no such worker. ``runworker`` starts no other process in its place.
        """
        workers = self.get_queryset().filter(pk=worker_id)
        asked = workers.filter(stop_requested_at__isnull=True).update(stop_requested_at=DatabaseNow())
        return bool(asked) or workers.exists()

    def living(self, within: float) -> list[tuple[str, list[str] | None]]:
        """Id and queues of the workers that were heard of in the last ``within`` seconds, by id."""
        heard_of = self.get_queryset().filter(last_beat__gte=DatabaseAgo(timedelta(seconds=within)))
        return list(heard_of.order_by("id").values_list("id", "queues"))

    def forget(self, worker_id: str) -> None:
        """Remove a worker that has left in good order."""
        self.get_queryset().filter(pk=worker_id).delete()

    def forget_silent(self) -> None:
        """Remove workers that were not heard of for a day."""
        self.get_queryset().filter(last_beat__lt=DatabaseAgo(FORGET_AFTER)).delete()
