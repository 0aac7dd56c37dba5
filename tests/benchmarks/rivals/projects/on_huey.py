"""huey without Django: threads, its usual way, and on SQLite short pauses of the polling."""

import sys
from collections.abc import Sequence

from connection import CONNINFO, SQLITE
from huey import PostgresHuey, SqliteHuey
from stamps import stamp

huey = SqliteHuey(filename=SQLITE) if SQLITE else PostgresHuey(dsn=CONNINFO)


@huey.task()
def handle(number: int) -> None:
    stamp(number)


def prepare() -> None:
    """The storage makes its tables itself."""


def enqueue(numbers: Sequence[int]) -> None:
    for number in numbers:
        handle(number)


def unfinished() -> int:
    return int(huey.pending_count())


def worker() -> None:
    from huey.bin.huey_consumer import consumer_main

    workers = "1" if SQLITE else "4"
    sys.argv = ["huey_consumer", "on_huey.huey", "--quiet", "--workers", workers, "--no-periodic"]
    sys.argv += ["--delay", "0.01", "--max-delay", "0.05"]
    consumer_main()
