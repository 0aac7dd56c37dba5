"""Which files a folder holds, and how they are dealt out to jobs."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .reading import KINDS

#: The package of the files that lie directly in the folder.
TOP = "."

#: A package with more files is dealt out to several jobs.
FILES_PER_JOB = 40

#: Files beyond this are no reading matter.
MAX_BYTES = 2_000_000

_PASSED_BY = {"__pycache__", "site-packages", "dist-packages", "node_modules", "venv", "build", "dist"}


@dataclass(frozen=True)
class Part:
    """The share of one job: part ``part`` of ``parts`` of a package's files. No package: of all files."""

    package: str | None = None
    part: int = 1
    parts: int = 1

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Part:
        """What a job's ``config`` says. Raises ``ValueError`` for what makes no part."""
        known = {name: config[name] for name in ("package", "part", "parts") if name in config}
        part = cls(**known)
        if unknown := config.keys() - known.keys():
            raise ValueError(f"config has no {min(unknown)!r}: it has package, part and parts.")
        if not isinstance(part.package, str | None) or ".." in Path(part.package or "").parts:
            raise ValueError(
                f"config: package={part.package!r} must be the name of a folder inside the root."
            )
        if not (isinstance(part.part, int) and isinstance(part.parts, int) and 1 <= part.part <= part.parts):
            raise ValueError(f"config: part={part.part!r} must be from 1 to parts={part.parts!r}.")
        return part

    def as_config(self) -> dict[str, Any]:
        """The ``config`` that ``from_config`` reads."""
        return asdict(self)

    def files(self, root: Path) -> list[Path]:
        """This part's files, in order. Dealt like cards, so that parts take about equally long."""
        if self.package is None:
            found = sorted(file for files in packages(root).values() for file in files)
        else:
            found = _files_of(root, self.package)
        return found[self.part - 1 :: self.parts]


def standard_library() -> Path:
    """The interpreter's own library: a folder of thousands of files that everybody has."""
    return Path(sysconfig.get_path("stdlib"))


def plan(root: Path) -> list[Part]:
    """The parts that cover a folder, the largest package first so that no long job starts last."""
    parts = []
    for package, files in sorted(packages(root).items(), key=lambda item: -len(item[1])):
        count = -(-len(files) // FILES_PER_JOB)
        parts += [Part(package, number, count) for number in range(1, count + 1)]
    return parts


def packages(root: Path) -> dict[str, list[Path]]:
    """The files to read, by the folder directly below ``root`` that they are in."""
    names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    found = {name: _files_of(root, name) for name in (TOP, *names) if not _is_passed_by(name)}
    return {name: files for name, files in found.items() if files}


def package_of(root: Path, file: Path) -> str:
    """The package that a file below ``root`` belongs to."""
    relative = file.relative_to(root)
    return relative.parts[0] if len(relative.parts) > 1 else TOP


def _files_of(root: Path, package: str) -> list[Path]:
    folder = root / package
    return sorted(file for file in _walk(folder, deep=package != TOP) if file.suffix.lower() in KINDS)


def _walk(folder: Path, *, deep: bool) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if deep and not _is_passed_by(name)]
        for name in files:
            file = Path(place, name)
            if file.is_file() and not file.is_symlink():
                yield file


def _is_passed_by(name: str) -> bool:
    return name in _PASSED_BY or (name.startswith(".") and name != TOP)
