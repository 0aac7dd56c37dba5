"""A Redis server for a while, for the rival that needs a broker.

The one on PATH, or Debian's packages unpacked below .venvs/: nothing is installed on the machine.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from .environments import CACHE
from .groups import running

PACKAGES = ("redis-server", "redis-tools", "liblzf1", "libjemalloc2")
START_SECONDS = 10


@contextmanager
def running_redis(folder: Path) -> Iterator[str | None]:
    """The socket of a server of its own, in `folder`; None if there is no way to have one.

    At its defaults, which its users run: the data is written out now and then, not for each job.
    """
    program = shutil.which("redis-server") or _unpacked()
    if not program:
        yield None
        return
    socket = folder / "redis.sock"
    command = [program, "--port", "0", "--unixsocket", socket, "--dir", folder]
    environment = os.environ | _libraries(Path(program))
    with running(command, environment=environment, folder=folder, log=folder / "redis.log") as process:
        deadline = monotonic() + START_SECONDS
        while not socket.exists() and process.poll() is None and monotonic() < deadline:
            sleep(0.05)
        yield str(socket) if socket.exists() else None


def _unpacked() -> str | None:
    """The program out of Debian's packages, fetched at the first call."""
    folder = CACHE / "redis-server"
    program = folder / "usr" / "bin" / "redis-server"
    if program.exists():
        return str(program)
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    fetched = subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, capture_output=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder], capture_output=True)
        package.unlink()
    return str(program) if fetched.returncode == 0 and program.exists() else None


def _libraries(program: Path) -> dict[str, str]:
    """Where an unpacked server finds the libraries that were unpacked beside it."""
    folders = sorted(str(folder) for folder in (program.parents[1] / "lib").glob("*-linux-gnu*"))
    return {"LD_LIBRARY_PATH": ":".join(folders)} if program.is_relative_to(CACHE) else {}
