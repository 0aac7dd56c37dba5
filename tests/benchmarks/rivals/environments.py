"""A virtual environment for each rival, kept below .venvs/ and made anew when its pinned versions change."""

import subprocess
import sys
from pathlib import Path

from .catalogue import Rival, RivalFailed

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CACHE = ROOT / ".venvs" / "rivals"
INSTALL_SECONDS = 600


def python_of(rival: Rival) -> Path:
    """The interpreter of the rival's environment, which is made if it isn't there."""
    requirements = _requirements(rival)
    folder = CACHE / rival.name
    python = folder / "bin" / "python"
    installed = folder / "installed.txt"  # written last: a broken installation is not taken for a good one
    if not installed.exists() or installed.read_text() != requirements.read_text():
        _call(rival, [_base_python(rival), "-m", "venv", "--clear", folder])
        _call(rival, [python, "-m", "pip", "install", "--quiet", "--requirement", requirements])
        installed.write_text(requirements.read_text())
    return python


def version_of(rival: Rival) -> str:
    for line in _requirements(rival).read_text().splitlines():
        name, _, version = line.partition("==")
        if name == rival.package:
            return version
    raise RivalFailed(rival.name, f"{_requirements(rival).name} doesn't pin {rival.package}")


def _requirements(rival: Rival) -> Path:
    return HERE / "requirements" / f"{rival.name}.txt"


def _base_python(rival: Rival) -> str:
    if not rival.newer_python or sys.version_info >= (3, 12):
        return sys.executable
    found = subprocess.run(
        [ROOT / "scripts" / "find-python", "--pyenv", "3.13", "3.12", "3.14"], capture_output=True, text=True
    )
    if found.returncode:
        raise RivalFailed(rival.name, "needs Python 3.12 or newer", found.stderr)
    return found.stdout.strip()


def _call(rival: Rival, command: list[str | Path]) -> None:
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RivalFailed(rival.name, f"not installed within {INSTALL_SECONDS} s") from None
    if done.returncode:
        raise RivalFailed(rival.name, "cannot be installed", done.stdout)
