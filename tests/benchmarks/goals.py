"""What the queue is meant to reach, each as a bound on a figure or on its ratio to the bare loop."""

from __future__ import annotations

from dataclasses import dataclass

from .bench import BEST, JOBS_PER_SECOND
from .results import Key, Results
from .site import PAGES

RATIO, VALUE = "ratio", "value"
LAST_TENTH = "last/first tenth"
MEMORY = "RSS MiB a process"
OURS_OVER_THEIRS = "our drain / theirs"

#: How rivals' drains are named, and the database whose drain of ours each is compared with.
DRAINS = {"drain_per_second": "postgresql", "sqlite_drain_per_second": "sqlite"}
#: Rivals that people use with Django; the others are Python queues on PostgreSQL.
DJANGO_RIVALS = (
    "procrastinate",
    "django-tasks-db",
    "dj-queue",
    "django-ox",
    "django-q2",
    "huey",
    "celery",
    "steady-queue",
)
OTHER_RIVALS = ("pgqueuer", "oban")


@dataclass(frozen=True)
class Goal:
    """A bound."""

    database: str
    workload: str
    part: str
    figure: str
    of: str
    least: float | None = None
    most: float | None = None

    def is_for(self, key: Key) -> bool:
        """Whether this figure is bound by it."""
        return Key(self.database, self.workload, self.part, self.figure) == key

    def value(self, results: Results, key: Key) -> float | None:
        """What is compared with the bound."""
        return results.ratio(key) if self.of == RATIO else results.median(key)

    def is_reached(self, value: float) -> bool:
        """Whether it is within the bound."""
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        bound = f">= {self.least:g}" if self.least is not None else f"<= {self.most:g}"
        return f"{bound} x" if self.of == RATIO else bound


def _rates(database: str, workload: str, **least: float) -> list[Goal]:
    return [
        Goal(database, workload, part.replace("_", " "), JOBS_PER_SECOND, RATIO, least=bound)
        for part, bound in least.items()
    ]


GOALS = [
    *_rates("postgresql", "enqueue", enqueue=0.7),
    Goal("postgresql", "bulk", "enqueue_many", JOBS_PER_SECOND, RATIO, least=0.5),
    *_rates("postgresql", "drain", threads=0.8, two_processes=1.0, **{"async": 0.8}),
    *_rates("postgresql", "tasks", tasks=0.6),
    Goal("postgresql", "latency", "runworker", "p50 ms", RATIO, most=1.3),
    Goal("postgresql", "latency", "runworker", "p99 ms", VALUE, most=10),
    Goal("postgresql", "snapshot", "threads", LAST_TENTH, VALUE, least=0.8),
    Goal("postgresql", "flat", "claim, 1M rows", "p50 ms", RATIO, most=1.5),
    Goal("postgresql", "idle", "runworker", "statements/min", VALUE, most=60),
    Goal("postgresql", "idle", "runworker", "CPU s/min", VALUE, most=0.3),
    Goal("postgresql", "idle", "runworker", MEMORY, VALUE, most=80),
    Goal("postgresql", "wakeup", "workers: 50", "statements/job", VALUE, most=5),
    Goal("postgresql", "wakeup", "workers: 50", "p99 ms", VALUE, most=10),
    *_rates("postgresql", "processes", ten_processes=1.0),
    *_rates("sqlite", "enqueue", enqueue=0.3),
    *_rates("sqlite", "drain", threads=0.5),
    Goal("sqlite", "latency", "runworker", "p50 ms", VALUE, most=10),
    Goal("sqlite", "latency", "runworker", "p99 ms", VALUE, most=30),
    Goal("sqlite", "idle", "runworker", "CPU s/min", VALUE, most=0.8),
    Goal("sqlite", "idle", "runworker", MEMORY, VALUE, most=80),
    *(
        Goal(database, "pages", f"{page}, 1M jobs", BEST, RATIO, most=5)
        for database in ("postgresql", "sqlite")
        for page in PAGES
    ),
    *(Goal("postgresql", "rivals", name, OURS_OVER_THEIRS, VALUE, least=10) for name in DJANGO_RIVALS),
    *(Goal("postgresql", "rivals", name, OURS_OVER_THEIRS, VALUE, least=1) for name in OTHER_RIVALS),
]


def goals_for(key: Key) -> list[Goal]:
    """The bounds on a figure."""
    return [goal for goal in GOALS if goal.is_for(key)]


def compare_rivals(results: Results) -> None:
    """Add how many times as fast one process of ours drained in this run."""
    for key in [one for one in results.repeats if one.workload == "rivals" and one.figure in DRAINS]:
        database = DRAINS[key.figure]
        ours = results.median(Key(database, "drain", "threads", JOBS_PER_SECOND))
        theirs = results.median(key)
        if ours and theirs:
            name = OURS_OVER_THEIRS if database == "postgresql" else f"{database}: {OURS_OVER_THEIRS}"
            results.add(*key[:3], {name: ours / theirs})
