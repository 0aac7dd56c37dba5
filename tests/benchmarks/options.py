"""What a run of the benchmark is asked to do: checked here, before anything starts."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

DATABASES = ("postgresql", "sqlite")
WORKLOADS = (
    "enqueue",
    "bulk",
    "drain",
    "latency",
    "snapshot",
    "flat",
    "pages",
    "idle",
    "wakeup",
    "tasks",
    "processes",
)
#: The batch of the raw loop that ratios are to.
BASE_BATCH = 100
#: Least and most of each number.
RANGES = {
    "jobs": (100, 2_000_000),
    "repeats": (1, 20),
    "batch": (1, 10_000),
    "rows": (100, 10_000_000),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """One run."""

    jobs: int | None = None  # None: what suits the database
    repeats: int = 3
    batch: tuple[int, ...] = (1, 10, 100, 500)
    rows: tuple[int, ...] = (1_000, 100_000, 1_000_000)
    only: tuple[str, ...] = WORKLOADS
    databases: tuple[str, ...] = DATABASES
    rivals: tuple[str, ...] = ()
    json: Path | None = None
    postgres: str | None = None
    quick: bool = False

    def jobs_on(self, database: str) -> int:
        """Jobs of one drain: enough for seconds of it."""
        if self.jobs is not None:
            return self.jobs
        usual = {"postgresql": 150_000, "sqlite": 100_000}[database]
        return usual // 20 if self.quick else usual

    def smaller(self, usual: int, least: int = 1) -> int:
        """A number of jobs or seconds that is the same at every size of drain, but for a quick run."""
        return max(usual // 5, least) if self.quick else usual


#: What `--quick` stands for, where nothing else is said.
QUICK: dict[str, Any] = {"repeats": 1, "batch": (1, 100), "rows": (1_000, 20_000)}


class OneLineParser(argparse.ArgumentParser):
    """Complains in one line: the usage is what --help is for."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parse(arguments: Sequence[str]) -> Options:
    """The options, or exit code 2 and a line that says which value breaks which rule and what to write."""
    parser = make_parser()
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    if given.get("quick"):
        given = QUICK | given
    options = Options(**given)
    if problem := json_problem(options.json):
        parser.error(problem)
    if "postgresql" not in options.databases and (options.rivals or options.postgres):
        parser.error(
            "--databases sqlite: --with and --postgres need PostgreSQL. Write --databases postgresql,sqlite."
        )
    return options


def make_parser() -> argparse.ArgumentParser:
    """Every option; those without a default here have it in ``Options``."""
    parser = OneLineParser(prog="python -m tests.benchmarks", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--jobs", type=number("jobs"), metavar="N", help="jobs of a drain (150000; on SQLite 100000)")
    add("--repeats", type=number("repeats"), metavar="N", help="times that all is measured (3)")
    add("--batch", type=numbers("batch"), metavar="N,…", help="raw loops' jobs a statement (1,10,100,500)")
    add(
        "--rows", type=numbers("rows"), metavar="N,…", help="rows of each kind for flat (1000,100000,1000000)"
    )
    add("--only", type=names("workload", WORKLOADS), metavar="NAME,…", help=", ".join(WORKLOADS))
    add("--databases", type=names("database", DATABASES), metavar="NAME,…", help=", ".join(DATABASES))
    add("--with", dest="rivals", type=rivals, metavar="NAME,…", help=f"rivals: {', '.join(known_rivals())}")
    add("--json", type=Path, metavar="FILE", help="write every figure of every repeat")
    add("--postgres", type=dsn, metavar="DSN", help="a running server, as its superuser (an own one)")
    add("--quick", action="store_true", help="all of it small, in minutes: to see that it works")
    return parser


def number(name: str) -> Callable[[str], int]:
    """A whole number in the range of this option."""
    least, most = RANGES[name]

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} must be a whole number from {least:,} to {most:,}. "
                f"Write one, or leave --{name} out."
            )
        return value

    return read


def numbers(name: str) -> Callable[[str], tuple[int, ...]]:
    """Whole numbers in the range of this option, in order, each once."""
    read = number(name)
    return lambda text: tuple(sorted({read(one.strip()) for one in text.split(",")}))


def names(kind: str, known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Some of the known names, in the order in which they are known."""

    def read(text: str) -> tuple[str, ...]:
        given = [one.strip() for one in text.split(",")]
        for one in given:
            if one not in known:
                raise argparse.ArgumentTypeError(f"{one!r} is no {kind}. Choose from {', '.join(known)}.")
        return tuple(name for name in known if name in given)

    return read


def rivals(text: str) -> tuple[str, ...]:
    """Names of rivals that there is code for."""
    there = known_rivals()
    if not there:
        raise argparse.ArgumentTypeError(f"{text!r}: tests/benchmarks/rivals is not there. Leave --with out.")
    return names("rival", there)(text)


def known_rivals() -> tuple[str, ...]:
    """Those in `rivals/`, which has its own needs and may be absent."""
    try:
        there: tuple[str, ...] = import_module("tests.benchmarks.rivals").NAMES
    except ModuleNotFoundError:
        return ()
    return there


def dsn(text: str) -> str:
    """What libpq can read."""
    try:
        conninfo_to_dict(text)
    except ProgrammingError as error:
        reason = str(error).strip()
        raise argparse.ArgumentTypeError(
            f"{text!r} is no address of a PostgreSQL server ({reason}). Write postgresql://user@host:port/name."
        ) from None
    return text


def json_problem(path: Path | None) -> str | None:
    """Why the results could not be written there, if so."""
    if path is None:
        return None
    folder = path.parent
    if path.is_dir() or not folder.is_dir():
        what = "is a folder" if path.is_dir() else f"is in no folder that there is ({folder})"
        return f"argument --json: {str(path)!r} {what}. Name a file in an existing folder."
    if not os.access(path if path.exists() else folder, os.W_OK):
        return f"argument --json: {str(path)!r} may not be written. Name a file that you may write."
    return None
