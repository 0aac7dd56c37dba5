"""The contract of Django's Tasks API, point by point; docs/reference/tasks.md names these tests."""

import asyncio
import dataclasses
import logging
import pickle
import uuid
from collections import UserDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import django
import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue import compat, task
from django_jobqueue.backend import JobQueueBackend, JobQueueTask
from django_jobqueue.compat import (
    TASKS_LOGGER,
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from django_jobqueue.exceptions import InvalidPayload
from django_jobqueue.models import Job, JobStatus
from tests.moves.threads import own_connections
from tests.tasks import sample
from tests.tasks.conftest import BACKEND

pytestmark = pytest.mark.django_db

READY = TaskResultStatus.READY


@pytest.fixture
def backend() -> Any:
    return task_backends["default"]


def test_a_line_of_settings_chooses_the_backend(backend: Any) -> None:
    assert type(backend) is JobQueueBackend
    assert (backend.alias, backend.options, backend.queues) == ("default", {}, {"default"})
    assert sample.noop.get_backend() is backend


@pytest.mark.parametrize(
    "flag", ["supports_defer", "supports_async_task", "supports_get_result", "supports_priority"]
)
def test_it_supports_all_that_a_backend_can(backend: Any, flag: str) -> None:
    assert getattr(backend, flag) is True


def test_the_decorator_makes_a_task_that_is_called_as_a_function_too() -> None:
    assert isinstance(sample.answer, JobQueueTask)
    assert isinstance(sample.answer, Task)
    assert (sample.answer.name, sample.answer.module_path) == ("answer", "tests.tasks.sample.answer")
    assert sample.answer.call() == 42
    assert asyncio.run(sample.echo_async.acall(1)) == {"args": (1,), "kwargs": {}}


def check_ready(result: Any, task: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """All that a result is just after the enqueue."""
    job = Job.objects.get(pk=result.id)
    assert (result.id, job.status, job.job_type) == (str(job.pk), JobStatus.PENDING, task.module_path)
    assert (result.status, result.is_finished, result.backend) == (READY, False, "default")
    assert (result.args, result.kwargs, result.task) == (args, kwargs, task)
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert (result.attempts, result.errors, result.worker_ids) == (0, [], [])
    assert result.enqueued_at == job.created_at
    assert len(result.id) < 64
    with pytest.raises(ValueError, match="Task has not finished yet"):
        result.return_value  # noqa: B018


@pytest.mark.parametrize("task", [sample.noop, sample.noop_async])
def test_enqueue_stores_a_job_in_one_statement_and_tells_of_it(task: Any, heard: list[Any]) -> None:
    with CaptureQueriesContext(connection) as queries:
        result = task.enqueue(1, two=3)

    assert len([one for one in queries if "INSERT" in one["sql"]]) == 1
    assert len([one for one in queries if "NOTIFY" not in one["sql"].upper()]) == 1
    check_ready(result, task, [1], {"two": 3})
    assert heard == [("task_enqueued", JobQueueBackend, result)]


@pytest.mark.parametrize("task", [sample.noop, sample.noop_async])
def test_the_async_twin_does_the_same_and_touches_no_database_in_the_loop(
    task: Any, heard: list[Any]
) -> None:
    result = async_to_sync(task.aenqueue)(1, two=3)

    check_ready(result, task, [1], {"two": 3})
    assert heard == [("task_enqueued", JobQueueBackend, result)]
    assert async_to_sync(task.aget_result)(result.id) == result


def test_get_result_gives_back_what_enqueue_gave_in_one_statement(backend: Any) -> None:
    result = backend.enqueue(sample.noop, [1, "x"], {"y": None})

    with CaptureQueriesContext(connection) as queries:
        again = backend.get_result(result.id)

    assert again == result
    assert len(queries) == 1
    assert async_to_sync(backend.aget_result)(result.id) == result


def test_get_result_gives_back_the_task_with_what_using_changed(backend: Any) -> None:
    later = timezone.now() + timedelta(hours=1)
    task = sample.noop.using(priority=5, run_after=later, max_attempts=7, lock_key="one", timeout=2.5)

    result = task.enqueue()

    assert result.task == task
    assert backend.get_result(result.id) == result
    job = Job.objects.get(pk=result.id)
    assert (job.priority, job.run_after, job.max_attempts, job.lock_key) == (5, later, 7, "one")


@pytest.mark.parametrize("wrong", [str(uuid.UUID(int=0)), "123", "", "x" * 70, "\x00", None, 5, b"\xff"])
def test_unknown_and_malformed_ids_do_not_exist(backend: Any, wrong: Any) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(wrong)
    with pytest.raises(TaskResultDoesNotExist):
        async_to_sync(backend.aget_result)(wrong)
    with pytest.raises(TaskResultDoesNotExist):
        sample.noop.get_result(wrong)


def test_the_id_of_a_job_that_is_no_task_does_not_exist(backend: Any) -> None:
    job = Job.objects.enqueue("tests:nothing")

    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(str(job.pk))


def test_the_result_of_another_task_does_not_match() -> None:
    result = sample.noop.enqueue()

    with pytest.raises(compat.TaskResultMismatch, match=r"received 'tests.tasks.sample.noop'"):
        sample.answer.get_result(result.id)


def test_refresh_reads_all_that_may_have_changed(run: Any) -> None:
    result = sample.answer.enqueue()
    other = sample.answer.get_result(result.id)
    run(result)

    assert other.status == READY
    other.refresh()
    assert other == result
    async_to_sync(other.arefresh)()
    assert (other.return_value, other.attempts) == (42, 1)


def test_the_synchronous_twin_inside_an_event_loop_is_refused_as_djangos_orm_is(backend: Any) -> None:
    result = sample.noop.enqueue()

    async def wrong() -> None:
        result.refresh()

    with pytest.raises(SynchronousOnlyOperation):
        asyncio.run(wrong())


# What may be enqueued.


class Thing:
    """No JSON."""

    def method(self) -> None:
        """No function of a module."""


@pytest.mark.parametrize(
    "wrong", [Thing(), datetime(2030, 1, 1), Decimal(1), uuid.UUID(int=1), {1, 2}, {"a": Thing()}]
)
def test_what_is_no_json_is_a_type_error_and_nothing_is_stored(wrong: Any, heard: list[Any]) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        sample.noop.enqueue(wrong)
    with pytest.raises(TypeError, match="Unsupported type"):
        async_to_sync(sample.noop.aenqueue)(key=wrong)

    assert (Job.objects.count(), heard) == (0, [])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "\x00", "\ud800", 1e300])
def test_what_json_would_not_give_back_is_refused_by_its_place(wrong: Any) -> None:
    with pytest.raises(InvalidPayload, match=r"^payload\.args\[0\]"):
        sample.noop.enqueue(wrong)

    assert Job.objects.count() == 0


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ((1, 2), [1, 2]),
        (b"bytes", "bytes"),
        (UserDict(a=1), {"a": 1}),
        ({1: 2, None: 4, 1.5: 5}, {"1": 2, "null": 4, "1.5": 5}),
        (range(3), [0, 1, 2]),
        (READY, "READY"),
        (JobStatus.DONE, 3),
    ],
)
def test_what_the_contract_normalises_is_shown_as_it_will_arrive(given: Any, stored: Any) -> None:
    result = sample.noop.enqueue(given, key=given)

    assert (result.args, result.kwargs) == ([stored], {"key": stored})
    assert [type(one) for one in result.args] == [type(stored)]
    assert sample.noop.get_result(result.id) == result


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"priority": 101}, "priority must be a whole number between -100 and 100."),
        ({"priority": -101}, "priority must be a whole number between -100 and 100."),
        ({"priority": 3.1}, "priority must be a whole number between -100 and 100."),
        ({"queue_name": "elsewhere"}, "Queue 'elsewhere' is not valid for backend."),
        ({"queue_name": "elsewhere", "priority": 101}, "priority must be a whole number"),
    ],
)
def test_what_the_contract_names_is_an_invalid_task_in_its_order(changes: Any, message: str) -> None:
    with pytest.raises(InvalidTask, match=message.replace(".", r"\.")):
        sample.noop.using(**changes)


def test_a_naive_run_after_is_refused_under_use_tz_and_read_in_the_time_zone_without() -> None:
    naive = datetime(2031, 1, 1)
    with override_settings(USE_TZ=True), pytest.raises(InvalidTask, match="must be an aware datetime"):
        sample.noop.using(run_after=naive)
    with override_settings(USE_TZ=False):
        result = sample.noop.using(run_after=naive).enqueue()
        assert sample.noop.get_result(result.id).task.run_after == naive


def test_run_after_may_be_a_timedelta() -> None:
    result = sample.noop.using(run_after=timedelta(minutes=5)).enqueue()

    due = Job.objects.get(pk=result.id).run_after - timezone.now()
    assert timedelta(minutes=4) < due <= timedelta(minutes=5)


def test_a_task_without_run_after_has_none_in_its_result(backend: Any) -> None:
    assert backend.get_result(sample.noop.enqueue().id).task.run_after is None


def context_comes_second(first: int, context: Any) -> None:
    """Wrong with takes_context."""


def test_a_task_that_takes_context_must_have_it_first() -> None:
    with pytest.raises(InvalidTask, match="does not have a first argument of 'context'"):
        task(takes_context=True)(context_comes_second)


@pytest.mark.parametrize("kind", ["builtin", "method", "inner"])
def test_only_a_function_of_a_module_is_a_task(kind: str) -> None:
    def inner() -> None:
        """Not of the module."""

    wrong: dict[str, Any] = {"builtin": any, "method": Thing().method, "inner": inner}
    with pytest.raises(InvalidTask, match="must be defined at a module level"):
        task()(wrong[kind])


def test_enqueue_validates_again_since_settings_may_have_changed() -> None:
    other = {"default": {"BACKEND": BACKEND, "QUEUES": ["other"]}}
    with override_settings(TASKS=other):
        task = sample.noop.using(queue_name="other")

    with pytest.raises(InvalidTask, match="Queue 'other' is not valid"):
        task.enqueue()
    with pytest.raises(InvalidTask, match="Queue 'other' is not valid"):
        async_to_sync(task.aenqueue)()


def test_no_queues_in_the_settings_allow_every_queue_that_the_job_queue_has() -> None:
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "QUEUES": []}}):
        assert sample.noop.using(queue_name="any").enqueue().task.queue_name == "any"
        with (
            override_settings(JOBQUEUE={"QUEUES": ["default"]}),
            pytest.raises(InvalidTask, match=r"'any' is not one of those declared in JOBQUEUE"),
        ):
            sample.noop.using(queue_name="any")


def test_tasks_work_without_time_zones(run: Any) -> None:
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Kolkata"):
        result = run(sample.answer.enqueue())
        assert timezone.is_naive(result.enqueued_at)
        assert result.enqueued_at <= result.started_at <= result.finished_at


def elsewhere(function: Callable[[], Any]) -> Any:
    """What it returns on another connection."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(own_connections(function)).result(30)


# Transactions, signals, log, checks, pickle.


@pytest.mark.django_db(transaction=True)
def test_a_task_exists_exactly_if_the_transaction_commits() -> None:
    with transaction.atomic():
        result = sample.noop.enqueue()
        assert result.enqueued_at is not None
        if connection.vendor == "postgresql":
            assert elsewhere(Job.objects.count) == 0
    assert elsewhere(Job.objects.count) == 1

    with transaction.atomic():
        sample.noop.enqueue()
        transaction.set_rollback(True)
    assert Job.objects.count() == 1


def test_a_receiver_of_the_enqueue_that_raises_is_for_the_caller() -> None:
    def broken(**kwargs: Any) -> None:
        raise ZeroDivisionError

    task_enqueued.connect(broken)
    try:
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            sample.noop.enqueue()
    finally:
        task_enqueued.disconnect(broken)

    assert Job.objects.count() == 0


def test_the_enqueue_is_logged_by_django(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, TASKS_LOGGER):
        result = sample.noop.enqueue()

    [line] = [one.getMessage() for one in caplog.records if one.name == TASKS_LOGGER]
    assert line == f"Task id={result.id} path=tests.tasks.sample.noop enqueued backend=default"


def test_a_missing_app_is_an_error_of_the_backends_check(backend: Any) -> None:
    assert list(backend.check()) == []
    with override_settings(INSTALLED_APPS=["django.contrib.contenttypes"]):
        [problem] = backend.check()
    assert problem.id == "jobqueue.E009"
    assert '"django_jobqueue" to INSTALLED_APPS' in problem.hint


def test_tasks_and_results_can_be_pickled(run: Any) -> None:
    task = sample.keyed.using(priority=3)  # its dedupe key is a lambda
    result = run(task.enqueue(7))

    for one in (task, sample.keyed, result):
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - just made


def test_a_result_can_be_turned_into_a_dict(backend: Any) -> None:
    facts = dataclasses.asdict(sample.noop.enqueue(1))

    assert (facts["args"], facts["task"]["func"]) == ([1], sample.noop.func)


def other_backend() -> Any:
    """A backend that Django itself brings."""
    package = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
    return f"{package}.backends.immediate.ImmediateBackend"


def plain(number: int) -> int:
    return number + 1


with override_settings(TASKS={"default": {"BACKEND": other_backend()}}):
    plain = compat.django_task(plain)


def test_a_plain_task_of_another_alias_is_taken_as_it_is(run: Any) -> None:
    assert type(plain) is Task
    two = {"default": {"BACKEND": other_backend()}, "jobs": {"BACKEND": BACKEND}}
    with override_settings(TASKS=two):
        result = plain.using(backend="jobs").enqueue(1)
        assert (result.backend, type(result.task)) == ("jobs", Task)
        assert plain.using(backend="jobs").get_result(result.id) == result
        assert run(result).return_value == 2
