"""Decides from the ledger and the table whether the promises were kept. Knows nothing of how.

Each rule is a function that yields a sentence for each job that breaks it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from .ledger import OK, Ledger, Run
from .table import Change, Row, Table

FINAL = {"done", "dead", "cancelled"}
LEGAL = {
    ("pending", "running"), ("pending", "cancelled"), ("running", "pending"),
    ("running", "done"), ("running", "dead"), ("running", "cancelled"),
}  # fmt: skip
#: Seconds after its end within which a run's outcome is certainly written if nothing is broken.
WRITTEN_WITHIN = 3.0
#: A worker that was held up for this part of a lease may have lost it: it renews some time before the end.
PART_OF_LEASE = 0.5


@dataclass
class Evidence:
    """All that is known of one run."""

    ledger: Ledger
    table: Table
    lease: float  # seconds

    @cached_property
    def runs(self) -> dict[str, list[Run]]:
        """Of each job, by start."""
        return self.ledger.by_job()

    @cached_property
    def rows(self) -> dict[str, Row]:
        """By id."""
        return {row.id: row for row in self.table.rows}

    @cached_property
    def changes(self) -> dict[str, list[Change]]:
        """Of each job, in order."""
        found: dict[str, list[Change]] = defaultdict(list)
        for change in self.table.changes:
            found[change.job].append(change)
        return found

    def is_disturbed(self, run: Run) -> bool:
        """Whether its outcome may be lost: cut off, too late, or something was broken right after it."""
        if run.verdict is None or self.may_have_lost_its_lease(run, run.end):
            return True
        return any(
            fault.since <= run.end + WRITTEN_WITHIN and fault.until >= run.end
            for fault in self.ledger.faults
            if fault.kills or fault.suspends
        )

    def may_have_lost_its_lease(self, run: Run, by: float) -> bool:
        """Whether its worker was kept from renewing for long enough, between its start and this time."""
        return any(
            fault.suspends
            and (fault.pids is None or run.pid in fault.pids)
            and fault.since < by
            and fault.until > run.start - self.lease
            and min(fault.until, by) - fault.since >= PART_OF_LEASE * self.lease
            for fault in self.ledger.faults
        )


Rule = Callable[[Evidence], Iterator[str]]


def committed_jobs_are_there(seen: Evidence) -> Iterator[str]:
    """What was committed is in the table once."""
    times = Counter(row.n for row in seen.table.rows)
    for job in seen.ledger.enqueued.values():
        if job.fate == "committed" and times[job.n] != 1:
            yield f"lost: job n={job.n} ({job.type}) was committed and is in the table {times[job.n]} times"
        if job.fate == "unknown" and times[job.n] > 1:
            yield f"doubled: job n={job.n} was enqueued once and is in the table {times[job.n]} times"


def rolled_back_jobs_do_not_exist(seen: Evidence) -> Iterator[str]:
    """Nothing that was rolled back is in the table, or ever ran."""
    gone = {n for n, job in seen.ledger.enqueued.items() if job.fate == "rolled back"}
    for n in gone & {row.n for row in seen.table.rows}:
        yield f"job n={n} was rolled back and is in the table"
    for n in gone & {run.n for run in seen.ledger.runs}:
        yield f"job n={n} was rolled back and ran"


def all_ended_as_expected(seen: Evidence) -> Iterator[str]:
    """Every job came to an end, and to the right one."""
    for row in seen.table.rows:
        expected = seen.ledger.enqueued[row.n].expected if row.n in seen.ledger.enqueued else []
        if row.status not in FINAL:
            yield f"stuck: {name(seen, row)} is {row.status}"
        elif row.status not in expected:
            yield f"{name(seen, row)} is {row.status}, not {' or '.join(expected)}"
        if row.finished != (row.status in FINAL) or row.leased != (row.status == "running"):
            yield f"{name(seen, row)}: finished_at or lease_until does not fit {row.status}"


def status_moved_legally(seen: Evidence) -> Iterator[str]:
    """Ended exactly once; each claim from pending, with a fence one higher; no other change of the fence."""
    for job, changes in seen.changes.items():
        status, fence = "pending", 0
        for change in changes:
            claim = (change.was, change.became) == ("pending", "running")
            if (change.was, change.became) not in LEGAL or change.was != status:
                yield f"{name(seen, job)} went from {change.was} to {change.became} after {status}"
            if change.fence != fence + claim:
                yield f"{name(seen, job)}: fence {fence} became {change.fence} with {change.became}"
            status, fence = change.became, change.fence
    for row in seen.table.rows:
        ends = sum(change.became in FINAL for change in seen.changes[row.id])
        if ends != (row.status in FINAL):
            yield f"{name(seen, row)} ended {ends} times and is {row.status}"


def a_claim_starts_once(seen: Evidence) -> Iterator[str]:
    """One claim, one start; and none that the table knows nothing of."""
    yield from (f"doubled: {text}" for text in seen.ledger.twice)
    for run in seen.ledger.runs:
        row = seen.rows.get(run.job)
        if row is None:
            yield f"lost: job {run.job} (n={run.n}) ran and is not in the table"
        elif run.fence > row.fence:
            yield f"{name(seen, row)} ran with fence {run.fence} after its last, {row.fence}"


def the_last_claim_wrote_the_outcome(seen: Evidence) -> Iterator[str]:
    """A job that is done was done by the run of its last claim, whose result it has."""
    for row in seen.table.rows:
        if row.status != "done":
            continue
        last = [run for run in seen.runs.get(row.id, []) if run.fence == row.fence]
        if not last or last[0].verdict != OK:
            yield f"{name(seen, row)} is done, and its last claim (fence {row.fence}) did not return"
        if row.result != row.fence:
            yield f"{name(seen, row)}: the run with fence {row.result} wrote over the claim {row.fence}"


def no_two_runs_at_once(seen: Evidence) -> Iterator[str]:
    """Two attempts of a job overlap only if the first's worker was kept from renewing its lease."""
    for job, runs in seen.runs.items():
        yield from overlaps(seen, runs, name(seen, job))


def locks_exclude(seen: Evidence) -> Iterator[str]:
    """The same of all jobs with one lock key."""
    by_key: dict[str, list[Run]] = defaultdict(list)
    for run in seen.ledger.runs:
        if run.lock is not None:
            by_key[run.lock].append(run)
    for key, runs in by_key.items():
        yield from overlaps(seen, runs, f"lock key {key}")


def overlaps(seen: Evidence, runs: list[Run], what: str) -> Iterator[str]:
    """Runs of which the second began before the first had ended, without an excuse."""
    for first, second in pairwise(runs):
        if second.start < first.end and not seen.may_have_lost_its_lease(first, second.start):
            yield (
                f"doubled: {what} ran twice at once: process {first.pid} from {first.start:.3f} to "
                f"{first.end:.3f}, process {second.pid} from {second.start:.3f}"
            )


def attempts_are_counted(seen: Evidence) -> Iterator[str]:
    """Neither more attempts than starts, nor fewer than starts whose outcome was certainly written."""
    phantoms: list[str] = []
    for row in seen.table.rows:
        runs = seen.runs.get(row.id, [])
        if row.attempts > row.max_attempts:
            yield f"{name(seen, row)}: {row.attempts} attempts of {row.max_attempts}"
        if row.status in FINAL - {"cancelled"}:
            phantoms += [name(seen, row)] * (row.attempts - len(runs))
            if row.attempts != row.errors + (row.status == "done"):
                yield f"{name(seen, row)}: {row.attempts} attempts and {row.errors} errors"
        certain = sum(not seen.is_disturbed(run) for run in runs)
        if row.attempts + row.snoozes + row.releases < certain:
            yield f"{name(seen, row)}: {row.attempts} attempts of {certain} starts that came to an end"
    # A job whose worker was lost before counts from its claim on, and may be killed before its first line.
    losses = sum(len(fault.pids or [0]) for fault in seen.ledger.faults if fault.kills)
    if len(phantoms) > losses:
        yield f"attempts counted without a start, with {losses} workers lost: {', '.join(phantoms)}"


def workers_are_lost_only_by_faults(seen: Evidence) -> Iterator[str]:
    """Nobody is taken for lost whom nothing has happened to."""
    poison = {run.pid for run in seen.ledger.runs if run.verdict is None and run.type == "crash:poison"}
    if poison or any(fault.kills or fault.suspends for fault in seen.ledger.faults):
        return
    for row in seen.table.rows:
        if row.crashes:
            yield f"{name(seen, row)}: its worker was taken for lost {row.crashes} times, and none was"


def effects_are_there_once(seen: Evidence) -> Iterator[str]:
    """Of a job whose writes and completion are one transaction: both, or neither."""
    found: dict[int, list[int]] = defaultdict(list)
    for n, fence in seen.table.effects:
        found[n].append(fence)
    for row in seen.table.rows:
        enqueued = seen.ledger.enqueued.get(row.n)
        if enqueued is None or enqueued.type != "crash:store":
            continue
        expected = [row.fence] if row.status == "done" else []
        if found[row.n] != expected:
            yield f"{name(seen, row)}: effects of the claims {found[row.n]}, not {expected}"


def one_worker_keeps_the_order(seen: Evidence) -> Iterator[str]:
    """In the queue "fifo" a process with one thread starts jobs of one priority as they were enqueued."""
    by_process: dict[int, list[int]] = defaultdict(list)
    for run in seen.ledger.runs:
        enqueued = seen.ledger.enqueued.get(run.n)
        passed_over = any(
            one.locks and one.since - 1 < run.start < one.until + 1 for one in seen.ledger.faults
        )
        if enqueued is not None and enqueued.queue == "fifo" and run.fence == 1 and not passed_over:
            by_process[run.pid].append(run.n)
    for pid, order in by_process.items():
        for earlier, later in pairwise(order):
            if later < earlier:
                yield f"order: process {pid} started job n={earlier} before n={later}"


RULES: tuple[Rule, ...] = (
    committed_jobs_are_there,
    rolled_back_jobs_do_not_exist,
    all_ended_as_expected,
    status_moved_legally,
    a_claim_starts_once,
    the_last_claim_wrote_the_outcome,
    no_two_runs_at_once,
    locks_exclude,
    attempts_are_counted,
    workers_are_lost_only_by_faults,
    effects_are_there_once,
    one_worker_keeps_the_order,
)


@dataclass
class Verdict:
    """What came of a run."""

    broken: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)


def check(seen: Evidence) -> Verdict:
    """Apply every rule."""
    broken = [text for rule in RULES for text in rule(seen)]
    verdict = Verdict(broken)
    verdict.figures.update(
        jobs=len(seen.table.rows),
        runs=len(seen.ledger.runs),
        repeated=sum(max(sum(run.verdict == OK for run in runs) - 1, 0) for runs in seen.runs.values()),
        lost=sum(text.startswith(("lost: ", "stuck: ")) for text in broken),
        doubled=sum(text.startswith("doubled: ") for text in broken),
    )
    return verdict


def name(seen: Evidence, job: Row | str) -> str:
    """How a sentence speaks of a job."""
    row = seen.rows.get(job) if isinstance(job, str) else job
    if row is None:
        return f"job {job}"
    enqueued = seen.ledger.enqueued.get(row.n)
    return f"job {row.id} (n={row.n}, {enqueued.type if enqueued else 'of unknown type'})"
