"""A drain of the queue by real worker processes, timed by what the database itself wrote down."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .bench import JOBS_PER_SECOND, Figures, connected
from .children import PATIENCE, ChildFailed, RunWorker, call, runworker
from .names import CLAIMS
from .servers import Target

TABLE = "django_jobqueue_job"
#: Seconds until workers that have just started are taken to be idle, and between two looks at their work.
SETTLED = 2.0
LOOK = 0.2
#: SQLite's instants are text; both give the instants at which so many jobs were finished.
TIMES = """
    SELECT min({started}), (SELECT finished_at FROM {table} ORDER BY finished_at LIMIT 1 OFFSET {tenth}),
        (SELECT finished_at FROM {table} ORDER BY finished_at LIMIT 1 OFFSET {nine_tenths}), max(finished_at)
    FROM {table}"""


def drain(target: Target, *options: str, **more: Any) -> Figures:
    """Start a worker on what is due, wait until it leaves, and look at what it did."""
    with connected(target) as run:
        jobs = run(f"SELECT count(*) FROM {TABLE}")[0][0]
        with runworker(target, "--drain", *options, **more) as worker:
            worker.wait()
        check(run, jobs)
    return rates(target, TABLE)


def drain_together(target: Target, processes: int, claims: Path | None = None) -> Figures:
    """The same by many processes that are all there before the first of them claims.

    Each takes half a second of a processor to start, so that those which come early would be timed while
    the others start. ``claims`` is where they write down their claims.
    """
    extra = {CLAIMS: str(claims)} if claims else {}
    with connected(target) as run:
        jobs = run(f"SELECT count(*) FROM {TABLE}")[0][0]
        call(target, "pause")
        with runworker(target, "--processes", str(processes), extra=extra) as worker:
            worker.ready(processes)
            time.sleep(SETTLED)
            call(target, "resume")
            wait_until_drained(run, worker)
        check(run, jobs)
    return rates(target, TABLE)


def wait_until_drained(run: Any, worker: RunWorker) -> None:
    """Until no job is pending or running."""
    deadline = time.monotonic() + PATIENCE
    while any(run(f"SELECT 1 FROM {TABLE} WHERE status = {status} LIMIT 1") for status in (1, 2)):
        if worker.process.poll() is not None or time.monotonic() > deadline:
            raise ChildFailed(f"runworker left jobs: {worker.log()[-500:]}")
        time.sleep(LOOK)


def check(run: Any, jobs: int) -> None:
    """Every job is DONE by its first attempt, or there is nothing to time."""
    wrong = run(
        f"SELECT status, attempts, count(*) FROM {TABLE} WHERE NOT (status = 3 AND attempts = 1) "
        "GROUP BY status, attempts"
    )
    assert not wrong, "not DONE by the first attempt: " + ", ".join(
        f"{count} of status {status} with {attempts} attempts" for status, attempts, count in wrong
    )
    left = run(f"SELECT count(*) FROM {TABLE}")[0][0]
    assert left == jobs, f"{jobs} jobs became {left}"


def rates(target: Target, table: str) -> Figures:
    """Jobs a second from the first claim to the last outcome, and the last tenth against the first."""
    with connected(target) as run:
        jobs = run(f"SELECT count(*) FROM {table}")[0][0]
        tenth, nine_tenths = jobs // 10, jobs - jobs // 10
        sql = TIMES.format(table=table, started="claimed_at", tenth=tenth - 1, nine_tenths=nine_tenths - 1)
        begin, first, last, end = map(instant, run(sql)[0])
    whole, first_part, last_part = end - begin, first - begin, end - last
    return {
        JOBS_PER_SECOND: jobs / max(whole, 1e-6),
        "last/first tenth": max(first_part, 1e-6) / max(last_part, 1e-6),
    }


def instant(value: datetime | str) -> float:
    """Seconds."""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.replace(tzinfo=at.tzinfo or UTC).timestamp()
