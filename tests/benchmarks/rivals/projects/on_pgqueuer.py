"""pgqueuer on asyncpg and uvloop: asynchronous handlers, batches of 100."""

import asyncio
from collections.abc import Sequence

import asyncpg
import uvloop
from connection import parameters
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from stamps import stamp

BATCH = 100

# One loop and one connection for all calls of a step.
_loop = asyncio.Runner(loop_factory=uvloop.new_event_loop)
_opened: list[Queries] = []


async def _connect() -> asyncpg.Connection:
    names = {"dbname": "database", "host": "host", "port": "port", "user": "user", "password": "password"}
    return await asyncpg.connect(
        **{names[name]: value for name, value in parameters().items() if name in names}
    )


async def _queries() -> Queries:
    if not _opened:
        _opened.append(Queries(AsyncpgDriver(await _connect())))
    return _opened[0]


def prepare() -> None:
    async def install() -> None:
        await (await _queries()).install()

    _loop.run(install())


def enqueue(numbers: Sequence[int]) -> None:
    async def one_by_one() -> None:
        queries = await _queries()
        for number in numbers:
            await queries.enqueue("handle", str(number).encode())

    _loop.run(one_by_one())


def bulk(numbers: Sequence[int]) -> None:
    async def at_once() -> None:
        count = len(numbers)
        payloads: list[bytes | None] = [str(number).encode() for number in numbers]
        await (await _queries()).enqueue(["handle"] * count, payloads, [0] * count)

    _loop.run(at_once())


def unfinished() -> int:
    async def count() -> int:
        return sum(row.count for row in await (await _queries()).queue_size())

    return _loop.run(count())


def worker() -> None:
    async def work() -> None:
        queue = PgQueuer(AsyncpgDriver(await _connect()))

        @queue.entrypoint("handle")
        async def handle(job: Job) -> None:
            stamp(int(job.payload or b""))

        await queue.run(batch_size=BATCH)

    _loop.run(work())
