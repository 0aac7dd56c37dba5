"""The claim on SQLite, where nobody else writes meanwhile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .base import JOB_TABLE, Row
from .claiming import Claiming, ClaimRequest

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_ORDER = "priority DESC, run_after, id"
#: Which of those taken are claimed: one of a lock key, and a suspect alone, so that when it brings its worker
#: down again, no neighbour waits behind it in the same process.
_TAKABLE = """
    (p.lock_key IS NULL OR p.id IN (SELECT id FROM first_of_key))
    AND CASE WHEN p.crashes = 0
        THEN NOT EXISTS (
            SELECT 1 FROM suspect AS s WHERE s.priority > p.priority
                OR (s.priority = p.priority AND (s.run_after, s.id) < (p.run_after, p.id)))
        ELSE p.id = (SELECT id FROM first) AND %(suspects)s END"""
_PLACE = "-priority, run_after, id"
#: Rows that may come as one text of all: of a bounded length, so that the text is.
_SHORT = "fence = 1 AND length(payload) + length(context) <= 10000"


class PlainClaiming(Claiming):
    """No row locks and no LATERAL; and what has to be done for each row is done for as few as can be.

    Numbering all rows, as on PostgreSQL, took a quarter of a claim of a thousand jobs; and so did making one
    text of what to sort by.
    """

    place_columns = 3

    def __init__(self) -> None:
        super().__init__()
        self._claimed_at = ""  # the latest time of a claim by this process

    def claim(
        self, connection: BaseDatabaseWrapper, request: ClaimRequest, columns: Sequence[str]
    ) -> list[Row]:
        """The claimed jobs' ``columns``, in claim order; short ones read as one row, once they are claimed.

        The driver gives up the interpreter's lock for every row, and waits to have it again while handlers
        run; in an answer to RETURNING, with the write lock held. What was claimed is known by its time, so
        this is for a time that is later than that of every other claim of this process.
        """
        params = self.params(self.claim_params(request))
        if params["now"] <= self._claimed_at:  # the clock was set back
            return super().claim(connection, request, columns)
        self._claimed_at = params["now"]
        with connection.cursor() as cursor:
            before = connection.connection.total_changes
            cursor.execute(self._update(request), params)
            claimed = connection.connection.total_changes - before
            return self.in_claim_order(self._read(cursor, columns, params, claimed)) if claimed else []

    def _read(
        self, cursor: Any, columns: Sequence[str], params: Mapping[str, Any], claimed: int
    ) -> list[Row]:
        picked = f"{', '.join(columns)}, {_PLACE}"
        mine = f"FROM {JOB_TABLE} WHERE status = 2 AND worker_id = %(worker_id)s AND claimed_at = %(now)s"
        cursor.execute(f"SELECT json_group_array(json_array({picked})) {mine} AND {_SHORT}", params)
        rows = [tuple(row) for row in json.loads(cursor.fetchone()[0])]
        if len(rows) < claimed:
            cursor.execute(f"SELECT {picked} {mine} AND NOT ({_SHORT})", params)
            rows += cursor.fetchall()
        return rows

    def first_lane(self) -> str:
        return f"SELECT {_probe('queue', 'TRUE')}, {_probe('priority', 'TRUE')}"

    def next_lane(self) -> str:
        # A comparison of rows uses just the first column of the index here, so it would walk through a
        # whole lane: first a lower priority in this queue, then the next queue. There is no LATERAL; a last
        # lane of NULLs ends the recursion.
        lower = _probe("priority", "queue = lane.queue AND priority < lane.priority")
        next_queue = _probe("queue", "queue < lane.queue")
        return f"""
            SELECT CASE WHEN {lower} IS NULL THEN {next_queue} ELSE lane.queue END,
                   COALESCE({lower}, {_probe("priority", "queue < lane.queue")})
            FROM lane WHERE lane.queue IS NOT NULL"""

    def claim_sql(self, request: ClaimRequest, columns: Sequence[str]) -> str:
        return f"{self._update(request)} RETURNING {', '.join(columns)}, {_PLACE}"

    def _update(self, request: ClaimRequest) -> str:
        # OR IGNORE: a lock key that is running after all leaves its row alone and lets the others through.
        return f"""
            WITH RECURSIVE {self.lanes(request)},
            taken AS MATERIALIZED (
                SELECT t.id, t.priority, t.run_after, t.crashes, t.lock_key
                FROM served CROSS JOIN {JOB_TABLE} AS t
                WHERE t.id IN (
                    SELECT j.id FROM {JOB_TABLE} AS j WHERE {self.due(request, "j")}
                    ORDER BY j.run_after, j.id LIMIT %(size)s)
                ORDER BY t.priority DESC, t.run_after, t.id LIMIT %(size)s
            ),
            first_of_key AS MATERIALIZED (
                SELECT id FROM (
                    SELECT id, row_number() OVER (PARTITION BY lock_key ORDER BY {_ORDER}) AS place
                    FROM taken WHERE lock_key IS NOT NULL)
                WHERE place = 1
            ),
            first AS MATERIALIZED (SELECT id FROM taken ORDER BY {_ORDER} LIMIT 1),
            suspect AS MATERIALIZED (SELECT * FROM taken WHERE crashes > 0 ORDER BY {_ORDER} LIMIT 1)
            UPDATE OR IGNORE {JOB_TABLE} AS job SET {self.claimed()}
            WHERE job.status = 1 AND job.id IN (SELECT p.id FROM taken AS p WHERE {_TAKABLE})"""


def _probe(column: str, where: str) -> str:
    return f"""(
        SELECT {column} FROM {JOB_TABLE} WHERE status = 1 AND {where}
        ORDER BY queue DESC, priority DESC LIMIT 1)"""
