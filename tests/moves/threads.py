"""Several threads at once, each with database connections of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from time import monotonic
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection, connections

#: Seconds after which a test that waits for another thread has failed.
PATIENCE = 30


def own_connections(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, closing at its end the connections that its thread opened."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        finally:
            connections.close_all()

    return call


@contextmanager
def in_thread(function: Callable[..., Any], *args: Any) -> Iterator[Future[Any]]:
    """Run the function beside the block; the block ends when both have."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(own_connections(function), *args)
    try:
        yield future
        future.result(PATIENCE)
    finally:
        # Not waiting: where the block has failed, the thread may stand before a lock that the caller holds.
        pool.shutdown(wait=False)


def together(*functions: Callable[[], Any]) -> list[Any]:
    """Run all at once; their answers in order. The first exception of any of them is raised."""
    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(own_connections(function)) for function in functions]
    return [future.result() for future in futures]


def wait_for(event: Event) -> None:
    assert event.wait(PATIENCE), "the other thread did not get there"


def run_async(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run it on an event loop; its queries go through connections of another thread, closed at the end."""

    async def main() -> Any:
        try:
            return await coroutine
        finally:
            await sync_to_async(connections.close_all)()

    return asyncio.run(main())


def wait_until_somebody_waits() -> None:
    """PostgreSQL: until another session stands before a lock. Asked of the server again and again."""
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")
            [[somebody]] = cursor.fetchall()
        if somebody:
            return
    raise AssertionError("nobody waits for a lock")


def before_each(word: str, act: Callable[[], None]) -> Any:
    """A block in which ``act`` runs just before every statement of this thread starting with ``word``."""

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().upper().startswith(word):
            act()
        return execute(sql, params, many, context)

    return connection.execute_wrapper(wrapper)
