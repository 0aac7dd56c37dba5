"""Whether it stays as fast when the table is large, and when somebody's transaction keeps the dead rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg

from .. import raw_postgresql
from ..bench import BEST, Bench, Figures, Part, Workload, quantile
from ..children import call
from ..drains import drain, rates
from ..options import BASE_BATCH
from ..servers import Target
from ..site import PAGES

#: Jobs that are drained beside a held snapshot.
HELD = 100_000
#: Jobs of one claim whose cost is taken.
CLAIMED = 10
#: Claims and looks at figures, of which the median is taken, and how many before them are not counted.
CLAIMS = 200
LOOKS = 30
WARM = 10
#: Looks at a page, of which the best is taken.
PAGE_LOOKS = 5
#: Jobs of a small site and of a large one.
SITES = (1_000, 1_000_000)
#: As the admin's list has it.
CAP = 10_000


def snapshot_parts(bench: Bench) -> list[Part]:
    """A drain while another transaction still sees the table as it was before."""
    jobs = bench.options.smaller(HELD)

    def raw() -> Figures:
        target = bench.raw()
        raw_postgresql.fill(target.url, jobs)
        with held(target, "raw_job"):
            raw_postgresql.drain(target.url, BASE_BATCH)
        return rates(target, "raw_job")

    def ours() -> Figures:
        bench.fill(bench.site(), jobs)
        with held(bench.site(), "django_jobqueue_job"):
            return drain(bench.site())

    return [Part(f"raw-{BASE_BATCH}", raw), Part("threads", ours)]


@contextmanager
def held(target: Target, table: str) -> Iterator[None]:
    """A forgotten transaction, or a dump, that has read the table."""
    with psycopg.connect(target.url, autocommit=True) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute(f"SELECT count(*) FROM {table}")
        yield
        connection.execute("ROLLBACK")


def flat_parts(bench: Bench) -> list[Part]:
    """The same looks at tables of different sizes; each is filled once, then they take turns."""
    looks: dict[str, Callable[[Bench, Target], Figures]] = {
        "claim": claim,
        "counts": counts,
        "admin list": admin,
    }
    least = size(min(bench.options.rows))
    return [
        Part(f"{name}, {size(rows)} rows", partial(look_at, bench, rows, look), (f"{name}, {least} rows",))
        for name, look in looks.items()
        for rows in bench.options.rows
    ]


def look_at(bench: Bench, rows: int, look: Callable[[Bench, Target], Figures]) -> Figures:
    """At a table with so many rows of each kind."""
    target = filled(bench, f"flat_{rows}", "fill", rows=rows)
    if bench.on_postgresql:  # claims that were rolled back leave dead rows there, and only there
        call(target, "tidy")
    return look(bench, target)


def pages_parts(bench: Bench) -> list[Part]:
    """Each page of the admin on a small site and on a large one."""
    sizes = [bench.options.smaller(jobs, least=1_000) for jobs in SITES]
    return [
        Part(
            f"{page}, {size(jobs)} jobs",
            partial(page_at, bench, jobs, page),
            (f"{page}, {size(sizes[0])} jobs",),
        )
        for page in PAGES
        for jobs in sizes
    ]


def page_at(bench: Bench, jobs: int, page: str) -> Figures:
    """The best of a few looks at a page, after some that fill the caches."""
    target = filled(bench, f"pages_{jobs}", "fill_site", jobs=jobs)
    taken = call(target, "page_cost", times=PAGE_LOOKS + WARM, page=page)
    return {BEST: min(taken[WARM:]) * 1_000}


def filled(bench: Bench, name: str, task: str, **arguments: int) -> Target:
    """The database of that name; new, it is filled by this task of the site."""
    is_new = not bench.server.has(name)
    target = bench.site(name)
    if is_new:
        try:
            call(target, task, **arguments)
            call(target, "tidy")
        except BaseException:
            bench.server.drop(name)  # half filled, it would look small
            raise
    return target


def claim(bench: Bench, target: Target) -> Figures:
    """Of a few jobs, rolled back."""
    return middle(target, "claim_cost", bench.options.smaller(CLAIMS), limit=CLAIMED)


def counts(bench: Bench, target: Target) -> Figures:
    """By status, up to the cap."""
    return middle(target, "counts_cost", bench.options.smaller(LOOKS), cap=CAP)


def admin(bench: Bench, target: Target) -> Figures:
    """The first page of the list of jobs."""
    return middle(target, "admin_cost", bench.options.smaller(LOOKS))


def middle(target: Target, task: str, times: int, **arguments: int) -> Figures:
    """The median cost of so many, after some that find nothing in the caches."""
    taken = call(target, task, times=times + WARM, **arguments)
    return {"p50 ms": quantile(taken[WARM:], 0.5) * 1_000}


def size(rows: int) -> str:
    """1k, 100k, 1M."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if rows % unit == 0:
            return f"{rows // unit}{name}"
    return str(rows)


WORKLOADS = [
    Workload(
        "snapshot",
        "a drain while a snapshot is held open elsewhere",
        snapshot_parts,
        databases=("postgresql",),
        bases=(f"raw-{BASE_BATCH}",),
    ),
    Workload("flat", "at so many rows each of done, scheduled and pending", flat_parts),
    Workload("pages", "pages of the admin, of a small site and of a large one", pages_parts),
]
