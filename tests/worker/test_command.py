"""What `manage.py runworker` refuses, before it starts anything."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"processes": 0}, "processes=0 must be a whole number of processes from 1 to 256."),
        ({"threads": -1}, "threads=-1 must be a whole number of threads from 1 to 1000."),
        (
            {"async_concurrency": 0},
            "async_concurrency=0 must be a whole number of coroutines from 1 to 4000.",
        ),
        ({"lease": 0.1}, "lease=0.1 must be a number of seconds from 1 to 86400."),
        ({"lease": float("nan")}, "lease=nan must be a number of seconds from 1 to 86400."),
        ({"grace": -1.0}, "grace=-1.0 must be a number of seconds from 0 to 86400."),
        ({"poll_interval": 0.0}, "poll_interval=0.0 must be a number of seconds from 0.01 to 3600."),
        ({"max_jobs": 0}, "max_jobs=0 must be a whole number of jobs from 1 to 1000000000."),
        ({"max_memory": 1}, "max_memory=1 must be a whole number of MiB from 16 to 1048576."),
        ({"queues": []}, "queues=[] must be a list of at least one queue name."),
        (
            {"database": "nowhere"},
            "--database nowhere: not one of the aliases in DATABASES (default, other).",
        ),
    ],
)
@pytest.mark.parametrize("command", ["runworker", "jobqueue_worker"])
def test_an_option_out_of_range_is_refused_with_its_value_and_the_rule(
    command: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CommandError) as refused:
        call_command(command, **options)
    assert str(refused.value) == message


def test_every_wrong_option_is_named_at_once() -> None:
    with pytest.raises(CommandError, match=r"processes=0 .* grace=-2"):
        call_command("runworker", processes=0, grace=-2.0)


@pytest.mark.parametrize("option", ["queues", "exclude_queues"])
def test_a_queue_that_is_not_declared_is_refused(settings: Settings, option: str) -> None:
    settings.JOBQUEUE = {"QUEUES": ["default", "reports"]}
    with pytest.raises(CommandError, match="'reprots' is not one of those declared"):
        call_command("runworker", **{option: ["default", "reprots"]})


@pytest.mark.parametrize("arguments", [["--threads", "many"], ["--lease", "long"], ["--thread-count", "3"]])
def test_what_is_no_option_or_no_number_is_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError, match=r"argument|unrecognized"):
        call_command("runworker", *arguments)
