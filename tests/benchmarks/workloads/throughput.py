"""Into the queue and out of it."""

from __future__ import annotations

from functools import partial

from .. import raw_postgresql, raw_sqlite
from ..bench import JOBS_PER_SECOND, Bench, Figures, Part, Workload, connected
from ..children import call
from ..drains import drain, drain_together
from ..options import BASE_BATCH

#: Calls of one job each.
SINGLE = 3_000
#: Jobs by the thousand.
BULK = 20_000
#: A loop of one job a statement shows its rate in fewer jobs.
SLOW_SHARE = 10


def enqueue_parts(bench: Bench) -> list[Part]:
    """One row a statement, each committed."""
    jobs = bench.options.smaller(SINGLE)

    def raw() -> Figures:
        if bench.on_postgresql:
            return {JOBS_PER_SECOND: raw_postgresql.insert_single(bench.raw().url, jobs)}
        return {JOBS_PER_SECOND: raw_sqlite.insert_single(bench.raw().path, jobs)}

    def ours() -> Figures:
        bench.empty(bench.site())
        return {JOBS_PER_SECOND: call(bench.site(), "enqueue", jobs=jobs)}

    return [Part("raw INSERT", raw), Part("enqueue", ours)]


def bulk_parts(bench: Bench) -> list[Part]:
    """A thousand rows a statement, each committed."""
    jobs = bench.options.smaller(BULK)

    def ours() -> Figures:
        bench.empty(bench.site())
        return {JOBS_PER_SECOND: call(bench.site(), "enqueue_many", jobs=jobs)}

    if bench.on_postgresql:
        raw = {"raw unnest": raw_postgresql.insert_unnest, "raw VALUES": raw_postgresql.insert_values}
        parts = [
            Part(name, partial(lambda insert: {JOBS_PER_SECOND: insert(bench.raw().url, jobs)}, insert))
            for name, insert in raw.items()
        ]
    else:
        parts = [
            Part("raw executemany", lambda: {JOBS_PER_SECOND: raw_sqlite.insert_many(bench.raw().path, jobs)})
        ]
    return [*parts, Part("enqueue_many", ours)]


def raw_drain(bench: Bench, batch: int) -> Figures:
    """The bare loop in batches of so many."""
    jobs = bench.jobs if batch > 1 else max(bench.jobs // SLOW_SHARE, 1)
    raw = bench.raw()
    if bench.on_postgresql:
        raw_postgresql.fill(raw.url, jobs)
        return {JOBS_PER_SECOND: raw_postgresql.drain(raw.url, batch)}
    raw_sqlite.fill(raw.path, jobs)
    return {JOBS_PER_SECOND: raw_sqlite.drain(raw.path, batch)}


def overlapped_drain(bench: Bench) -> Figures:
    """The bare loop with claim and complete at the same time."""
    raw_postgresql.fill(bench.raw().url, bench.jobs)
    return {JOBS_PER_SECOND: raw_postgresql.Overlapped(bench.raw().url).drain(BASE_BATCH)}


def our_drain(bench: Bench, job_type: str, processes: int) -> Figures:
    """`runworker` at its own settings."""
    bench.fill(bench.site(), bench.jobs, job_type)
    figures = drain(bench.site()) if processes == 1 else drain_together(bench.site(), processes)
    return {JOBS_PER_SECOND: figures[JOBS_PER_SECOND]}


def drain_parts(bench: Bench) -> list[Part]:
    """Everything that is due, by one process and by two."""
    batches = sorted({*bench.options.batch, BASE_BATCH})
    parts = [Part(f"raw-{batch}", partial(raw_drain, bench, batch)) for batch in batches]
    if bench.on_postgresql:
        parts.append(Part("raw overlapped", partial(overlapped_drain, bench)))
    return [
        *parts,
        Part("threads", partial(our_drain, bench, "bench:nothing", 1)),
        Part("async", partial(our_drain, bench, "bench:async_nothing", 1)),
        Part("two processes", partial(our_drain, bench, "bench:nothing", 2)),
    ]


def task_drain(bench: Bench, name: str) -> Figures:
    """`runworker` on tasks of Django's API."""
    bench.fill_with_tasks(bench.site(), bench.jobs, name)
    return {JOBS_PER_SECOND: drain(bench.site())[JOBS_PER_SECOND]}


def tasks_parts(bench: Bench) -> list[Part]:
    """The same drain by Django's API, by one process."""
    return [
        Part(RAW_BASE, partial(raw_drain, bench, BASE_BATCH)),
        Part("tasks", partial(task_drain, bench, "nothing")),
        Part("async tasks", partial(task_drain, bench, "async_nothing")),
    ]


def processes_parts(bench: Bench) -> list[Part]:
    """Ten processes against one."""
    numbers = {"one process": 1, "ten processes": 10}
    return [Part(name, partial(counted_drain, bench, number)) for name, number in numbers.items()]


def counted_drain(bench: Bench, processes: int) -> Figures:
    """A drain, with a look at what each claim brought."""
    bench.fill(bench.site(), bench.jobs)
    path = bench.server.folder / f"claims-{processes}"
    path.unlink(missing_ok=True)
    figures = drain_together(bench.site(), processes, path)
    claims = [list(map(int, line.split())) for line in path.read_text().splitlines()]
    claims = [(asked, came, left) for asked, came, left in claims if came or left]  # not those of idle ones
    with connected(bench.site()) as run:
        busy = run("SELECT count(DISTINCT worker_id) FROM django_jobqueue_job")[0][0]
    return {
        JOBS_PER_SECOND: figures[JOBS_PER_SECOND],
        "claims": len(claims),
        "jobs a claim": bench.jobs / max(len(claims), 1),
        "short claims with due rows left": sum(left for _, _, left in claims),
        "processes that ran jobs": busy,
    }


RAW_BASE = f"raw-{BASE_BATCH}"

WORKLOADS = [
    Workload("enqueue", "one job a call, committed", enqueue_parts, bases=("raw INSERT",)),
    Workload(
        "bulk",
        "1,000 jobs a call, committed",
        bulk_parts,
        bases=("raw unnest", "raw VALUES", "raw executemany"),
    ),
    Workload("drain", "no-op jobs, first claim to last outcome", drain_parts, bases=(RAW_BASE,)),
    Workload("tasks", "no-op tasks of Django's API, as in drain", tasks_parts, bases=(RAW_BASE,)),
    Workload("processes", "many worker processes on one database", processes_parts, bases=("one process",)),
]
