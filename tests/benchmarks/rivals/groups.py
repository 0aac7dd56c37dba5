"""Processes that end with the block that started them, with all their children, come what may."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

# Kills its process group when standard input closes, which also happens when the benchmark was killed.
WATCH = 'exec 3<&0; (read -r _ <&3; kill -KILL 0) & exec "$@" 3<&- </dev/null'


@contextmanager
def running(
    command: Sequence[str | Path], *, environment: Mapping[str, str], folder: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["sh", "-c", WATCH, "sh", *command],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin
        process.stdin.close()
