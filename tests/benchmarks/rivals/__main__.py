"""Measures rivals alone: `python -m tests.benchmarks.rivals --with procrastinate,django-q2 --jobs 5000`."""

import argparse
import signal
import sys

from tests.postgres import running_cluster

from . import NAMES, RivalFailed, chosen, run, version

JOBS = 200_000
COLUMNS = {
    "drain_per_second": "drain/s",
    "enqueue_per_second": "enqueue/s",
    "bulk_enqueue_per_second": "bulk/s",
    "latency_p50_ms": "p50 ms",
    "latency_p95_ms": "p95 ms",
    "latency_p99_ms": "p99 ms",
    "held_snapshot_ratio": "held",
    "jobs": "jobs",
}


def main() -> int:
    options = _options()
    failed = 0
    _print_row("", list(COLUMNS.values()))
    with running_cluster() as cluster:
        for name in options.names:
            try:
                figures = run(name, dsn=cluster.url("postgres"), jobs=options.jobs, repeats=options.repeats)
            except RivalFailed as failure:
                failed += 1
                print(failure, flush=True)
                continue
            for store, prefix in (("", ""), (" on SQLite", "sqlite_")):
                if f"{prefix}jobs" in figures:
                    cells = [_text(figures.get(prefix + column)) for column in COLUMNS]
                    _print_row(f"{name} {version(name)}{store}", cells)
    return 1 if failed else 0


def _text(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:,.{0 if figure >= 100 else 2}f}"


def _print_row(title: str, cells: list[str]) -> None:
    print(f"{title:<34}" + "".join(f"{cell:>11}" for cell in cells), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.rivals", description=__doc__)
    parser.add_argument("--with", dest="names", metavar="NAMES", default=",".join(NAMES), help="with commas")
    parser.add_argument("--jobs", type=int, default=JOBS, help="at most so many in a drain (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    try:
        options.names = chosen(options.names)
    except ValueError as error:
        parser.error(str(error))
    if options.jobs < 100 or options.repeats < 1:
        parser.error("--jobs must be at least 100 and --repeats at least 1")
    return options


if __name__ == "__main__":
    # As an exception, so that servers and workers are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
