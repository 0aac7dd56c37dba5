"""What people ask about the queue as a whole, bounded however many jobs there are; figures by the minute."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .base import JOB_TABLE, STATISTIC_TABLE, WORKER_TABLE, Row
from .looking import Looking

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

#: Of a beat: who, and in how many seconds (less than 0: so long ago) its loop has to come round.
BEAT = {"worker_id": "text", "due_in": "float"}

#: What workers have counted of one queue.
FIGURES = {
    "span": "int",
    "queue": "text",
    "done": "int",
    "failed": "int",
    "dead": "int",
    "waited": "float",
    "ran": "float",
    "waits": "json",
    "runs": "json",
}
_SUMS = ("done", "failed", "dead", "waited", "ran")
_HISTOGRAMS = ("waits", "runs")


class OpenTransaction(NamedTuple):
    """A transaction whose snapshot keeps dead rows from being removed."""

    pid: int
    seconds: float
    state: str
    application: str
    user: str


class Observing(Looking):
    """Reads for dashboards, each a statement that stops at a bound; and the upsert of what was counted."""

    def pending_lanes(self, connection: BaseDatabaseWrapper, cap: int, most: int) -> list[Row]:
        """(queue, priority, seconds since the first was due, due jobs, pending jobs) of ``most`` lanes.

        Counts stop at ``cap``. The seconds are less than zero if none is due yet.
        """
        lane = f"""
            FROM {JOB_TABLE} AS j
            WHERE j.status = 1 AND j.queue = lane.queue AND j.priority = lane.priority"""
        first = f"(SELECT j.run_after {lane} ORDER BY j.run_after, j.id LIMIT 1)"
        sql = f"""
            WITH RECURSIVE lane({self.lane_columns}) AS ({self.first_lane()} UNION ALL {self.next_lane()})
            SELECT lane.queue, lane.priority, -({self.seconds_until(first)}),
                (SELECT count(*) FROM (
                    SELECT 1 {lane} AND j.run_after <= {self.now} LIMIT %(cap)s) AS due),
                (SELECT count(*) FROM (SELECT 1 {lane} LIMIT %(cap)s) AS pending)
            FROM lane WHERE lane.queue IS NOT NULL LIMIT %(most)s"""
        return self.run(connection, sql, {"cap": cap, "most": most})

    def running_jobs(self, connection: BaseDatabaseWrapper, cap: int, shown: int) -> list[Row]:
        """(queue, worker, jobs held, id, type, seconds since the claim), of each the oldest few jobs."""
        group = "PARTITION BY queue, worker_id"
        sql = f"""
            SELECT queue, worker_id, held, id, job_type, -({self.seconds_until("claimed_at")})
            FROM (
                SELECT queue, worker_id, id, job_type, claimed_at,
                    count(*) OVER ({group}) AS held,
                    row_number() OVER ({group} ORDER BY claimed_at, id) AS place
                FROM (
                    SELECT queue, worker_id, id, job_type, claimed_at
                    FROM {JOB_TABLE} WHERE status = 2 LIMIT %(cap)s
                ) AS held_now
            ) AS placed
            WHERE place <= %(shown)s ORDER BY queue, worker_id, place"""
        return self.run(connection, sql, {"cap": cap, "shown": shown})

    def dead_letters(self, connection: BaseDatabaseWrapper, cap: int, lately: float) -> list[Row]:
        """(queue, dead jobs, those of the last ``lately`` seconds, those of as long before) of the newest."""
        since = self.shifted(self.now, "-%(lately)s")
        before = self.shifted(self.now, "-2 * %(lately)s")
        sql = f"""
            SELECT queue, count(*),
                sum(CASE WHEN finished_at > {since} THEN 1 ELSE 0 END),
                sum(CASE WHEN finished_at <= {since} AND finished_at > {before} THEN 1 ELSE 0 END)
            FROM (
                SELECT queue, finished_at FROM {JOB_TABLE}
                WHERE status = 4 AND finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT %(cap)s
            ) AS newest
            GROUP BY queue"""
        return self.run(connection, sql, {"cap": cap, "lately": lately})

    def worker_rows(self, connection: BaseDatabaseWrapper, most: int) -> list[Row]:
        """(id, host, pid, queues, queues left out, capacity, version, seconds since its start, since its last
        beat, since its loop had to come round as of now, asked to stop), those heard of last first.
        """
        ages = ", ".join(f"-({self.seconds_until(at)})" for at in ("started_at", "last_beat", "loop_due_at"))
        sql = f"""
            SELECT id, host, pid, queues, exclude_queues, capacity, version, {ages},
                stop_requested_at IS NOT NULL
            FROM {WORKER_TABLE} ORDER BY last_beat DESC, id LIMIT %(most)s"""
        return self.run(connection, sql, {"most": most})

    @abstractmethod
    def open_transactions(self, connection: BaseDatabaseWrapper, older_than: float) -> list[OpenTransaction]:
        """Transactions open for so many seconds, the oldest first; none where that costs nothing."""

    @abstractmethod
    def slow_journal(self, connection: BaseDatabaseWrapper) -> str:
        """The journal mode, where it makes readers and the writer wait for each other; else empty."""

    def beat(self, connection: BaseDatabaseWrapper, rows: Sequence[Row]) -> list[Row]:
        """Say that these workers are there. Rows as ``BEAT``; answers with (id, asked to stop at)."""
        sql = f"""
            WITH given AS MATERIALIZED ({self.source(BEAT)})
            UPDATE {WORKER_TABLE} SET last_beat = {self.now},
                loop_due_at = {self.shifted(self.now, "given.due_in")}
            FROM given WHERE {WORKER_TABLE}.id = given.worker_id
            RETURNING id, stop_requested_at"""
        return self.run(connection, sql, self.batch(BEAT, rows))

    def add_figures(self, connection: BaseDatabaseWrapper, rows: Sequence[Row]) -> None:
        """Add what was counted to the present span of each queue. Rows as ``FIGURES``."""
        # In one order, so that two workers do not wait for each other.
        kept = sorted(rows, key=lambda row: row[:2])
        sums = [f"{name} = kept.{name} + excluded.{name}" for name in _SUMS]
        sums += [f"{name} = {self.added(f'kept.{name}', f'excluded.{name}')}" for name in _HISTOGRAMS]
        sql = f"""
            INSERT INTO {STATISTIC_TABLE} AS kept (start, {", ".join(FIGURES)})
            SELECT {self.start_of("given.span")}, {", ".join(f"given.{name}" for name in FIGURES)}
            FROM ({self.source(FIGURES)}) AS given WHERE TRUE
            ON CONFLICT (span, start, queue) DO UPDATE SET {", ".join(sums)}"""
        self.run(connection, sql, self.batch(FIGURES, kept))

    @abstractmethod
    def start_of(self, span: str) -> str:
        """SQL: when the present span of so many seconds began, counted from 1970."""

    @abstractmethod
    def added(self, one: str, other: str) -> str:
        """SQL: two JSON lists of numbers, added place by place."""
