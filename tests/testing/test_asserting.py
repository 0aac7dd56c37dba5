"""assert_enqueued, and jobs that run as soon as they are enqueued."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.test import TestCase
from django.utils import timezone

from django_jobqueue.models import Job, JobStatus
from django_jobqueue.testing import immediate, running
from tests.tasks import sample
from tests.testing.conftest import Handle

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus
HOUR = timedelta(hours=1)


def note(n: int, more: Any = None) -> int:
    return n


def test_jobs_are_found_by_type_payload_queue_and_time(handle: Handle, assert_enqueued: Any) -> None:
    handler = handle(note)
    at = timezone.now() + HOUR
    one = handler.enqueue(n=1, more={"a": [1, 2], "b": {"c": 1, "d": 2}})
    two = handler.using(queue="q", priority=7, run_after=at).enqueue(n=2)
    assert assert_enqueued() == [one, two]
    for what in (handler, "tests:note", SimpleNamespace(module_path="tests:note")):
        assert assert_enqueued(what, times=2) == [one, two]
    assert assert_enqueued(handler, {"n": 1}) == [one]
    assert assert_enqueued(handler, {"more": {"b": {"d": 2}}}, times=1) == [one]
    assert assert_enqueued(payload={"more": {"a": (1, 2)}}) == [one]
    assert assert_enqueued(queue="q") == assert_enqueued(priority=7) == [two]
    assert assert_enqueued(run_after=at) == assert_enqueued(run_after=HOUR) == [two]
    assert assert_enqueued(run_after=timedelta(0)) == [one]
    assert assert_enqueued("tests:else", times=0) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"job_type": "tests:else"},
        {"payload": {"n": 2}},
        {"payload": {"x": 1}},
        {"payload": {"more": {"a": 1}}},
        {"queue": "q"},
        {"times": 2},
        {"times": 0},
        {"run_after": HOUR},
        {"priority": 1},
    ],
    ids=str,
)
def test_what_is_not_there_is_an_error_that_shows_what_is(
    handle: Handle, assert_enqueued: Any, asked: dict[str, Any]
) -> None:
    handle(note).enqueue(n=1)
    with pytest.raises(
        AssertionError, match=r"(?s)Expected .*found [01].*tests:note \{'n': 1\} in 'default', pending"
    ):
        assert_enqueued(**asked)


def test_nothing_at_all_is_said_and_many_are_not_all_shown(handle: Handle, assert_enqueued: Any) -> None:
    with pytest.raises(AssertionError, match="No job was enqueued at all"):
        assert_enqueued()
    handle(note).enqueue_many([{"n": n} for n in range(30)])
    with pytest.raises(AssertionError) as told:
        assert_enqueued(times=0)
    assert len(str(told.value).splitlines()) == 22
    assert str(told.value).endswith("…")


def test_a_task_is_found_by_the_names_of_its_arguments_however_they_were_given(assert_enqueued: Any) -> None:
    sample.login.enqueue("ada", "x")
    sample.login.enqueue(user="eve", password="x")
    assert_enqueued(sample.login, {"user": "ada", "password": "x"}, times=1)
    assert_enqueued(sample.login, {"password": "x"}, times=2)
    assert_enqueued(sample.login, {"args": ["ada", "x"]}, times=1)
    assert_enqueued(sample.login, {"kwargs": {"user": "eve"}}, times=1)
    assert_enqueued(sample.login, {"user": "nobody"}, times=0)


# immediate


def fails(n: int) -> None:
    raise ZeroDivisionError(n)


def test_jobs_run_as_soon_as_they_are_enqueued(handle: Handle) -> None:
    handler = handle(note)
    with immediate() as ended:
        one = handler.enqueue(n=1)
        one.refresh_from_db()
        assert (one.status, one.result) == (DONE, 1)
        handler.enqueue_many([{"n": 2}, {"n": 3}])
        later = handler.using(run_after=HOUR).enqueue(n=4)
        later.refresh_from_db()
        assert later.status == PENDING
    assert [job.result for job in ended] == [1, 2, 3]
    assert Job.objects.get(pk=handler.enqueue(n=5).pk).status == PENDING


def test_in_a_transaction_of_the_code_they_run_at_its_commit(handle: Handle) -> None:
    handler = handle(note)
    with immediate() as ended:
        with TestCase.captureOnCommitCallbacks(execute=True), transaction.atomic():
            handler.enqueue(n=1)
            assert ended == []
        assert len(ended) == 1


@pytest.mark.django_db(transaction=True)
def test_a_real_commit_runs_them_and_a_rollback_does_not(handle: Handle, immediate_jobs: list[Job]) -> None:
    handler = handle(note)
    with transaction.atomic():
        handler.enqueue(n=1)
        assert immediate_jobs == []
    assert [job.result for job in immediate_jobs] == [1]
    with transaction.atomic():
        handler.enqueue(n=2)
        transaction.set_rollback(True)
    handler.enqueue(n=3)
    assert [job.result for job in immediate_jobs] == [1, 3]


def test_jobs_that_jobs_enqueue_run_too(handle: Handle, immediate_jobs: list[Job]) -> None:
    def parent() -> None:
        Group.objects.create(name="x")
        child.enqueue(n=7)

    child = handle(note)
    handle(parent).enqueue()
    assert [job.status for job in immediate_jobs] == [DONE, DONE]


def test_a_failure_is_raised_at_the_end_of_the_block_or_kept(handle: Handle) -> None:
    handler = handle(fails, max_attempts=1)

    def block() -> None:
        with immediate():
            handler.enqueue(n=1)
            handler.enqueue(n=2)

    with pytest.raises(ZeroDivisionError, match="1"):
        block()
    with immediate(keep_failures=True) as ended:
        handler.enqueue(n=3)
    assert ended[0].status == DEAD
    assert Job.objects.counts()[DEAD] == 3


@pytest.mark.parametrize("keep_failures", [True, False])
def test_jobs_that_enqueue_each_other_for_ever_are_told_of(
    handle: Handle, monkeypatch: pytest.MonkeyPatch, keep_failures: bool
) -> None:
    def again() -> None:
        handler.enqueue()

    monkeypatch.setattr(running, "MOST", 20)
    handler = handle(again)
    with (
        pytest.raises(
            AssertionError, match=r"immediate\(\) made 20 attempts, and job .*tests:again.* is next"
        ),
        immediate(keep_failures=keep_failures),
    ):
        handler.enqueue()
    counts = Job.objects.counts()
    assert (counts[DONE], counts[PENDING], counts[RUNNING]) == (20, 1, 0)


def test_pytest_finds_the_fixtures_by_itself(pytestconfig: pytest.Config) -> None:
    assert "django_jobqueue" in [name for name, _ in pytestconfig.pluginmanager.list_name_plugin()]
