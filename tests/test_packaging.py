"""What a release holds: the whole package, and nothing of what stands beside it."""

import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "django_jobqueue"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from the sdist, as a release does."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)], cwd=folder)
    return folder


def run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(dist: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(dist.glob("*.whl")))


@pytest.fixture(scope="module")
def sdist_names(dist: Path) -> set[str]:
    """The paths inside the sdist's one folder."""
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        paths = [PurePosixPath(name) for name in archive.getnames()]
    return {path.relative_to(path.parts[0]).as_posix() for path in paths}


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def package_files() -> set[str]:
    """What the repository has of the package: nothing that was compiled here."""
    made = {".pyc", ".mo"}
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in made)
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    compiled = {name.removesuffix(".po") + ".mo" for name in package_files() if name.endswith(".po")}
    assert len(compiled) == 5
    assert names == package_files() | compiled


@pytest.mark.parametrize("path", ["py.typed", "migrations/0001_initial.py"])
def test_the_wheel_holds_what_a_site_needs_besides_code(wheel: zipfile.ZipFile, path: str) -> None:
    assert f"django_jobqueue/{path}" in wheel.namelist()


def test_the_sdist_holds_the_package_and_its_papers_and_no_tests(sdist_names: set[str]) -> None:
    assert package_files() <= sdist_names
    assert {name for name in sdist_names if not name.startswith("django_jobqueue/")} == {
        ".gitignore",  # hatchling adds it, so that a build from the sdist leaves out the same files
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "hatch_build.py",
        "pyproject.toml",
    }


def test_the_metadata_names_licence_extras_and_supported_versions(metadata: Message) -> None:
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert sorted(metadata.get_all("Provides-Extra")) == [
        "isolation",
        "opentelemetry",
        "postgresql",
        "tasks",
        "top",
    ]
    assert metadata["Requires-Python"] == ">=3.11"
    assert "django<6.2,>=5.2" in metadata.get_all("Requires-Dist", [])


def test_the_wheel_works_without_the_repository(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)  # noqa: S202 (our own archive)
    script = (
        "import django, django.conf\n"
        "django.conf.settings.configure(INSTALLED_APPS=['django.contrib.contenttypes', 'django_jobqueue'])\n"
        "django.setup()\n"
        "from django_jobqueue import job, __version__\n"
        "from django_jobqueue.models import Job\n"
        "print(__version__)\n"
        "print(django.apps.apps.get_app_config('django_jobqueue').path)\n"
    )
    version, path = run([sys.executable, "-c", script], cwd=tmp_path).splitlines()
    assert version in wheel.filename
    assert Path(path) == tmp_path / "django_jobqueue"
