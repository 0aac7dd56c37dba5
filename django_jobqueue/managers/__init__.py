"""The moves: the only writers of ``Job.status``. ``Job.objects`` has them all."""

from __future__ import annotations

from .base import QueueAliasManager, Token
from .claim import ClaimedJob, ClaimMoves
from .control import ControlMoves, Report
from .counts import Counts
from .deaths import DeadKind, DeathMoves
from .enqueue import EnqueueMoves
from .finish import FinishMoves, Settlement
from .prune import PruneMoves
from .queues import QueueManager
from .rescue import Renewal, RescueMoves
from .tallies import StatisticManager, Tally
from .workers import WorkerFacts, WorkerManager

__all__ = [
    "ClaimedJob",
    "DeadKind",
    "JobManager",
    "JobQuerySet",
    "QueueManager",
    "Renewal",
    "Report",
    "Settlement",
    "StatisticManager",
    "Tally",
    "Token",
    "WorkerFacts",
    "WorkerManager",
]


class JobQuerySet(ControlMoves, PruneMoves, Counts, EnqueueMoves):  # type: ignore[override]
    """Jobs, and what can be done to all that are selected: cancel, retry, reschedule, prune, counts."""


_SelectionManager = QueueAliasManager.from_queryset(JobQuerySet)


class JobManager(ClaimMoves, FinishMoves, RescueMoves, DeathMoves, _SelectionManager):
    """``Job.objects``: every move there is. Those that carry a token are not on query sets."""
