"""Runs Django's own tests of the Tasks API against this project's backend, on one database.

Usage: PYTHON scripts/django_tasks_tests.py DATABASE

They are taken from the source distribution of the Django that PYTHON has, and changed in three ways: the
backend is ours; the test case may use a database; and what only the dummy backend has is not looked at.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import django

ROOT = Path(__file__).resolve().parent.parent
TESTS = 39
#: Calls the synchronous ORM inside an event loop, which Django refuses for every backend on a database.
REFUSED = {"test_refresh_result"}

CHANGES = (
    (r"django\.tasks\.backends\.dummy\b", "django_jobqueue.backend"),
    (r"\bDummyBackend\b", "JobQueueBackend"),
    (r"\bSimpleTestCase\b", "TransactionTestCase"),
    (r"default_task_backend\.clear\(\)", "pass"),
    (r"(?m)^ +self\.assertEqual\(default_task_backend\.results, .*\n", ""),
)


def main() -> None:
    database = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="jobqueue-django-tests-") as name:
        folder = Path(name)
        take_tests(folder)
        report = folder / "report.xml"
        run(folder / "tasks", database, report)
        sys.exit(verdict(report, database))


def take_tests(folder: Path) -> None:
    """Put Django's package of tests there, changed."""
    version = f"django=={django.get_version()}"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    subprocess.run(
        [*pip, "download", "-q", "--no-deps", "--no-binary", "django", "-d", str(folder), version], check=True
    )
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        for name in ("__init__", "tasks", "test_tasks"):
            member = next(one for one in archive.getnames() if one.endswith(f"/tests/tasks/{name}.py"))
            text = archive.extractfile(member).read().decode()
            if name == "test_tasks":
                for pattern, replacement in CHANGES:
                    text, count = re.subn(pattern, replacement, text)
                    if not count:
                        sys.exit(f"{pattern} is not in Django's file any more: see what became of it.")
            target = folder / "tasks" / f"{name}.py"
            target.parent.mkdir(exist_ok=True)
            target.write_text(text)


def run(tests: Path, database: str, report: Path) -> None:
    """Run them with the project's own settings and servers."""
    subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-c",
                str(ROOT / "pyproject.toml"),
                "--rootdir",
                str(ROOT),
            ),
            *("--database", database, "--junit-xml", str(report), str(tests / "test_tasks.py")),
        ],
        cwd=ROOT,
        check=False,
    )


def verdict(report: Path, database: str) -> str | int:
    """0 if all passed but the one that cannot; otherwise what is wrong."""
    cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 - pytest has just written it
    failed = {str(one.get("name")) for one in cases if one.find("failure") is not None}
    failed |= {str(one.get("name")) for one in cases if one.find("error") is not None}
    passed = f"{len(cases) - len(failed)} passed of {len(cases)}"
    print(f"Django's own tests of tasks, {database}: {passed}; not: {', '.join(failed) or 'none'}")
    if len(cases) != TESTS:
        return f"Django {django.get_version()} has {len(cases)} tests there, not {TESTS}."
    return 0 if failed <= REFUSED else f"Failed: {', '.join(sorted(failed - REFUSED))}"


if __name__ == "__main__":
    main()
