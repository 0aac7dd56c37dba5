"""`manage.py jobqueue`: what it shows, what it does, and how it ends."""

import io
import json
import sys
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from pytest_django import Settings
from rich.console import Console

from django_jobqueue.management import top
from django_jobqueue.managers import Tally, WorkerFacts
from django_jobqueue.models import Job, JobStatus, Queue, Statistic, Worker
from django_jobqueue.statistics import PERIODS, Alert, Overview, alerts_of, look, look_back
from tests.moves.factories import TYPE, WORKER, ago, claimed, dead, enqueue, in_status, selected, statuses

pytestmark = pytest.mark.django_db

PENDING, RUNNING, DONE, DEAD, CANCELLED = JobStatus


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("jobqueue", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def code_of(*arguments: str) -> int:
    try:
        run(*arguments)
    except SystemExit as left:
        return int(str(left.code))
    return 0


def beat() -> None:
    Worker.objects.beat([WorkerFacts(WORKER, "box", 7, None, 8, "1", ["slow"])])


def test_status_shows_queues_workers_and_alerts() -> None:
    beat()
    claimed(queue="mail")
    enqueue(queue="slow")
    told = run("status")
    assert "mail" in told
    assert "box:7" in told
    assert "all but slow" in told
    assert "! No worker serves the queue slow" in told


def test_status_of_nothing_says_so() -> None:
    assert "There is no job, and no queue is declared." in run("status")


def test_status_as_json_has_plain_numbers() -> None:
    beat()
    enqueue(queue="mail")
    tally = Tally(done=60)
    tally.took(2.0, 1.0)
    Statistic.objects.add([("mail", tally)])
    told = json.loads(run("status", "--json", "--fail-if", "dead>0"))
    [queue] = told["queues"]
    assert (queue["name"], queue["due"], queue["paused"]) == ("mail", {"count": 1, "capped": False}, False)
    assert queue["waiting"]["mean"] == 2.0
    [worker] = told["workers"]
    assert (worker["id"], worker["capacity"], worker["living"]) == (WORKER, 8, True)
    assert (told["alerts"], told["failed_if"]) == ([], [])


@pytest.mark.parametrize(
    ("condition", "fails"),
    [
        ("any", True), ("no-worker", True), ("journal-mode", False), ("due>1", True), ("due > 2", False),
        ("oldest>50", True), ("oldest<50", False), ("workers<1", True), ("dead>0", True),
        ("running>0", False),
    ],
)  # fmt: skip
def test_a_condition_that_holds_is_an_exit_code(condition: str, fails: bool) -> None:
    dead()
    selected(enqueue(), enqueue()).update(run_after=ago(60))
    assert code_of("status", "--fail-if", "running>1000", "--fail-if", condition) == (3 if fails else 0)


def test_conditions_are_of_the_queue_that_was_asked_for() -> None:
    enqueue(queue="mail")
    enqueue(queue="other")
    assert code_of("status", "--fail-if", "due>1") == 3
    assert code_of("status", "--fail-if", "due>1", "--queue", "mail") == 0
    with pytest.raises(CommandError, match="--queue nothing: there is no such queue"):
        run("status", "--queue", "nothing")


@pytest.mark.parametrize("condition", ["", "dead", "dead>", "dead>x", "done>1", "nobody", "dead=1"])
def test_what_is_no_condition_is_refused(condition: str) -> None:
    with pytest.raises(CommandError, match="is no condition"):
        run("status", "--fail-if", condition)


def test_names_cannot_steer_the_terminal() -> None:
    enqueue(queue="\x1b[31mred\u202e")
    assert "\x1b" not in run("status")
    assert "\u202e" not in run("status")


@pytest.mark.parametrize("subcommand", ["retry", "cancel"])
def test_without_a_filter_nothing_is_done(subcommand: str) -> None:
    jobs = [enqueue(), dead()]
    with pytest.raises(CommandError, match="at least one filter, or say --all"):
        run(subcommand)
    assert statuses(*jobs) == [PENDING, DEAD]


def test_all_is_said_and_not_guessed() -> None:
    jobs = [enqueue(), dead(queue="other")]
    assert "1 done; 1 refused: is dead" in run("cancel", "--all")
    assert statuses(*jobs) == [CANCELLED, DEAD]
    assert "2 done" in run("retry", "--all")
    assert statuses(*jobs) == [PENDING, PENDING]


def chosen(*arguments: str) -> int:
    """How many jobs the filters leave."""
    return int(run("cancel", "--dry-run", *arguments).split()[0])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--queue", "this"], ["--type", "tests:this"], ["--type", "tests:thi*"], ["--dedupe-key", "this"],
        ["--with-dedupe-key"], ["--status", "dead"], ["--status", "running, dead"], ["--worker", WORKER],
        ["--fingerprint", "this"], ["--created-before", "1h"], ["--due-before", "1h"],
        ["--due-before", "2001-02-03T04:05+05:00"], ["--ended-after", "1d"], ["--ended-before", "1s"],
        ["--created-before", "2001-02-03"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_each_filter_of_the_admin_is_an_option(arguments: list[str]) -> None:
    enqueue(queue="that", job_type="tests:that")
    this = dead(queue="this", job_type="tests:this", dedupe_key="this")
    selected(this).update(
        error_fingerprint="this", created_at=ago(10**9), run_after=ago(10**9), finished_at=ago(60)
    )
    assert chosen("--all") == 2
    assert chosen(*arguments) == 1


def test_filters_hold_together() -> None:
    enqueue(queue="this")
    dead(queue="this")
    assert chosen("--queue", "this", "--status", "dead") == 1
    assert chosen("--queue", "that", "--status", "dead") == 0


def test_jobs_are_named_by_their_ids() -> None:
    jobs = [enqueue(), enqueue(), enqueue()]
    assert "2 done" in run("cancel", str(jobs[0].id), jobs[1].id.hex)
    assert statuses(*jobs) == [CANCELLED, CANCELLED, PENDING]


def test_due_and_overdue_are_pending() -> None:
    dead()
    enqueue(run_after=timedelta(hours=1))
    enqueue()
    selected(enqueue()).update(run_after=ago(61))
    assert chosen("--due-now") == 2
    assert chosen("--overdue") == 1


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "UTC"])
@pytest.mark.parametrize("use_tz", [True, False])
def test_a_time_without_a_zone_is_in_that_of_the_site(settings: Settings, zone: str, use_tz: bool) -> None:
    settings.TIME_ZONE, settings.USE_TZ = zone, use_tz
    job = enqueue()
    utc = "2026-05-31T12:00:00+00:00"
    selected(job).update(created_at=_parsed(utc))
    local = {"UTC": "2026-05-31T12:00:00", "Asia/Kolkata": "2026-05-31T17:30:00"}[zone]
    assert chosen("--created-after", local, "--created-before", f"{local[:-2]}01") == 1
    assert chosen("--created-after", utc) == 1
    assert chosen("--created-before", local) == 0


def _parsed(text: str) -> Any:
    from django_jobqueue.management.selecting import _instant

    return _instant(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--status", "lost"], "'lost' is no status. Choose from pending, running"),
        (["--created-after", "yesterday"], "'yesterday' is no time. Write 2026-05-31"),
        (["--created-after", "2026-02-31"], "is no time"),
        (["not-an-id"], "'not-an-id' is no id of a job."),
    ],
)
def test_what_a_filter_cannot_be_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("cancel", *arguments)


def test_a_dry_run_does_nothing() -> None:
    job = dead()
    assert run("retry", "--status", "dead", "--dry-run") == "1 jobs are meant\n"
    assert statuses(job) == [DEAD]


def test_a_retry_says_what_was_refused_and_why() -> None:
    dead(dedupe_key="k")
    enqueue(dedupe_key="k")
    assert run("retry", "--status", "dead") == "0 done; 1 refused: another active job has its dedupe key\n"


def test_a_retry_with_a_rate_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    jobs = [dead() for _ in range(7)]
    assert run("retry", "--status", "dead", "--rate", "3") == "7 done\n"
    assert statuses(*jobs) == [PENDING] * 7
    assert len(pauses) == 2
    assert all(0.5 < pause <= 1 for pause in pauses)


def test_a_retry_with_a_rate_leaves_alone_what_no_longer_matches_when_its_turn_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [dead() for _ in range(2)]
    monkeypatch.setattr(time, "sleep", lambda seconds: selected(jobs[1]).prune(timedelta(0)))
    assert run("retry", "--status", "dead", "--rate", "1") == "1 done\n"


@pytest.mark.parametrize("rate", ["0", "-1", "1.5", "many", "100000"])
def test_a_rate_that_makes_no_sense_is_refused(rate: str) -> None:
    with pytest.raises(CommandError, match="whole number of jobs a second from 1 to 10000"):
        run("retry", "--all", f"--rate={rate}")


def test_queues_are_paused_and_resumed(settings: Settings) -> None:
    assert run("pause", "mail", "other") == "mail is paused\nother is paused\n"
    assert Queue.objects.filter(paused=True).count() == 2
    assert run("resume", "mail") == "mail is resumed\n"
    assert not Queue.objects.get(pk="mail").paused
    settings.JOBQUEUE |= {"QUEUES": ["mail"]}
    with pytest.raises(CommandError, match="'new' is not one of those declared"):
        run("pause", "new")


def test_prune_goes_by_the_retention_or_by_what_is_said() -> None:
    old, new, other = (in_status(DONE, queue=queue) for queue in ("a", "a", "b"))
    selected(old).update(finished_at=ago(8 * 86_400))
    selected(new, other).update(finished_at=ago(7_300))
    assert run("prune") == "1 removed\n"
    assert run("prune", "--older-than", "2h", "--queue", "a") == "1 removed\n"
    assert list(Job.objects.all()) == [other]
    for text in ("2", "2w", "-2h", "99999999999d"):
        with pytest.raises(CommandError, match=r"span of time|than time itself|expected one"):
            run("prune", "--older-than", text)


def test_an_alias_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CommandError, match="--database nowhere: not one of the aliases in DATABASES"):
        run("status", "--database", "nowhere")


# The live view.


def overview() -> tuple[Overview, list[Alert]]:
    found = look(look_back(PERIODS["hour"], "default"), "default")
    return found, alerts_of(found, "default")


def test_top_prints_one_frame_on_demand() -> None:
    beat()
    claimed(queue="[red]mail", job_type=f"{TYPE}-now")
    console = Console(file=io.StringIO(), width=200)
    top.show(overview, lambda: None, 1.0, once=True, console=console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[red]mail" in told
    assert f"{TYPE}-now" in told
    assert "done/min" in told


def test_top_goes_on_until_it_is_interrupted_and_says_when_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[Any] = [overview, OperationalError("gone \x1b[31m"), KeyboardInterrupt()]
    lost: list[None] = []

    def one() -> tuple[Overview, list[Alert]]:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        found: tuple[Overview, list[Alert]] = answer()
        return found

    monkeypatch.setattr(threading.Event, "wait", lambda event, timeout=None: False)
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    top.show(one, lambda: lost.append(None), 0.2, console=console)
    assert (answers, len(lost)) == ([], 1)
    assert "The database does not answer" in console.file.getvalue()  # type: ignore[attr-defined]


def test_top_without_rich_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(CommandError, match=r"pip install 'django-jobqueue\[top\]'"):
        run("top", "--once")
