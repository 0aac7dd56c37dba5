"""Programs out of Debian's packages, unpacked below .venvs/: nothing is installed on the machine."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".venvs" / "debian"


def program(name: str, *packages: str) -> tuple[str | None, dict[str, str]]:
    """The program, on PATH or out of these packages, and the environment it needs; None: there is no way."""
    if found := shutil.which(name):
        return found, {}
    folder = unpacked(name, *packages)
    found = next((str(path) for path in folder.glob(f"usr/*bin/{name}")), None) if folder else None
    return found, libraries(folder) if folder else {}


def unpacked(name: str, *packages: str) -> Path | None:
    """A folder with what these packages hold, fetched at the first call."""
    folder = CACHE / name
    if folder.exists():
        return folder
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return None
    CACHE.mkdir(parents=True, exist_ok=True)
    CACHE.chmod(0o755)
    # Several runs may do it at once: each in a folder of its own, and the first one's is taken.
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{name}.", ignore_cleanup_errors=True) as unfinished:
        here = Path(unfinished)
        if not _download(packages, here):
            # A machine that has just been made may not know yet which packages there are.
            subprocess.run(["apt-get", "update", "-q"], capture_output=True)
            if not _download(packages, here):
                return None
        for package in here.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, here], check=True, capture_output=True)
            package.unlink()
        here.chmod(0o755)
        with contextlib.suppress(OSError):  # another run was faster
            here.rename(folder)
    return folder


def _download(packages: Sequence[str], folder: Path) -> bool:
    fetched = subprocess.run(["apt-get", "download", *packages], cwd=folder, capture_output=True)
    return fetched.returncode == 0


def libraries(folder: Path) -> dict[str, str]:
    """Where an unpacked program finds the libraries that were unpacked beside it."""
    found = sorted(str(one) for one in (folder / "usr" / "lib").glob("*-linux-gnu*"))
    return {"LD_LIBRARY_PATH": ":".join(found)}
