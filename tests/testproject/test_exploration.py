"""exploration:run, on the real database."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from django_jobqueue.models import Job, JobStatus
from testproject.exploration.folders import FILES_PER_JOB, TOP, Part, packages, plan
from testproject.exploration.jobs import run_exploration, start_session
from testproject.exploration.models import Document, ExplorationSession

pytestmark = pytest.mark.django_db(transaction=True)

Run = Callable[..., int]


def test_a_session_has_one_job_for_each_package_and_one_for_the_loose_files(folder: Path) -> None:
    start_session(folder)
    assert sorted(job.payload["config"]["package"] for job in Job.objects.all()) == [TOP, "birds", "frogs"]


def test_the_jobs_of_a_session_that_is_rolled_back_are_not_there(folder: Path) -> None:
    with transaction.atomic():
        start_session(folder)
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert not ExplorationSession.objects.exists()


def test_an_exploration_stores_every_document_with_its_figures(folder: Path, run_due: Run) -> None:
    session = start_session(folder)
    assert run_due() == 3
    assert Job.objects.counts()[JobStatus.DONE] == 3
    assert sorted(session.documents.values_list("path", "package", "kind", "lines")) == [
        ("README.md", TOP, "markdown", 8),
        ("birds/__init__.py", "birds", "python", 0),
        ("birds/deep/notes.rst", "birds", "rst", 9),
        ("birds/heron.py", "birds", "python", 12),
        ("frogs/odd.py", "frogs", "python", 1),
        ("frogs/pond.txt", "frogs", "text", 2),
        ("setup.py", TOP, "python", 5),
    ]
    heron = session.documents.get(path="birds/heron.py")
    assert heron.outline.splitlines() == ["class Heron", "def Heron.fish", "def Heron.wait", "def nest"]
    assert (heron.definitions, heron.title) == (4, "A heron fishing.")
    readme = session.documents.get(path="README.md")
    assert (readme.headings, readme.links, readme.urls) == (2, 1, ["https://pond.example/map"])


def test_the_result_of_a_job_adds_up_its_documents(folder: Path, run_due: Run) -> None:
    start_session(folder)
    run_due()
    results = [job.result for job in Job.objects.all()]
    totals = Document.objects.totals()
    assert {name: sum(result[name] for result in results) for name in totals} == totals
    assert totals["files"] == 7


def test_a_job_that_runs_twice_doubles_no_document(folder: Path, run_due: Run) -> None:
    session = start_session(folder)
    run_due()
    before = set(Document.objects.values_list("pk", "path"))
    (folder / "birds" / "heron.py").write_text('"""Another one."""\n')
    run_exploration.enqueue(session_id=session.pk, config={"package": "birds"})
    assert run_due() == 1
    assert set(Document.objects.values_list("pk", "path")) == before
    assert Document.objects.get(path="birds/heron.py").title == "Another one."


def test_the_same_part_is_not_enqueued_twice_while_it_waits(folder: Path) -> None:
    session = start_session(folder)
    again = run_exploration.enqueue(session_id=session.pk, config=Part("birds").as_config())
    assert again.created is False
    assert Job.objects.count() == 3


def test_without_a_package_one_job_reads_the_whole_folder(folder: Path, run_due: Run) -> None:
    session = ExplorationSession.objects.create(root=str(folder))
    run_exploration.enqueue(session_id=session.pk, config={})
    assert run_due() == 1
    assert session.documents.count() == 7


@pytest.mark.parametrize(
    "config",
    [{"package": "../shelf"}, {"package": 7}, {"part": 2}, {"part": "a"}, {"parts": 0}, {"depth": 1}],
)
def test_a_config_that_makes_no_part_is_dead_at_once(
    folder: Path, run_due: Run, config: dict[str, object]
) -> None:
    session = ExplorationSession.objects.create(root=str(folder))
    job = run_exploration.enqueue(session_id=session.pk, config=config)
    run_due()
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.DEAD, 1)
    assert "config" in job.last_error


def test_a_folder_that_is_gone_and_a_session_that_is_gone_are_dead_at_once(
    tmp_path: Path, run_due: Run
) -> None:
    session = ExplorationSession.objects.create(root=str(tmp_path / "gone"))
    run_exploration.enqueue(session_id=session.pk, config={})
    run_exploration.enqueue(session_id=session.pk + 1, config={})
    assert run_due() == 2
    assert Job.objects.counts()[JobStatus.DEAD] == 2


def test_files_that_cannot_be_read_are_counted_and_passed_over(folder: Path, run_due: Run) -> None:
    (folder / "frogs" / "huge.txt").write_bytes(b"x " * 1_000_001)
    (folder / "frogs" / "link.txt").symlink_to(folder / "README.md")
    (folder / "frogs" / "nul.txt").write_bytes(b"a\0b \xff")
    session = ExplorationSession.objects.create(root=str(folder))
    job = run_exploration.enqueue(session_id=session.pk, config={"package": "frogs"})
    run_due()
    job.refresh_from_db()
    assert (job.status, job.result["files"], job.result["unreadable"]) == (JobStatus.DONE, 3, 1)
    assert session.documents.get(path="frogs/nul.txt").text == "ab \ufffd"


def test_a_large_package_is_dealt_out_so_that_every_file_has_one_job(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(2 * FILES_PER_JOB + 1):
        (tmp_path / "many" / f"{number}.txt").touch()
    parts = plan(tmp_path)
    dealt = [file for part in parts for file in part.files(tmp_path)]
    assert len(parts) == 3
    assert len(dealt) == len(set(dealt)) == 2 * FILES_PER_JOB + 1


def test_a_document_is_once_in_a_session(folder: Path) -> None:
    session = ExplorationSession.objects.create(root=str(folder))
    Document.objects.create(session=session, path="a")
    with pytest.raises(IntegrityError):
        Document.objects.create(session=session, path="a")


def test_packages_of_the_standard_library_are_explored_as_they_are(run_due: Run) -> None:
    root = Path(sysconfig.get_path("stdlib"))
    session = ExplorationSession.objects.create(root=str(root))
    for package in ("email", "json"):
        run_exploration.enqueue(session_id=session.pk, config={"package": package})
    run_due()
    assert session.documents.count() == sum(len(packages(root)[name]) for name in ("email", "json"))
    assert "class JSONEncoder" in session.documents.get(path="json/encoder.py").outline.splitlines()
