"""What a worker asks before it claims: when is the next job due?"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from .base import JOB_TABLE
from .claiming import Claiming, ClaimRequest

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


class Looking(Claiming):
    """Reads only, one index probe a lane: much less than a claim."""

    def next_due(self, connection: BaseDatabaseWrapper, request: ClaimRequest) -> float | None:
        """Seconds until the first pending job of the served queues is due; None: there is none.

        It may be one that no claim gives out: its lock key is running, say. Types are not looked at.
        """
        [[seconds]] = self.run(connection, self.next_due_sql(request), self.claim_params(request))
        return None if seconds is None else float(seconds)

    def next_due_sql(self, request: ClaimRequest) -> str:
        """The statement."""
        # ORDER BY … LIMIT 1 and not min(): the index gives the first of a lane as it stands.
        return f"""
            WITH RECURSIVE {self.lanes(request)}
            SELECT {self.seconds_until("first.run_after")} FROM (
                SELECT min((
                    SELECT j.run_after FROM {JOB_TABLE} AS j
                    WHERE j.status = 1 AND j.queue = served.queue AND j.priority = served.priority
                    ORDER BY j.run_after, j.id LIMIT 1
                )) AS run_after FROM served
            ) AS first"""

    @abstractmethod
    def seconds_until(self, time: str) -> str:
        """SQL: the seconds from now to the instant ``time``."""
