"""Waiting for the result of a task."""

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_jobqueue.backend import wait, wait_async
from django_jobqueue.compat import TaskResultDoesNotExist, TaskResultStatus
from django_jobqueue.exceptions import WaitInsideTransaction, WaitTimeout
from django_jobqueue.worker import Worker
from tests.tasks import sample

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker() -> Any:
    worker = Worker(poll_interval=0.2)
    worker.start()
    yield worker
    assert worker.stop(30)


def test_wait_gives_the_final_result(worker: Worker) -> None:
    result = sample.answer.enqueue()

    assert wait(result, 30) is result
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 42)
    failed = wait(sample.failing.enqueue(), timedelta(seconds=30))
    assert (failed.status, len(failed.errors)) == (TaskResultStatus.FAILED, 1)


def test_wait_for_async_code_gives_the_same(worker: Worker) -> None:
    async def both() -> list[Any]:
        results = [await sample.echo_async.aenqueue(n) for n in range(2)]
        return await asyncio.gather(*(wait_async(one, 30) for one in results))

    assert [one.return_value["args"] for one in async_to_sync(both)()] == [[0], [1]]


def test_wait_has_an_end() -> None:
    with pytest.raises(WaitTimeout):
        wait(sample.answer.enqueue(), 0.05)


def test_wait_in_the_transaction_that_holds_the_enqueue_is_refused_at_once() -> None:
    with transaction.atomic():
        result = sample.answer.enqueue()
        with pytest.raises(WaitInsideTransaction):
            wait(result, 30)


def test_wait_for_a_task_that_is_gone_says_so() -> None:
    result = sample.answer.enqueue()
    object.__setattr__(result, "id", str(uuid.UUID(int=0)))

    with pytest.raises(TaskResultDoesNotExist):
        wait(result, 30)
