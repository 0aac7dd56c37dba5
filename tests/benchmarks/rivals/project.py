"""A rival's project with its queue somewhere: the steps that run to their end, and the worker process."""

import json
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from .catalogue import Rival, RivalFailed
from .environments import HERE
from .groups import running

PROJECTS = HERE / "projects"
LINE = struct.Struct("qd")  # as in projects/stamps.py, which runs in other environments
STEP_SECONDS = 600
STALL_SECONDS = 60
LOOK_SECONDS = 0.05


@dataclass
class Project:
    rival: Rival
    python: Path
    folder: Path
    environment: dict[str, str]  # where its queue is, for projects/connection.py

    @property
    def stamps(self) -> Path:
        return self.folder / "stamps"

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    def step(self, name: str, *arguments: object) -> object:
        """What one step of projects/harness.py measured."""
        with self.log.open("a") as log:
            try:
                done = subprocess.run(
                    self._command(name, *arguments),
                    env=self._environment(),
                    cwd=self.folder,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    timeout=STEP_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise self.failed(f"{name} took more than {STEP_SECONDS} s") from None
        if done.returncode:
            raise self.failed(f"{name} ended with {done.returncode}")
        return json.loads(done.stdout.splitlines()[-1])

    @contextmanager
    def worker(self) -> Iterator["Worker"]:
        command = self._command("worker")
        with running(command, environment=self._environment(), folder=self.folder, log=self.log) as process:
            yield Worker(self, process)

    def failed(self, reason: str) -> RivalFailed:
        return RivalFailed(self.rival.name, reason, self.log.read_text(errors="replace"))

    def _command(self, step: str, *arguments: object) -> list[str]:
        harness = [self.python, PROJECTS / "harness.py", self.rival.module, step]
        return [str(part) for part in (*harness, *arguments)]

    def _environment(self) -> dict[str, str]:
        ours = {
            "DJANGO_SETTINGS_MODULE": "django_settings",
            "PYTHONPATH": str(PROJECTS),
            "RIVAL": self.rival.name,
            "RIVAL_STAMPS": str(self.stamps),
        }
        return os.environ | ours | self.environment


@dataclass
class Worker:
    project: Project
    process: subprocess.Popen[bytes]

    def drained(self, jobs: int) -> list[float]:
        """When each of the `jobs` ran, in order; it must have been each job, and each once."""
        size = self._wait_for(jobs * LINE.size)
        ran = list(LINE.iter_unpack(self.project.stamps.read_bytes()[:size]))
        if len(ran) != jobs or {number for number, _ in ran} != set(range(jobs)):
            missing = jobs - len({number for number, _ in ran})
            raise self.project.failed(f"of {jobs} jobs {len(ran)} runs, {missing} jobs missing")
        self._wait_until_finished()
        return sorted(when for _, when in ran)

    def _wait_for(self, size: int) -> int:
        seen, since = -1, monotonic()
        while (now := self._size()) < size:
            if now != seen:
                seen, since = now, monotonic()
            elif monotonic() - since > STALL_SECONDS:
                raise self.project.failed(f"stalled after {now // LINE.size} of {size // LINE.size} jobs")
            if self.process.poll() is not None:
                raise self.project.failed(f"its worker ended with {self.process.returncode}")
            sleep(LOOK_SECONDS)
        return now

    def _wait_until_finished(self) -> None:
        deadline = monotonic() + STALL_SECONDS
        while left := self.project.step("unfinished"):
            if monotonic() > deadline:
                raise self.project.failed(f"{left} jobs ran but were never marked as finished")
            sleep(LOOK_SECONDS)

    def _size(self) -> int:
        with suppress(FileNotFoundError):
            return self.project.stamps.stat().st_size
        return 0
