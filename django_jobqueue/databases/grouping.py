"""The SQL of the dead letters' kinds: same type, same fingerprint of the error. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import JOB_TABLE, Dialect, Row

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

KIND = {"job_type": "text", "fingerprint": "text"}

_OF_KIND = "j.status = 4 AND j.job_type = kind.job_type AND j.error_fingerprint = kind.fingerprint"


class Grouping(Dialect):
    """From kind to kind by the index of the dead: what it costs depends on the kinds, not on the jobs."""

    def dead_kinds(self, connection: BaseDatabaseWrapper, job_type: str | None, size: int) -> list[Row]:
        """(type, fingerprint, first end, last end, id of the last) of up to ``size`` kinds, by name."""
        sql = f"""
            WITH RECURSIVE kind(job_type, fingerprint) AS (
                SELECT {self._next_kind("job_type", "TRUE", job_type)},
                       {self._next_kind("error_fingerprint", "TRUE", job_type)}
                UNION ALL
                {self._following(job_type)}
            )
            SELECT job_type, fingerprint, {self._of_kind("finished_at", "")},
                   {self._of_kind("finished_at", "DESC")}, {self._of_kind("id", "DESC")}
            FROM (SELECT * FROM kind WHERE job_type IS NOT NULL LIMIT %(size)s) AS kind"""
        return self.run(connection, sql, {"job_type": job_type, "size": size})

    def dead_counts(
        self, connection: BaseDatabaseWrapper, kinds: Sequence[tuple[str, str]], cap: int
    ) -> dict[tuple[str, str], int]:
        """How many dead letters each kind has, counted up to ``cap``."""
        sql = f"""
            WITH kind AS ({self.source(KIND)})
            SELECT job_type, fingerprint, (SELECT count(*) FROM (
                SELECT 1 FROM {JOB_TABLE} AS j WHERE {_OF_KIND} LIMIT %(cap)s) AS counted)
            FROM kind"""
        rows = self.run(connection, sql, {"cap": cap, **self.batch(KIND, kinds)})
        return {(job_type, fingerprint): count for job_type, fingerprint, count in rows}

    def _following(self, job_type: str | None) -> str:
        """The next fingerprint of the type, or the first one of the next type; at the end NULLs."""
        # Not a comparison of rows, for which SQLite uses just the first column of an index.
        here = "j.job_type = kind.job_type AND j.error_fingerprint > kind.fingerprint"
        beyond = "j.job_type > kind.job_type"
        fingerprint = self._next_kind("error_fingerprint", here, job_type)
        return f"""
            SELECT CASE WHEN {fingerprint} IS NULL THEN {self._next_kind("job_type", beyond, job_type)}
                        ELSE kind.job_type END,
                   COALESCE({fingerprint}, {self._next_kind("error_fingerprint", beyond, job_type)})
            FROM kind WHERE kind.job_type IS NOT NULL"""

    def _next_kind(self, column: str, where: str, job_type: str | None) -> str:
        of_type = "" if job_type is None else "AND j.job_type = %(job_type)s"
        return f"""(
            SELECT j.{column} FROM {JOB_TABLE} AS j WHERE j.status = 4 AND {where} {of_type}
            ORDER BY j.job_type, j.error_fingerprint LIMIT 1)"""

    def _of_kind(self, column: str, direction: str) -> str:
        return f"""(
            SELECT j.{column} FROM {JOB_TABLE} AS j WHERE {_OF_KIND}
            ORDER BY j.finished_at {direction} LIMIT 1)"""
