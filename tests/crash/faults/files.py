"""What happens to a SQLite file: other writers, killed in mid-write; a long reader; a full disk."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random

from tests.conftest import ROOT
from tests.waiting import outlast

from ..table import connected
from ..world import World
from .base import SQLITE, Fault, NotInjected

WRITERS = 8
#: A process that writes as fast as it is let.
WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
while True:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO app_effect (n, fence) VALUES (-3, ?)", [[n] for n in range(200)])
    connection.execute("DELETE FROM app_effect WHERE n = -3 AND id % 2 = 0")
    connection.execute("COMMIT")
"""


def file_of(world: World) -> Path:
    """The database."""
    return Path(world.url.removeprefix("sqlite:///"))


class OtherWriters(Fault):
    """Eight processes write all the time, and are killed with -9 in the middle of it."""

    name = "eight writers, killed in mid-write"
    databases = (SQLITE,)
    lane = "files"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        before = self._written(world)
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(file_of(world))], cwd=ROOT)
            for _ in range(WRITERS)
        ]
        try:
            outlast(random.uniform(1, 2.5))
            alive = all(writer.poll() is None for writer in writers)
        finally:
            for writer in writers:
                writer.kill()
                writer.wait()
        # Who waits for SQLite's lock has no place in a queue for it: a renewal may have come too late.
        world.note_fault(self.name, since, kills=True, suspends=True)
        if not alive or self._written(world) == before:
            raise NotInjected

    def _written(self, world: World) -> object:
        with connected(world.url) as connection:
            return connection.execute("SELECT max(id) FROM app_effect").fetchone()[0]


class LongReader(Fault):
    """A reader holds its snapshot: the WAL cannot be checkpointed, and writers go on."""

    name = "a reader that holds a snapshot"
    databases = (SQLITE,)
    lane = "reader"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        with closing(sqlite3.connect(file_of(world), timeout=20, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            count = "SELECT count(*) FROM crash_history"
            before = reader.execute(count).fetchone()
            outlast(random.uniform(5, 15))
            assert reader.execute(count).fetchone() == before, "the snapshot did not hold"
            with connected(world.url) as now:
                moved = now.execute(count).fetchone() != before
        world.note_fault(self.name, since)
        if not moved:
            raise NotInjected


class DiskFull(Fault):
    """The file lies on a small tmpfs, which is filled for a while."""

    name = "the disk full"
    databases = (SQLITE,)
    lane = "files"
    mixes = False
    needs_root = True
    pause = 1.5

    def prepare(self, world: World) -> None:
        self._disk = world.folder / "disk"
        self._disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", self._disk], check=True)
        world.at_end(lambda: subprocess.run(["umount", "-l", self._disk], check=True))
        world.url = f"sqlite:///{self._disk / 'queue.sqlite3'}"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        filler = self._disk / "filler"
        full = False
        try:
            with filler.open("wb", buffering=0) as file:
                until = time.monotonic() + random.uniform(0.5, 2)
                while time.monotonic() < until:
                    try:
                        file.write(b"x" * 4_096 * 16)
                    except OSError:
                        full = True
                        outlast(0.05)  # then what was freed meanwhile is taken too
        finally:
            filler.unlink()
        world.note_fault(self.name, since, kills=True)
        if not full:
            raise NotInjected


ALL = (OtherWriters, LongReader, DiskFull)
