"""Isolated jobs: each thread that runs some keeps a child process for them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.contrib.auth.models import Group

from django_jobqueue.exceptions import InvalidOption
from django_jobqueue.models import Job
from django_jobqueue.registry import JobType
from django_jobqueue.worker import Worker
from tests.waiting import equals, eventually
from tests.worker.handlers import CANCELLED, DEAD, DONE, RUNNING, fresh, status

Start = Callable[..., Worker]

#: Seconds: on a busy machine a process takes its time to set up Django.
STARTS_WITHIN = 90.0
EXCEPTIONS = "django_jobqueue.exceptions"


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    left = {one for one in psutil.Process().children(recursive=True) if one not in before}
    eventually(lambda: not [one for one in left if "spawn_main" in " ".join(command(one))])


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def ended(job: Job) -> Any:
    equals(True, lambda: fresh(job).is_finished, within=STARTS_WITHIN)
    return fresh(job)


def test_jobs_run_in_another_process_which_is_used_again(start_worker: Start) -> None:
    jobs = Job.objects.enqueue_many([("tests:apart", {})] * 5)
    start_worker(threads=1)

    pids = {ended(job).result for job in jobs}
    assert len(pids) == 1
    assert pids != {os.getpid()}


def test_a_handler_that_holds_the_interpreter_is_killed_and_the_next_job_runs(start_worker: Start) -> None:
    hangs = Job.objects.enqueue("tests:apart_gil")
    after = Job.objects.enqueue("tests:apart")
    start_worker(threads=1, interrupt_grace=0.3)

    assert ended(hangs).status == DEAD
    assert fresh(hangs).last_error == f"{EXCEPTIONS}.JobTimeout: ran longer than its timeout of 1 s"
    assert ended(after).status == DONE


def test_a_handler_that_is_out_of_time_may_clean_up_first(start_worker: Start) -> None:
    careful, late = Job.objects.enqueue("tests:apart_careful"), Job.objects.enqueue("tests:apart_late")
    start_worker(threads=2, interrupt_grace=120)

    assert (ended(careful).status, fresh(careful).result) == (DONE, "cleaned up")
    assert ended(late).status == DEAD
    assert "apart_late" in fresh(late).errors[0]["traceback"]  # it was not killed


@pytest.mark.skipif("sys.platform != 'linux'")
def test_memory_is_bounded(start_worker: Start) -> None:
    much = Job.objects.enqueue("tests:apart_eats", {"mebibytes": 300})
    little = Job.objects.enqueue("tests:apart_eats", {"mebibytes": 10})
    start_worker(threads=1)

    assert ended(much).last_error.startswith("MemoryError")
    assert ended(little).status == DONE


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_that_ends_under_its_job_costs_that_attempt_alone(start_worker: Start, code: int) -> None:
    dies, after = Job.objects.enqueue("tests:apart_dies", {"code": code}), Job.objects.enqueue("tests:apart")
    worker = start_worker(threads=1)

    assert ended(dies).status == DEAD
    assert f"{EXCEPTIONS}.ProcessLost" in fresh(dies).last_error
    assert ended(after).status == DONE
    assert not worker.died.is_set()


def test_progress_comes_up_and_cancel_goes_down(start_worker: Start) -> None:
    job = Job.objects.enqueue("tests:apart_asked")
    start_worker()
    equals((0.25, "a quarter"), lambda: (fresh(job).progress, fresh(job).progress_note), within=STARTS_WITHIN)
    assert status(job) == RUNNING

    Job.objects.filter(pk=job.pk).cancel()

    assert ended(job).status == CANCELLED
    assert "stopped as asked" in fresh(job).last_error


def test_an_atomic_handler_commits_with_its_completion_there_too(start_worker: Start, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    fails = Job.objects.enqueue("tests:apart_writes", {"gate": str(gate)})
    start_worker(threads=1)
    assert ended(fails).status == DEAD
    assert not Group.objects.exists()

    gate.touch()
    works = Job.objects.enqueue("tests:apart_writes", {"gate": str(gate)})
    assert ended(works).status == DONE
    assert Group.objects.count() == 1


# What is refused.


async def coroutine() -> None:
    """Async."""


def plain() -> None:
    """Plain."""


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"function": coroutine, "isolated": True}, "isolated=True needs a plain function"),
        ({"function": plain, "max_memory": 100}, "needs isolated=True"),
        (
            {"function": plain, "isolated": True, "max_memory": 0},
            "max_memory=0 must be a whole number from 1",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_decoration(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidOption, match=rule):
        JobType(name="tests:refused", **options)
