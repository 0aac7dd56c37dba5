"""--reload: changed code is at work soon, a running job is let end, and nobody stays behind."""

import signal
from collections.abc import Callable
from pathlib import Path

from django.test import override_settings

from django_jobqueue.models import Job
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DONE, row, status, wait_for
from tests.processes.workers import RunWorker
from tests.waiting import equals, eventually

HANDLER = """
from django_jobqueue import job

@job("changing:version")
def version():
    return {version}
"""


def test_a_change_is_at_work_soon_a_broken_one_is_survived_and_nothing_stays_behind(
    start_worker: Callable[..., RunWorker],
    app_with: Callable[[str], dict[str, str]],
    ledger: Ledger,
    gate: Path,
) -> None:
    env = app_with(HANDLER.format(version=1))
    module = Path(env["APP"]) / "jobs.py"
    worker = start_worker("--reload", "--grace", "30", **env).ready()
    running = wait_for(gate)
    eventually(ledger.starts)

    # The job that runs is let end, then the new code is at work.
    module.write_text(HANDLER.format(version=2))
    worker.says("jobs.py has changed")
    worker.says("Stopping")
    gate.touch()
    assert result_of("changing:version") == 2
    assert (status(running), row(running)["attempts"], len(ledger.runs())) == (DONE, 1, 1)

    # What cannot be imported waits for the next change.
    module.write_text("def broken(:\n")
    worker.says("could not start")
    assert "SyntaxError" in worker.log
    module.write_text(HANDLER.format(version=3))
    assert result_of("changing:version") == 3

    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    equals([], worker.members, within=5)


def test_ctrl_c_ends_a_reloading_worker_and_all_its_processes(start_worker: Callable[..., RunWorker]) -> None:
    worker = start_worker("--reload").ready()

    worker.send_group(signal.SIGINT)

    assert worker.wait(10) == 0
    equals([], worker.members, within=5)


def test_a_killed_reloader_takes_its_worker_along(start_worker: Callable[..., RunWorker]) -> None:
    worker = start_worker("--reload").ready()

    worker.send(signal.SIGKILL)

    equals([], worker.members, within=5)


def result_of(job_type: str) -> object:
    """Of a new job of this type, which this process does not know."""
    with override_settings(JOBQUEUE={"EXTERNAL_TYPES": [job_type]}):
        job = Job.objects.enqueue(job_type)
    equals(DONE, lambda: status(job))
    return row(job)["result"]
