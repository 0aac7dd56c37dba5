"""`manage.py runworker` as a process of its own, and what a test wants to know of it."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
from django.db import connection

from tests.conftest import ROOT
from tests.waiting import PATIENCE, eventually

MANAGE = ROOT / "testproject" / "manage.py"

#: Lines of a log that no run in good order has.
TROUBLE = re.compile(r" (WARNING|ERROR|CRITICAL) |Traceback|Error|is locked")
STARTED = re.compile(r"Worker process (\d+) started as worker (\w+)")
ENDED = re.compile(r"Worker process (\d+) ended \((-?\d+)\)")

_GONE = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


class RunWorker:
    """A supervisor with its processes, in a group of their own; what it says goes to files in `folder`.

    ``inside``: a command that runs it, `ip netns exec …` say.
    """

    def __init__(
        self,
        command: str,
        options: tuple[str, ...],
        env: Mapping[str, str],
        folder: Path,
        inside: tuple[str, ...] = (),
    ) -> None:
        folder.mkdir()
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*inside, sys.executable, str(MANAGE), command, *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env,
                start_new_session=True,
            )
        self.pid = self.process.pid

    # What it says.

    @property
    def banner(self) -> str:
        return self._out.read_text()

    @property
    def log(self) -> str:
        return self._err.read_text()

    @property
    def trouble(self) -> list[str]:
        return [line for line in self.log.splitlines() if TROUBLE.search(line)]

    @property
    def worker_ids(self) -> dict[int, str]:
        """The identity of every worker process so far, by process id."""
        return {int(pid): worker_id for pid, worker_id in STARTED.findall(self.log)}

    @property
    def exit_codes(self) -> dict[int, int]:
        """How worker processes ended, by process id."""
        return {int(pid): int(code) for pid, code in ENDED.findall(self.log)}

    @property
    def children(self) -> list[int]:
        """The worker processes that are there now."""
        return [pid for pid in self.worker_ids if is_alive(pid)]

    def ready(self, processes: int = 1, *, within: float = 30) -> "RunWorker":
        """Wait until so many worker processes are there."""

        def look() -> bool:
            return self.process.poll() is not None or len(self.children) >= processes

        self._until(look, "not ready", within)
        assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log}"
        return self

    def says(self, text: str, *, within: float = 30) -> None:
        """Wait until it is in the log."""
        self._until(lambda: text in self.log, f"it does not say {text!r}", within)

    def _until(self, look: Callable[[], bool], complaint: str, within: float) -> None:
        try:
            eventually(look, within=within)
        except AssertionError:
            raise AssertionError(f"{complaint} after {within} s:\n{self.log}") from None

    # What is done to it.

    def send(self, number: int) -> None:
        """A signal to the supervisor alone."""
        self.process.send_signal(number)

    def send_group(self, number: int) -> None:
        """A signal to the supervisor and its processes."""
        os.killpg(self.pid, number)

    def stand_still(self, *pids: int) -> None:
        """SIGSTOP to these processes of it, or to all, until they stand; none in the middle of a write."""
        with _nobody_writing():
            for pid in pids or self.members():
                os.kill(pid, signal.SIGSTOP)
                eventually(lambda pid=pid: psutil.Process(pid).status() == psutil.STATUS_STOPPED, every=0.001)

    def wait(self, within: float = 30) -> int:
        """Its exit code."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still there after {within} s:\n{self.log}") from None

    def stop(self, within: float = 40) -> int:
        """SIGTERM, and its exit code."""
        self.send(signal.SIGTERM)
        return self.wait(within)

    def members(self) -> list[int]:
        """Living processes of its group, whoever is their parent by now."""
        return [one.pid for one in psutil.process_iter() if _group(one.pid) == self.pid and is_alive(one.pid)]

    def destroy(self) -> None:
        """Leave nothing of it behind."""
        with suppress(ProcessLookupError):
            self.send_group(signal.SIGKILL)
        self.process.wait()
        eventually(lambda: not self.members())


@contextmanager
def _nobody_writing() -> Iterator[None]:
    """Of SQLite's writers: one that is stopped in the middle of it keeps the lock from everybody."""
    if connection.vendor != "sqlite":
        yield
        return
    with closing(sqlite3.connect(connection.settings_dict["NAME"], PATIENCE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def is_alive(pid: int) -> bool:
    """Whether the process is there; one that only waits for its parent to take note is not."""
    try:
        return psutil.Process(pid).status() not in _GONE
    except psutil.Error:
        return False


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None
