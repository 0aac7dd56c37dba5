"""A Redis server for a while, for the rival that needs a broker.

The one on PATH, or Debian's packages unpacked below .venvs/: nothing is installed on the machine.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from tests import debian

from .groups import running

PACKAGES = ("redis-server", "redis-tools", "liblzf1", "libjemalloc2")
START_SECONDS = 10


@contextmanager
def running_redis(folder: Path) -> Iterator[str | None]:
    """The socket of a server of its own, in `folder`; None if there is no way to have one.

    At its defaults, which its users run: the data is written out now and then, not for each job.
    """
    program, environment = debian.program("redis-server", *PACKAGES)
    if not program:
        yield None
        return
    socket = folder / "redis.sock"
    command = [program, "--port", "0", "--unixsocket", socket, "--dir", folder]
    with running(
        command, environment=os.environ | environment, folder=folder, log=folder / "redis.log"
    ) as process:
        deadline = monotonic() + START_SECONDS
        while not socket.exists() and process.poll() is None and monotonic() < deadline:
            sleep(0.05)
        yield str(socket) if socket.exists() else None
