"""The rows that say which workers there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

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


class WorkerManager(QueueAliasManager):
    """``Worker.objects``: beats."""

    def beat(self, workers: Sequence[WorkerFacts]) -> None:
        """Say that these workers are there; one statement for all."""
        now = DatabaseNow()
        rows: list[Any] = [self.model(**vars(facts), started_at=now, last_beat=now) for facts in workers]
        self.get_queryset().bulk_create(
            rows, update_conflicts=True, update_fields=["last_beat"], unique_fields=["id"]
        )

    def beat_again(self, workers: Sequence[WorkerFacts]) -> bool:
        """``beat`` for workers that are known already, without a transaction; False if not all are."""
        known = self.get_queryset().filter(pk__in=[facts.id for facts in workers])
        return known.update(last_beat=DatabaseNow()) == len(workers)

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
