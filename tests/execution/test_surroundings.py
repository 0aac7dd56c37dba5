"""A job sees what was active where it was enqueued, and nothing of the jobs before it."""

import contextvars
import locale
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone, translation
from pytest_django import Settings

from django_jobqueue.models import Job
from tests.execution.runner import DONE, Runner

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="default")


def surroundings() -> list[Any]:
    return [variable.get(), translation.get_language(), timezone.get_current_timezone_name()]


async def asurroundings() -> list[Any]:
    return surroundings()


def change_everything() -> None:
    variable.set("changed")
    translation.activate("de")
    timezone.activate(ZoneInfo("Asia/Tokyo"))


async def achange_everything() -> None:
    change_everything()


@pytest.mark.parametrize("look", [surroundings, asurroundings])
@pytest.mark.parametrize("change", [change_everything, achange_everything])
def test_nothing_of_a_job_is_seen_by_the_next(
    runner: Runner, settings: Settings, change: Callable[[], Any], look: Callable[[], Any]
) -> None:
    assert runner.run(change).status == DONE
    assert runner.run(look).result == ["default", settings.LANGUAGE_CODE, settings.TIME_ZONE]


@pytest.mark.parametrize("look", [surroundings, asurroundings])
def test_language_and_zone_at_the_call_are_active_in_the_handler(
    runner: Runner, settings: Settings, look: Callable[[], Any]
) -> None:
    with translation.override("de"), timezone.override("America/New_York"):
        job = Job.objects.enqueue(runner.handle(look))
    assert runner.attempt(job).result == ["default", "de", "America/New_York"]
    assert runner.run(look).result == ["default", settings.LANGUAGE_CODE, settings.TIME_ZONE]


def test_they_are_active_again_at_every_attempt(runner: Runner) -> None:
    seen = []

    def fails_once() -> None:
        seen.append(surroundings()[1:])
        if len(seen) == 1:
            raise ValueError

    with translation.override("fr"), timezone.override("Asia/Tokyo"):
        job = Job.objects.enqueue(runner.handle(fails_once))
    assert runner.attempt(runner.attempt(job)).status == DONE
    assert seen == [["fr", "Asia/Tokyo"]] * 2


def test_a_zone_that_this_machine_does_not_know_is_left_out(runner: Runner, settings: Settings) -> None:
    job = Job.objects.enqueue(runner.handle(surroundings))
    Job.objects.filter(pk=job.pk).update(context={"language": "de", "time_zone": "Mars/Olympus"})
    assert runner.attempt(job).result == ["default", "de", settings.TIME_ZONE]


def test_a_receiver_of_job_started_can_set_what_the_handler_sees(runner: Runner) -> None:
    from django_jobqueue.signals import job_started

    def receiver(sender: Any, job: Any, **facts: Any) -> None:
        variable.set(f"job {job.attempts}")

    job_started.connect(receiver)
    try:
        assert runner.run(surroundings).result[0] == "job 1"
        assert runner.run(asurroundings).result[0] == "job 1"
    finally:
        job_started.disconnect(receiver)


def test_the_locale_of_the_process_is_left_alone(runner: Runner) -> None:
    before = locale.setlocale(locale.LC_ALL)
    with translation.override("de"):
        job = Job.objects.enqueue(runner.handle(surroundings))
    runner.attempt(job)
    assert locale.setlocale(locale.LC_ALL) == before
