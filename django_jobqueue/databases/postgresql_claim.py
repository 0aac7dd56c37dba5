"""The claim on PostgreSQL: from the head of every lane, or on from where the last one got to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import JOB_TABLE
from .claiming import Claiming, ClaimRequest

#: Jobs that a claim looks at in every lane, however many lanes there are; four times as many for a large one.
FEW = 16
MARK = {"queue": "text", "priority": "int", "run_after": "time", "id": "id"}
_FIRST = "ORDER BY priority DESC, job_time, job_id LIMIT %(size)s"


def by_key(rows: str) -> str:
    """SQL: the ids among ``rows``, so that whoever compares with them goes by primary key."""
    # As an array of unknown length, the planner expects few ids and goes by primary key. A join it would
    # rather do by reading the whole table, as long as that has some ten thousand rows.
    return f"ANY(ARRAY({rows}))"


class LaneClaiming(Claiming):
    """Row locks that pass over what others hold, LATERAL, and comparisons of rows that an index answers."""

    # A lane and where to begin in it. Whatever stands before that is not looked at, in no part of the
    # statement: while somebody holds a snapshot, that may be a heap of dead entries.
    lane_columns = ", ".join(MARK)
    # Text: psycopg takes longer over a timestamp than over all the rest of the row.
    mark_time = "run_after::text"
    created_at = "created_at::text"

    def known_lanes(self, request: ClaimRequest) -> str:
        return self.source(MARK) if request.marks else super().known_lanes(request)

    def first_lane(self) -> str:
        return f"""(
            SELECT {self.lane_columns} FROM {JOB_TABLE} WHERE status = 1
            ORDER BY queue DESC, priority DESC, run_after, id LIMIT 1)"""

    def next_lane(self) -> str:
        return f"""
            SELECT found.* FROM lane CROSS JOIN LATERAL (
                SELECT {self.lane_columns} FROM {JOB_TABLE}
                WHERE status = 1 AND (queue, priority) < (lane.queue, lane.priority)
                ORDER BY queue DESC, priority DESC, run_after, id LIMIT 1
            ) AS found"""

    def due(self, request: ClaimRequest, job: str) -> str:
        # One comparison of rows: it goes into the index as it stands, and thousands of jobs of one
        # enqueue_many share their due time.
        begin = f"({job}.run_after, {job}.id) >= (served.run_after, served.id)"
        return f"{begin} AND {super().due(request, job)}"

    def claim_params(self, request: ClaimRequest) -> dict[str, Any]:
        return super().claim_params(request) | self.batch(MARK, request.marks)

    def claim_sql(self, request: ClaimRequest, columns: Sequence[str]) -> str:
        # Never "id IN (SELECT … LIMIT n FOR UPDATE …)": a nested loop runs that once a row and takes more
        # than n. First the plain order over all lanes says how many to take from each; then so many are
        # locked lane by lane, passing over what another claim holds, so that no claim locks more than it
        # takes and two of them do not fight for the same rows. The last LIMIT takes nothing away. But one
        # that is not written out counts as a tenth of the lane, and at an estimate of millions PostgreSQL
        # compiles the plan (JIT), for seconds.
        columns_taken = "j.id, j.priority, j.run_after, j.crashes, j.lock_key"
        return f"""
            WITH RECURSIVE {self.lanes(request)},
            {self._candidates(request)},
            wanted AS MATERIALIZED (
                SELECT {self.lane_columns}, count(*) AS places
                FROM (SELECT * FROM candidate {_FIRST}) AS ordered GROUP BY {self.lane_columns}
            ),
            taken AS MATERIALIZED (
                SELECT job.* FROM wanted AS served CROSS JOIN LATERAL (
                    {self._ahead(request, columns_taken)} LIMIT served.places FOR NO KEY UPDATE SKIP LOCKED
                ) AS job LIMIT %(size)s
            ),
            {self._placed("taken")},
            chosen AS MATERIALIZED (
                SELECT p.id FROM placed AS p
                WHERE {self._takable}
                  AND (p.lock_key IS NULL OR django_jobqueue_lock_is_free(p.lock_key))
            )
            UPDATE {JOB_TABLE} AS job SET {self.claimed()} WHERE job.id = {by_key("SELECT id FROM chosen")}
            RETURNING {", ".join(columns)}, to_char(1000 - priority, '0000') || to_char(
                run_after AT TIME ZONE 'UTC', ' YYYY-MM-DD HH24:MI:SS.US ') || id"""

    def _ahead(self, request: ClaimRequest, columns: str) -> str:
        """The jobs of the lane ``served``, in order."""
        due = self.due(request, "j")
        return f"SELECT {columns} FROM {JOB_TABLE} AS j WHERE {due} ORDER BY j.run_after, j.id"

    def _placed(self, source: str) -> str:
        """CTEs ``placed`` (claim order, and which comes first of its lock key) and ``first_suspect``."""
        order = "priority DESC, run_after, id"
        return f"""
            placed AS (
                SELECT id, crashes, lock_key,
                       row_number() OVER (ORDER BY {order}) AS place,
                       row_number() OVER (PARTITION BY lock_key ORDER BY {order}) AS place_of_key
                FROM {source}
            ),
            first_suspect AS (SELECT min(place) AS place FROM placed WHERE crashes > 0)"""

    #: Which of the placed may be taken. A suspect is taken alone, so that when it brings its worker down
    #: again, no neighbour waits behind it in the same process.
    _takable = """
        (p.lock_key IS NULL OR p.place_of_key = 1)
        AND CASE WHEN p.crashes = 0
            THEN p.place < COALESCE((SELECT place FROM first_suspect), p.place + 1)
            ELSE p.place = 1 AND %(suspects)s END"""

    def _candidates(self, request: ClaimRequest) -> str:
        """CTE ``candidate``: among others the first jobs of all lanes, as many as may be taken."""
        ahead = self._ahead(request, "j.run_after AS job_time, j.id AS job_id")
        few = FEW if request.limit <= FEW * FEW else 4 * FEW  # one text for many limits: its plan is kept
        if request.limit <= few or len(request.marks) == 1:
            return f"""
                candidate AS (SELECT * FROM served CROSS JOIN LATERAL ({ahead} LIMIT %(size)s) AS job)"""
        # All that may be taken, from each of hundreds of lanes, would be read for nothing. So first a few
        # from each; only where these few are all among the first may there be more to the lane.
        return f"""
            early AS MATERIALIZED (
                SELECT * FROM served CROSS JOIN LATERAL ({ahead} LIMIT {few}) AS job {_FIRST}
            ),
            candidate AS (
                SELECT * FROM early
                UNION ALL
                SELECT * FROM (
                    SELECT {self.lane_columns} FROM early
                    GROUP BY {self.lane_columns} HAVING count(*) = {few}
                ) AS served CROSS JOIN LATERAL ({ahead} LIMIT %(size)s - {few} OFFSET {few}) AS job
            )"""
