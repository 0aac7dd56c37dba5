"""The processes of a run: calls into the site, and `runworker`. None is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil

from .servers import Target

ROOT = Path(__file__).resolve().parent.parent.parent
#: Seconds that anything may take before it counts as stuck.
PATIENCE = 1_800.0


class ChildFailed(Exception):
    """A process ended badly; with the last of what it said."""


def environment(target: Target, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a process of the site whose database this is."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {
        **os.environ,
        "DATABASE_URL": target.url,
        "DJANGO_SETTINGS_MODULE": "tests.benchmarks.settings",
        "PYTHONPATH": path,
        **(extra or {}),
    }


def call(target: Target, task: str, **arguments: Any) -> Any:
    """The answer of a task of `site.py`, run in a process of its own."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.site", task, json.dumps(arguments)],
            env=environment(target),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
        )
        try:
            answer, _ = process.communicate(timeout=PATIENCE)
        finally:
            destroy(process)
        if process.returncode:
            raise ChildFailed(f"{task} ended with {process.returncode}: {last_words(said)}")
    return json.loads(answer)


class RunWorker:
    """`manage.py runworker`, in a group of its own."""

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self.process = process
        self._said = said

    def wait(self) -> None:
        """Until it has drained the queue."""
        if code := self.process.wait(PATIENCE):
            raise ChildFailed(f"runworker ended with {code}: {last_words(self._said)}")

    def tree(self) -> list[psutil.Process]:
        """The supervisor, then every process below it."""
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def ready(self, processes: int, *, within: float = 300) -> None:
        """Wait until so many worker processes say that they started."""
        deadline = time.monotonic() + within
        while self.log().count(" started as worker ") < processes:
            if self.process.poll() is not None:
                raise ChildFailed(f"runworker ended with {self.process.returncode}: {last_words(self._said)}")
            if time.monotonic() > deadline:
                raise ChildFailed(f"{processes} workers were not there after {within:.0f} s")
            time.sleep(0.05)

    def log(self) -> str:
        """All it said."""
        return os.pread(self._said.fileno(), 10_000_000, 0).decode()


@contextmanager
def runworker(target: Target, *options: str, extra: Mapping[str, str] | None = None) -> Iterator[RunWorker]:
    """A worker for a while; as people start it, with its log at the level that it comes with."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "testproject" / "manage.py"), "runworker", "--no-reload", *options],
            env=environment(target, extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        try:
            yield RunWorker(process, said)
        finally:
            if process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
            destroy(process)


def destroy(process: subprocess.Popen[Any]) -> None:
    """End it and its group, whatever state it is in."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_words(said: IO[Any]) -> str:
    """The last lines of what a process wrote, as one."""
    text = os.pread(said.fileno(), 10_000_000, 0).decode(errors="replace")
    return " | ".join(text.strip().splitlines()[-5:]) or "it said nothing"
