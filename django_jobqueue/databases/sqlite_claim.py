"""The claim on SQLite, where nobody else writes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from .base import JOB_TABLE
from .claiming import Claiming, ClaimRequest

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


class PlainClaiming(Claiming):
    """No row locks and no LATERAL; and what has to be done for each row is done for as few as can be.

    Numbering all rows, as on PostgreSQL, took a quarter of a claim of a thousand jobs; and so did making one
    text of what to sort by.
    """

    place_columns = 3

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
            WHERE job.status = 1 AND job.id IN (SELECT p.id FROM taken AS p WHERE {_TAKABLE})
            RETURNING {", ".join(columns)}, -priority, run_after, id"""


def _probe(column: str, where: str) -> str:
    return f"""(
        SELECT {column} FROM {JOB_TABLE} WHERE status = 1 AND {where}
        ORDER BY queue DESC, priority DESC LIMIT 1)"""
