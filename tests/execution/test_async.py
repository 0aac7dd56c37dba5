"""Async handlers, and sync handlers that use asyncio."""

import asyncio
import threading
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Group
from django.db import connections, transaction

from tests.execution.runner import DONE, PENDING, Runner, exceptions


def test_an_async_handler_may_use_the_async_orm(runner: Runner) -> None:
    async def handler() -> int:
        await Group.objects.acreate(name="a")
        return await Group.objects.acount()

    job = runner.run(handler)
    assert (job.status, job.result) == (DONE, 1)


def test_its_synchronous_part_runs_in_one_thread_and_leaves_no_connection(runner: Runner) -> None:
    threads = []

    def look() -> list[Any]:
        threads.append(threading.get_ident())
        Group.objects.count()
        wrapper = connections["default"]
        kept.append(wrapper)
        return [wrapper.connection is not None]

    kept: list[Any] = []

    async def handler() -> list[Any]:
        return [await sync_to_async(look)(), await sync_to_async(look)()]

    job = runner.run(handler)
    assert job.result == [[True], [True]]
    assert len(set(threads)) == 1
    assert kept[0] is kept[1]
    assert kept[0].connection is None


def test_the_synchronous_orm_in_an_async_handler_is_a_clear_failure(runner: Runner) -> None:
    async def handler() -> int:
        return Group.objects.count()

    job = runner.run(handler)
    assert job.status == PENDING
    assert exceptions(job) == ["django.core.exceptions.SynchronousOnlyOperation"]


def test_a_sync_handler_may_gather_async_orm_calls(runner: Runner) -> None:
    async def three() -> list[int]:
        counts = [sync_to_async(Group.objects.count)() for _ in range(2)]
        return list(await asyncio.gather(*counts, Group.objects.acount()))

    def gathers() -> list[int]:
        return async_to_sync(three)()

    job = runner.run(gathers)
    assert (job.status, job.result) == (DONE, [0, 0, 0])


def test_a_sync_handler_may_run_a_loop_of_its_own(runner: Runner) -> None:
    async def add() -> int:
        await asyncio.sleep(0)
        return 3

    def handler() -> int:
        return asyncio.run(add())

    assert runner.run(handler).result == 3
    assert runner.run(handler).result == 3


def test_an_async_handler_that_cancels_itself_has_failed(runner: Runner) -> None:
    async def handler() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    job = runner.run(handler)
    assert exceptions(job) == ["asyncio.exceptions.CancelledError"]


def test_an_async_handler_may_be_given_the_context(runner: Runner) -> None:
    async def handler(context: Any, n: int) -> list[Any]:
        context.progress(1, 2, "half")
        return [context.attempt, context.cancelled, context.job.payload, n]

    assert runner.run(handler, {"n": 5}, takes_context=True).result == [1, False, {"n": 5}, 5]


def test_a_transaction_left_open_in_its_thread_is_rolled_back(runner: Runner) -> None:
    def leaves_open() -> None:
        transaction.atomic().__enter__()
        Group.objects.create(name="left open")

    async def handler() -> None:
        await sync_to_async(leaves_open)()

    assert runner.run(handler).status == DONE
    assert not Group.objects.exists()


def test_tasks_left_behind_do_not_disturb_the_outcome(runner: Runner) -> None:
    async def handler() -> str:
        for _ in range(5):
            task = asyncio.ensure_future(asyncio.sleep(60))
            task.cancel()
        return "done"

    assert runner.run(handler).result == "done"
