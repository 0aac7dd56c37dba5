"""`python -m tests.benchmarks`: measure, print the table, write the file. Exit code 1 if anything failed."""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import django

import django_jobqueue

from .bench import Bench, Figures, Part, Workload
from .goals import compare_rivals
from .options import Options, parse
from .report import table
from .results import Failure, Results
from .servers import PostgreSQLServer, ServerError, check, running
from .workloads import WORKLOADS


def main(arguments: list[str]) -> int:
    """One run."""
    options = parse(arguments)
    if options.postgres is not None:
        try:
            check(options.postgres)
        except ServerError as error:
            print(f"python -m tests.benchmarks: {error}", file=sys.stderr)
            return 2
    signal.signal(signal.SIGTERM, leave)
    try:
        return run(options)
    except KeyboardInterrupt:
        return 130


def run(options: Options) -> int:
    """Measure and report; what was measured before it was interrupted, too."""
    chosen = [one for one in WORKLOADS if one.name in options.only]
    results = Results(facts=facts(options))
    begun = time.monotonic()
    try:
        for database in options.databases:
            try:
                measure_on(database, options, chosen, results)
            except Exception as error:  # the server itself; the other database is measured nevertheless
                results.failures.append(Failure(database, "server", "all of it", told(error)))
    finally:
        compare_rivals(results)
        results.facts["seconds"] = round(time.monotonic() - begun, 1)
        if options.json:
            options.json.write_text(json.dumps(results.as_json(), indent=1) + "\n")
        print(table(results, chosen))
    return 1 if results.failures else 0


def leave(number: int, frame: object) -> NoReturn:
    """End as if by an error of its own, so that everything that was started is ended too."""
    sys.exit(128 + number)


def facts(options: Options) -> dict[str, Any]:
    """Where and how it ran."""
    return {
        "django_jobqueue": django_jobqueue.__version__,
        "django": django.get_version(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_at_start": os.getloadavg(),
        "options": {
            name: str(value) if isinstance(value, Path) else value for name, value in asdict(options).items()
        },
        "servers": {},
    }


def measure_on(database: str, options: Options, chosen: list[Workload], results: Results) -> None:
    """Every workload that this database has; the parts of a repeat stand side by side in time."""
    with running(database, options.postgres) as server:
        results.facts["servers"][database] = server.version
        bench = Bench(options, server)
        for workload in chosen:
            if database not in workload.databases:
                continue
            parts = workload.parts(bench)
            for part in parts:
                bases = part.bases or workload.bases
                results.bases[database, workload.name, part.name] = () if part.name in bases else bases
            for repeat in range(options.repeats):
                for part in parts:
                    say(f"{database} {workload.name} {part.name}", repeat + 1, options.repeats)
                    measure(database, workload.name, part, results)
        if options.rivals and isinstance(server, PostgreSQLServer):
            measure_rivals(server, options, results)


def measure(database: str, workload: str, part: Part, results: Results) -> None:
    """One part, once; what goes wrong with it is noted and stops no other."""
    try:
        figures = part.measure()
    except Exception as error:
        say(f"  failed: {told(error)}")
        results.failures.append(Failure(database, workload, part.name, told(error)))
    else:
        say("  " + ", ".join(f"{name} {value:,.4g}" for name, value in figures.items()))
        results.add(database, workload, part.name, figures)


def told(error: Exception) -> str:
    """Kind and message, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def measure_rivals(server: PostgreSQLServer, options: Options, results: Results) -> None:
    """Other queues; they make their own databases on the server, and repeat by themselves."""
    run_rival: Callable[..., Figures] = import_module("tests.benchmarks.rivals").run
    jobs = options.jobs_on(server.vendor)
    for name in options.rivals:
        say(f"postgresql rivals {name}")
        one = partial(run_rival, name, dsn=server.dsn, jobs=jobs, repeats=options.repeats)
        measure("postgresql", "rivals", Part(name, one), results)


def say(what: str, repeat: int | None = None, of: int | None = None) -> None:
    """Progress, beside the table."""
    print(what if repeat is None else f"{what} ({repeat}/{of})", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
