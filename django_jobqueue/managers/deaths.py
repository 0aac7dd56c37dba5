"""``dead_letters``: what died of what. The same fault a thousand times is one line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ..databases.base import Row
from ..databases.clock import from_database
from .base import Moves

#: Kinds that are looked at; a table with more has a trouble of another sort.
MOST_KINDS = 500
#: Dead letters of a kind are counted up to here.
COUNT_CAP = 10_000


@dataclass(frozen=True, slots=True)
class DeadKind:
    """The dead letters of one type that died of the same: exception class and place."""

    job_type: str
    fingerprint: str
    count: int
    is_capped: bool  # there are more than ``count``
    first: datetime
    last: datetime
    example: UUID  # the one that died last


class DeathMoves(Moves):
    """Reads only."""

    def dead_letters(
        self, job_type: str | None = None, *, since: datetime | None = None, most: int = 25, start: int = 0
    ) -> list[DeadKind]:
        """The kinds of dead letters, the one that died last first: ``most`` of them, from number ``start``.

        ``job_type``: only of this type. ``since``: only kinds of which one died at that instant or later.
        Counted up to 10,000 each; of more than 500 kinds the first 500 by name are looked at.
        """
        rows = [
            (*row[:2], from_database(row[2]), from_database(row[3]), self._database.to_id(row[4]))
            for row in self._database.dead_kinds(self._connection, job_type, MOST_KINDS)
        ]
        rows = [row for row in rows if since is None or row[3] >= since]
        rows.sort(key=lambda row: row[3], reverse=True)
        shown = rows[start : start + most]
        counts = self._dead_counts([row[:2] for row in shown])
        return [_kind(row, counts[row[:2]]) for row in shown]

    def _dead_counts(self, kinds: list[Any]) -> dict[Any, int]:
        return self._database.dead_counts(self._connection, kinds, COUNT_CAP + 1) if kinds else {}


def _kind(row: Row, count: int) -> DeadKind:
    job_type, fingerprint, first, last, example = row
    return DeadKind(job_type, fingerprint, min(count, COUNT_CAP), count > COUNT_CAP, first, last, example)
