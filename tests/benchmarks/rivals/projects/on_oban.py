"""oban-py: asynchronous handlers, a hundred at a time in one queue, run by its own command."""

import asyncio
from collections.abc import Sequence

import psycopg
import uvloop
from connection import CONNINFO
from oban import Oban
from oban import worker as oban_worker
from oban.job import Job
from oban.schema import install
from stamps import stamp

LIMIT = 100

_loop = asyncio.Runner(loop_factory=uvloop.new_event_loop)
_opened: list[Oban] = []


@oban_worker(queue="default")
class Handle:
    async def process(self, job: Job) -> None:
        stamp(job.args["number"])


async def _client() -> Oban:
    if not _opened:
        _opened.append(Oban(pool=await Oban.create_pool(CONNINFO)))
    return _opened[0]


def prepare() -> None:
    async def tables() -> None:
        pool = await Oban.create_pool(CONNINFO)
        await install(pool)
        await pool.close()

    _loop.run(tables())


def enqueue(numbers: Sequence[int]) -> None:
    async def one_by_one() -> None:
        client = await _client()
        for number in numbers:
            await client.enqueue(Handle.new({"number": number}))

    _loop.run(one_by_one())


def bulk(numbers: Sequence[int]) -> None:
    async def at_once() -> None:
        await (await _client()).enqueue_many([Handle.new({"number": number}) for number in numbers])

    _loop.run(at_once())


def unfinished() -> int:
    with psycopg.connect(CONNINFO) as connection:
        row = connection.execute("SELECT count(*) FROM oban_jobs WHERE state <> 'completed'").fetchone()
        assert row
        return int(row[0])


def worker() -> None:
    from oban.cli import main

    main(["start", "--dsn", CONNINFO, "--queues", f"default:{LIMIT}", "--log-level", "WARNING"])
