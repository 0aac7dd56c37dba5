"""Makes a virtual environment and installs the project and what one target of make needs.

Usage: PYTHON scripts/environment.py .venv test [postgresql …] [--django "django~=6.0.0"]

It is made with the interpreter that runs this script, and made anew if that or Django is another one than
before. Nothing is installed while pyproject.toml and requirements/ are as they were.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"


def main() -> None:
    options = parse(sys.argv[1:])
    made_by = f"Python {sys.version.split()[0]} {Path(sys.executable).resolve()} {options.django}\n"
    make(options.folder, made_by)
    install(options.folder, options.names, options.django)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make a virtual environment for one target of make.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", help="names of files in requirements/, without .txt")
    parser.add_argument("--django", default="", help="a requirement that narrows Django's version")
    return parser.parse_args(arguments)


def make(folder: Path, made_by: str) -> None:
    stamp = folder / "made-by.txt"
    if read(stamp) == made_by:
        return
    if folder.exists():
        if not (folder / "pyvenv.cfg").exists():
            sys.exit(f"{folder} is no virtual environment: remove it, or name another folder with VENV=")
        shutil.rmtree(folder)
    venv.create(folder, with_pip=True)
    stamp.write_text(made_by)


def install(folder: Path, names: list[str], django: str) -> None:
    stamp = folder / f"installed-{'-'.join(names)}.txt"
    wanted = fingerprint([ROOT / "pyproject.toml", *sorted(REQUIREMENTS.glob("*.txt"))])
    if read(stamp) == wanted:
        return
    version = ".".join(str(part) for part in sys.version_info[:3])
    print(f"Installing into {folder} with Python {version} for: {', '.join(names)} …", flush=True)
    arguments = [option for name in names for option in ("-r", str(REQUIREMENTS / f"{name}.txt"))]
    pip(folder, *arguments, *([django] if django else []), "-e", str(ROOT))
    stamp.write_text(wanted)


def pip(folder: Path, *arguments: str) -> None:
    """Install, and show what pip says only if it fails."""
    command = [
        folder / "bin/python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "install",
        *arguments,
    ]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\npip could not install what is needed (see above).")


def fingerprint(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def read(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


if __name__ == "__main__":
    main()
