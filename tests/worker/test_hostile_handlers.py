"""Whatever a handler does, its job ends in a recorded state and the ten jobs behind it on its thread run."""

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from django_jobqueue.models import Job
from django_jobqueue.worker import Worker
from tests.execution.test_failures import HOSTILE
from tests.jobsapp.ledger import Ledger
from tests.waiting import equals
from tests.worker.handlers import DEAD, DONE, Handlers, fresh, status, touches

Start = Callable[..., Worker]


def raises(make: Callable[[], BaseException]) -> Callable[[], None]:
    def handler() -> None:
        raise make()

    return handler


def ends_its_thread() -> None:
    sys.exit()


def closes_the_connection_and_raises() -> None:
    connection.ensure_connection()
    connection.connection.close()
    raise ValueError


def leaves_a_transaction_open_and_raises() -> None:
    transaction.atomic().__enter__()
    Job.objects.enqueue("tests:touch")
    raise ValueError


def returns_nonsense() -> Any:
    return {"lock": threading.Lock()}


def returns_text_with_nul() -> str:
    return "a\0b"


HANDLERS = {
    **{name: raises(make) for name, make in HOSTILE.items()},
    "ends its thread": ends_its_thread,
    "closes the connection": closes_the_connection_and_raises,
    "leaves a transaction open": leaves_a_transaction_open_and_raises,
    "returns nonsense": returns_nonsense,
    "returns NUL": returns_text_with_nul,
}


def test_plain_handlers(start_worker: Start, handlers: Handlers, ledger: Ledger) -> None:
    hostile, behind = [], []
    for handler in HANDLERS.values():
        hostile.append(Job.objects.enqueue(handlers.add(handler), max_attempts=1))
        behind += touches(10)
    worker = start_worker(threads=1)

    equals([DEAD] * len(hostile), lambda: [status(job) for job in hostile])
    equals(len(behind), lambda: [status(job) for job in behind].count(DONE))
    assert all(len(fresh(job).errors) == 1 and fresh(job).last_error for job in hostile)
    assert set(ledger.times_run().values()) == {1}
    assert not worker.died.is_set()


def test_async_handlers(start_worker: Start, handlers: Handlers, ledger: Ledger) -> None:
    def on_the_loop(make: Callable[[], BaseException]) -> Callable[[], Any]:
        async def handler() -> None:
            await asyncio.sleep(0)
            raise make()

        return handler

    jobs = [Job.objects.enqueue(handlers.add(on_the_loop(make)), max_attempts=1) for make in HOSTILE.values()]
    worker = start_worker(async_concurrency=2)

    equals([DEAD] * len(jobs), lambda: [status(job) for job in jobs])
    assert all(len(fresh(job).errors) == 1 for job in jobs)
    after = Job.objects.enqueue(handlers.add(asyncio.sleep), {"delay": 0})
    equals(DONE, lambda: status(after))
    assert not worker.died.is_set()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_retry_rule_that_leaves_hurts_nobody(
    start_worker: Start, handlers: Handlers, ledger: Ledger, is_async: bool
) -> None:
    def leaves(exception: BaseException, job: Any) -> float:
        raise SystemExit(3)

    async def fails() -> None:
        raise ValueError

    handler = fails if is_async else raises(ValueError)
    job = Job.objects.enqueue(handlers.add(handler, retry=leaves), max_attempts=1)
    behind = touches(10)
    worker = start_worker(threads=1)

    equals(DEAD, lambda: status(job), within=10)
    equals([DONE] * 10, lambda: [status(one) for one in behind])
    assert not worker.died.is_set()
