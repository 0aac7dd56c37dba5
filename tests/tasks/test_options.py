"""The queue's options by the Tasks API: what each does, where it may be given, and what is refused."""

import importlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
import pytest
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import Dedupe, Retry, task
from django_jobqueue.backend import JobQueueTask, cancel, enqueue_many, with_options
from django_jobqueue.backend.options import DEFAULTS, PER_CALL, WORDS
from django_jobqueue.backend.types import type_of
from django_jobqueue.compat import (
    InvalidTask,
    InvalidTaskBackend,
    TaskResultDoesNotExist,
    TaskResultStatus,
    django_task,
    task_backends,
)
from django_jobqueue.exceptions import DuplicateJob, InvalidPayload
from django_jobqueue.models import Job, JobStatus
from tests.tasks import sample
from tests.tasks.conftest import BACKEND
from tests.tasks.test_contract import other_backend, plain

pytestmark = pytest.mark.django_db

OPTIONS: dict[str, Any] = {
    "max_attempts": 5,
    "backoff": Retry(base=2),
    "timeout": timedelta(seconds=30),
    "dedupe_key": "one",
    "dedupe": Dedupe("raise"),
    "lock_key": "two",
    "expires_after": timedelta(hours=1),
    "atomic": True,
    "never_retry": [KeyError],
    "isolated": True,
    "max_memory": 512,
}


def job_of(result: Any) -> Job:
    return Job.objects.get(pk=result.id)


def function() -> None:
    """What is made a task of."""


def test_the_options_are_these() -> None:
    assert OPTIONS.keys() == set(WORDS)
    assert set(WORDS) - set(PER_CALL) == {"atomic", "never_retry", "isolated", "max_memory"}
    assert set(DEFAULTS) <= set(WORDS)


def check_all(made: Any) -> None:
    assert isinstance(made, JobQueueTask)
    found = {word: getattr(made, word) for word in WORDS}
    assert found == {**OPTIONS, "timeout": 30.0, "expires_after": 3600.0, "never_retry": (KeyError,)}
    assert (made.priority, made.takes_context) == (4, False)


def test_the_decorator_of_the_queue_takes_them_all() -> None:
    check_all(task(priority=4, **OPTIONS)(function))


@pytest.mark.skipif((6, 0) <= django.VERSION < (6, 1), reason="Django 6.0's own decorator takes no options")
def test_djangos_own_decorator_takes_them_all() -> None:
    check_all(django_task(priority=4, **OPTIONS)(function))


def test_a_plain_task_gets_them_by_a_function(run: Any) -> None:
    two = {"default": {"BACKEND": other_backend()}, "jobs": {"BACKEND": BACKEND}}
    with override_settings(TASKS=two):
        made = with_options(plain, backend="jobs", priority=4, **OPTIONS)
        check_all(made)
        result = with_options(plain, backend="jobs", max_attempts=5).enqueue(1)
        assert job_of(result).max_attempts == 5
        assert made.get_result(result.id).task == with_options(plain, backend="jobs", max_attempts=5)
        assert run(result).return_value == 2


def test_using_takes_those_that_a_call_may_have() -> None:
    given = {word: OPTIONS[word] for word in PER_CALL}
    made = sample.noop.using(**given)

    assert {word: getattr(made, word) for word in given} == {
        **given,
        "timeout": 30.0,
        "expires_after": 3600.0,
    }
    for word in ("atomic", "never_retry"):
        with pytest.raises(TypeError, match=rf"using\(\) has no option '{word}'"):
            sample.noop.using(**{word: OPTIONS[word]})


def test_options_of_the_backend_are_defaults(run: Any) -> None:
    options = {
        "max_attempts": 2,
        "backoff": "tests.tasks.sample.note_backoff",
        "expires_after": 60,
        "timeout": 9,
    }
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": options}}):
        job = job_of(sample.noop.enqueue())
        own = job_of(sample.fails_twice.enqueue())
        assert (job.max_attempts, own.max_attempts) == (2, 3)
        assert timedelta(0) < job.expires_at - timezone.now() <= timedelta(seconds=60)

        Job.objects.all().delete()
        run(sample.no_backoff.enqueue())
        assert len(sample.asked) == 1


def test_max_attempts_are_the_starts_a_task_may_have() -> None:
    assert job_of(sample.fails_twice.enqueue()).max_attempts == 3
    assert job_of(sample.noop.using(max_attempts=9).enqueue()).max_attempts == 9
    assert job_of(sample.noop.enqueue()).max_attempts == 3  # JOBQUEUE["MAX_ATTEMPTS"]


def test_backoff_may_be_a_retry(run: Any) -> None:
    run(sample.no_backoff.using(backoff=Retry(base=50, jitter=0, cap=900)).enqueue())

    [job] = Job.objects.all()
    assert timedelta(seconds=90) < job.run_after - timezone.now() <= timedelta(seconds=100)


def test_a_dedupe_key_of_the_arguments_gives_back_the_active_task(heard: list[Any]) -> None:
    first = sample.keyed.enqueue(7)
    again = sample.keyed.enqueue(report=7, form="json")
    other = sample.keyed.enqueue(8)

    assert (again.id, again.args, other.id == first.id) == (first.id, [7], False)
    assert [job.dedupe_key for job in Job.objects.order_by("id")] == ["report:7", "report:8"]
    assert {job.lock_key for job in Job.objects.all()} == {"reports"}
    assert [result.id for _, _, result in heard] == [first.id, other.id]


def test_a_policy_says_what_a_taken_key_does() -> None:
    first = sample.keyed.enqueue(7)
    with pytest.raises(DuplicateJob):
        sample.keyed.using(dedupe="raise").enqueue(7)

    again = sample.keyed.using(dedupe="replace").enqueue(7, form="json")
    assert (again.id, again.kwargs, Job.objects.count()) == (first.id, {"form": "json"}, 1)

    later = sample.keyed.using(dedupe=Dedupe.debounce(timedelta(minutes=5))).enqueue(7)
    assert later.id == first.id
    assert job_of(first).run_after - timezone.now() > timedelta(minutes=4)
    assert sample.keyed.get_result(first.id).task.dedupe == Dedupe.debounce(timedelta(minutes=5))


def test_a_throttled_task_answers_with_the_finished_one(run: Any) -> None:
    throttled = sample.keyed.using(dedupe=Dedupe.skip_for(timedelta(hours=1)))
    first = run(throttled.enqueue(7))

    again = throttled.enqueue(7)
    assert (again.id, again.status, again.return_value) == (
        first.id,
        TaskResultStatus.SUCCESSFUL,
        "7.csv",
    )


def test_of_two_tasks_with_a_lock_key_one_runs_at_a_time() -> None:
    by_text = [sample.noop.using(lock_key="account:7").enqueue() for _ in range(2)]
    locked = with_options(sample.noop, lock_key=lambda args: f"account:{args[0]}")
    by_function = [locked.enqueue(7), locked.enqueue(8)]

    claimed = Job.objects.claim(worker_id="one", limit=10)
    assert [str(job.pk) for job in claimed] == [by_text[0].id, by_function[1].id]
    assert Job.objects.complete(claimed[0])
    assert [str(job.pk) for job in Job.objects.claim(worker_id="one", limit=10)] == [by_text[1].id]


def test_a_dedupe_key_of_a_job_that_is_no_task_is_refused() -> None:
    Job.objects.enqueue("tests:nothing", dedupe_key="report:7")

    with pytest.raises(InvalidTask, match=r"The dedupe key 'report:7' is that of job .* 'tests:nothing'"):
        sample.keyed.enqueue(7)


def test_arguments_that_give_no_key_are_refused() -> None:
    with pytest.raises(InvalidPayload, match="missing a required argument: 'report'"):
        sample.keyed.enqueue()


def test_a_task_that_has_not_started_when_it_expires_has_failed_with_the_reason() -> None:
    result = sample.soon.using(expires_after=0.001).enqueue()
    assert 3500 < (job_of(sample.soon.enqueue()).expires_at - timezone.now()).total_seconds() <= 3600
    while not Job.objects.expire():
        pass
    result.refresh()

    assert (result.status, result.attempts, result.is_finished) == (TaskResultStatus.FAILED, 0, True)
    [error] = result.errors
    assert error.exception_class.__name__ == "JobExpired"
    assert "expire" in error.traceback


def test_a_higher_priority_runs_first() -> None:
    low, high = sample.noop.enqueue(), sample.urgent.enqueue()

    claimed = [str(job.pk) for job in Job.objects.claim(worker_id="w", limit=2)]
    assert claimed == [high.id, low.id]


# Beyond the contract.


def test_enqueue_many_keeps_the_order_and_honours_dedupe_keys(heard: list[Any]) -> None:
    results = enqueue_many(sample.keyed, [((n % 3,), {"form": str(n)}) for n in range(5)])

    assert [result.args for result in results] == [[0], [1], [2], [0], [1]]
    assert [result.kwargs["form"] for result in results] == ["0", "1", "2", "0", "1"]
    assert results[0].id == results[3].id
    assert Job.objects.count() == 3
    assert [result.id for _, _, result in heard] == [result.id for result in results[:3]]
    assert [sample.keyed.get_result(one.id) for one in results] == results


def test_enqueue_many_stores_all_or_nothing() -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        enqueue_many(sample.noop, [((1,), {}), ((object(),), {})])

    assert Job.objects.count() == 0
    assert enqueue_many(sample.noop, []) == []


def test_cancel_ends_a_ready_task_as_failed_with_the_reason() -> None:
    result = sample.noop.enqueue()

    assert cancel(result, "no longer wanted") is True
    assert cancel(result) is False
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 0)
    [error] = result.errors
    assert (error.exception_class.__name__, error.traceback) == ("JobCancelled", "no longer wanted")


def test_cancel_asks_a_running_task_to_stop_and_its_failure_is_the_reason() -> None:
    result = sample.noop.enqueue()
    [job] = Job.objects.claim(worker_id="w")

    assert cancel(result) is True
    assert job_of(result).cancel_requested_at is not None
    Job.objects.fail(job, LookupError("stopped"))
    result.refresh()
    assert job_of(result).status == JobStatus.CANCELLED
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert [error.exception_class for error in result.errors] == [LookupError]


def test_cancel_of_an_unknown_id_says_so() -> None:
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].cancel("123")


def test_what_another_backend_cannot_do_is_refused() -> None:
    with (
        override_settings(TASKS={"default": {"BACKEND": other_backend()}}),
        pytest.raises(InvalidTaskBackend, match="ImmediateBackend, which cannot do this"),
    ):
        enqueue_many(plain, [])


# Bad input is refused where it is written.


class Unhashable:
    """A key function without a hash."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, **arguments: Any) -> str:
        return "key"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_attempts": 0}, "max_attempts=0 must be a whole number from 1"),
        ({"max_attempts": 2.5}, "max_attempts=2.5 must be a whole number"),
        ({"backoff": "no.such.function"}, "backoff='no.such.function' cannot be imported"),
        ({"backoff": "tests.tasks.sample.asked"}, "which is no function"),
        ({"backoff": 5}, "backoff=5 must be a function"),
        ({"timeout": -1}, "timeout=-1 must be seconds or a timedelta, from 0.1 s"),
        ({"timeout": timedelta(0)}, "must be seconds or a timedelta, from 0.1 s"),
        ({"timeout": "1"}, "timeout='1' must be seconds or a timedelta"),
        ({"dedupe": "skip"}, "dedupe='skip' is no policy"),
        ({"expires_after": float("nan")}, "expires_after=nan must be"),
        ({"dedupe_key": "x" * 201}, "must be text of 1 to 200 characters"),
        ({"lock_key": ""}, "lock_key='' must be text of 1 to 200 characters"),
    ],
)
def test_a_bad_option_is_refused_by_the_decorator_and_by_using(options: Any, message: str) -> None:
    with pytest.raises(InvalidTask) as by_decorator:
        task(**options)(function)
    with pytest.raises(InvalidTask) as by_using:
        sample.noop.using(**options)

    assert message in str(by_decorator.value)
    assert message in str(by_using.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"atomic": "yes"}, "atomic='yes' must be True or False"),
        ({"isolated": 1}, "isolated=1 must be True or False"),
        ({"isolated": True, "max_memory": 0}, "max_memory=0 must be a whole number from 1"),
        ({"never_retry": 5}, "must be a list of exception classes"),
        ({"never_retry": [int]}, "which is no exception class"),
    ],
)
def test_a_bad_option_of_the_task_alone_is_refused_by_the_decorator(options: Any, message: str) -> None:
    with pytest.raises(InvalidTask, match=message):
        task(**options)(function)


async def coroutine() -> None:
    """Not for a transaction."""


def test_an_async_task_cannot_be_atomic() -> None:
    with pytest.raises(InvalidTask, match="atomic=True needs a plain function"):
        task(atomic=True)(coroutine)


@pytest.mark.parametrize("where", ["@task", "using()", "with_options()"])
def test_an_unknown_word_is_refused_with_the_nearest_one(where: str) -> None:
    calls: dict[str, Any] = {
        "@task": lambda: task(max_attempt=3),
        "using()": lambda: sample.noop.using(max_attempt=3),
        "with_options()": lambda: with_options(sample.noop, max_attempt=3),
    }
    with pytest.raises(TypeError) as refused:
        calls[where]()

    assert f"{where} has no option 'max_attempt'. Did you mean 'max_attempts'?" in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retries": 3}, "OPTIONS of TASKS\\['default'\\] has no option 'retries'"),
        ({"timeout": -5}, "timeout=-5 must be"),
        ({"backoff": "no.such.function"}, "cannot be imported"),
    ],
)
def test_bad_options_of_the_backend_are_refused_when_it_is_made(options: Any, message: str) -> None:
    with (
        override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": options}}),
        pytest.raises(InvalidTaskBackend, match=message),
    ):
        sample.noop.enqueue()


def test_a_key_that_a_function_makes_too_long_is_refused_at_the_call() -> None:
    made = sample.noop.using(dedupe_key=lambda **arguments: "x" * 201)

    with pytest.raises(InvalidTask, match="must be text of 1 to 200 characters"):
        made.enqueue()
    assert Job.objects.count() == 0


def test_a_key_function_needs_no_hash() -> None:
    assert job_of(sample.noop.using(lock_key=Unhashable()).enqueue()).lock_key == "key"


def test_a_back_off_of_a_call_must_be_found_by_the_worker() -> None:
    with pytest.raises(InvalidTask, match="does not lead to it"):
        sample.noop.using(backoff=lambda exception, task_result: 1).enqueue()


def test_run_after_stands_in_no_decorator() -> None:
    with pytest.raises(TypeError, match="run_after"):
        task(run_after=timezone.now())(function)


def test_a_task_that_no_worker_could_find_is_refused_at_the_enqueue() -> None:
    made = task(function)  # its path leads to the function, not to the task

    with pytest.raises(InvalidTask, match=r"No worker could find this task: tests\.tasks\."):
        made.enqueue()


def test_options_may_name_a_back_off_of_the_module_whose_tasks_they_are_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "circular_tasks.py").write_text(
        "from django_jobqueue import task\n\n@task\ndef send(): ...\n\n"
        "def wait(exception, result):\n    return 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    options = {"backoff": "circular_tasks.wait"}
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": options}}):
        tasks = importlib.import_module("circular_tasks")
        job = job_of(tasks.send.enqueue())
        assert type_of(tasks.send).delay_after(LookupError(), job) == 7
