"""Tasks that a deploy has moved, renamed or removed, and paths that lead to anything but a task."""

import logging
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings
from django.urls import reverse

from django_jobqueue import conf, registry
from django_jobqueue.backend import lookup
from django_jobqueue.compat import TaskResultStatus, task_backends
from django_jobqueue.managers.outcomes import UnknownHere
from django_jobqueue.models import Job, JobStatus
from tests.execution.runner import PENDING, Runner
from tests.tasks import sample

GONE = "tests.tasks.gone.removed"


@pytest.fixture(autouse=True)
def nothing_looked_for() -> Iterator[None]:
    lookup.forget()
    yield
    lookup.forget()


@pytest.fixture
def backend() -> Any:
    return task_backends["default"]


def renamed(result: Any, path: str) -> Job:
    """The job of a task whose path is another one by now."""
    Job.objects.filter(pk=result.id).update(job_type=path)
    return Job.objects.get(pk=result.id)


@pytest.mark.parametrize(
    "path",
    [
        GONE,
        "tests.no_such_module.task",
        "nodots",
        "tests.tasks.sample.no_such_task",
        "tests.tasks.sample.note_backoff",  # a function, but no task
        "subprocess.check_output",
        "os.system",
        "builtins.exec",
        "..relative.task",
        "tests tasks.sample.noop",
        "tests.tasks.sample.noop.func",
    ],
)
def test_a_path_that_leads_to_no_task_is_given_back_and_nothing_is_called(runner: Runner, path: str) -> None:
    job = renamed(sample.noop.enqueue("argument"), path)

    outcomes: list[Any] = []
    attempt = runner.claim()
    outcomes.append(runner.execute(attempt))
    assert [type(one) for one in outcomes] == [UnknownHere]
    Job.objects.settle(attempt.worker_id, outcomes)
    job.refresh_from_db()
    assert (job.status, job.attempts, job.unknown_since is None) == (PENDING, 0, False)


@pytest.mark.django_db
def test_the_result_of_a_vanished_task_can_be_read(backend: Any) -> None:
    result = sample.noop.using(priority=3).enqueue(1, two=3)
    renamed(result, GONE)

    found = backend.get_result(result.id)

    assert (found.id, found.status, found.args, found.kwargs) == (
        result.id,
        TaskResultStatus.READY,
        [1],
        {"two": 3},
    )
    assert (found.task.module_path, found.task.name, found.task.priority) == (GONE, "removed", 3)
    found.refresh()
    with pytest.raises(ImportError, match=r"There is no task 'tests.tasks.gone.removed' here"):
        found.task.call()


@pytest.mark.django_db
def test_the_admin_shows_a_vanished_task(client: Client) -> None:
    job = renamed(sample.noop.enqueue(1), GONE)
    client.force_login(get_user_model().objects.create_superuser("root", "", "pass"))

    listed = client.get(reverse("admin:django_jobqueue_job_changelist"))
    page = client.get(reverse("admin:django_jobqueue_job_change", args=[job.pk]))

    assert (listed.status_code, page.status_code) == (200, 200)
    assert GONE in listed.content.decode()
    assert "None is registered in this process" in page.content.decode()


@pytest.mark.django_db
def test_the_admin_names_the_function_of_a_task(client: Client) -> None:
    job = Job.objects.get(pk=sample.noop.enqueue(1).id)
    client.force_login(get_user_model().objects.create_superuser("root", "", "pass"))

    page = client.get(reverse("admin:django_jobqueue_job_change", args=[job.pk]))

    assert "tests.tasks.sample.noop" in page.content.decode()


def test_an_alias_leads_an_old_name_to_the_task_that_serves_it_now(run: Any, backend: Any) -> None:
    result = sample.answer.enqueue()
    renamed(result, GONE)

    with override_settings(JOBQUEUE={"ALIASES": {GONE: "tests.tasks.sample.answer"}}):
        run(result)
        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 42)
        assert backend.get_result(result.id).task == sample.answer
        assert sample.answer.get_result(result.id) == result


def test_an_alias_leads_an_old_name_to_a_handler_too(runner: Runner) -> None:
    name = runner.handle(lambda: "served")
    job = Job.objects.enqueue(name)
    Job.objects.filter(pk=job.pk).update(job_type="old:name")

    with override_settings(JOBQUEUE={"ALIASES": {"old:name": name}}):
        job = runner.attempt(job)
        assert (job.status, job.result) == (JobStatus.DONE, "served")
    assert registry.find("old:name") is None


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        (["old"], "must map old names of job types to new ones"),
        ({"old": 5}, "names are text"),
        ({"": "new"}, "names are text"),
        ({"a": "b", "b": "c"}, "leads from 'a' to 'b', which is an old name itself"),
    ],
)
def test_aliases_that_make_no_sense_are_a_problem_of_the_settings(aliases: Any, message: str) -> None:
    assert message in " ".join(conf.problems({"ALIASES": aliases}))


# Modules that are not imported yet, or cannot be.


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that can be imported as ``late_tasks``."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "late_tasks.py"
    sys.modules.pop("late_tasks", None)


def test_a_worker_imports_the_module_of_a_task_it_has_not_seen(run: Any, module: Path) -> None:
    module.write_text("from django_jobqueue import task\n@task\ndef late(): return 'imported'\n")
    result = sample.noop.enqueue()
    renamed(result, "late_tasks.late")
    assert "late_tasks" not in sys.modules

    run(result)

    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, "imported")


@pytest.mark.parametrize("text", ["def (", "raise SystemError('at import')", "import no_such_library"])
@pytest.mark.django_db
def test_a_module_that_fails_is_logged_with_its_trace_once_a_minute(
    module: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    module.write_text(text)

    with caplog.at_level(logging.ERROR, "django_jobqueue"):
        found = [registry.find("late_tasks.late") for _ in range(3)]

    assert found == [None] * 3
    [line] = caplog.records
    assert "The module of task late_tasks.late cannot be imported" in line.getMessage()
    assert line.exc_info


@pytest.mark.django_db
def test_a_module_that_is_not_there_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "django_jobqueue"):
        assert lookup.declared("no_such_package.inner.task") is None

    assert caplog.records == []


def test_a_task_found_under_another_name_is_not_that_task(module: Path) -> None:
    holder = types.ModuleType("late_tasks")
    holder.renamed = sample.noop  # type: ignore[attr-defined]
    sys.modules["late_tasks"] = holder

    assert lookup.declared("late_tasks.renamed") is None


def test_settings_that_change_are_heard() -> None:
    assert lookup.declared(GONE) is None
    with override_settings(JOBQUEUE={"ALIASES": {GONE: "tests.tasks.sample.answer"}}):
        assert lookup.declared(GONE) is sample.answer
        assert registry.find(GONE) is not None
    assert lookup.declared(GONE) is None
    assert registry.find(GONE) is None
