"""Workers whose clocks are wrong. The database's clock alone decides, so nobody notices."""

from __future__ import annotations

import time
from random import Random

from tests import debian
from tests.waiting import outlast

from ..world import World
from .base import POSTGRESQL, Fault

HOUR = 3_600


class WrongClocks(Fault):
    """One worker an hour ahead, one an hour behind (libfaketime); and each jumps now and then."""

    name = "a worker's clock jumps by an hour"
    databases = (POSTGRESQL,)
    lane = "clocks"

    def prepare(self, world: World) -> None:
        folder = debian.unpacked("libfaketime", "libfaketime")
        assert folder
        library = next(folder.glob("usr/lib/*/faketime/libfaketimeMT.so.1"))
        self._files = []
        for offset in (HOUR, -HOUR):
            file = world.folder / f"clock{offset:+}"
            file.write_text(f"{offset:+}s\n")
            file.chmod(0o644)
            self._files.append(file)
            env = {
                "LD_PRELOAD": str(library),
                "FAKETIME_TIMESTAMP_FILE": str(file),
                "FAKETIME_CACHE_DURATION": "1",
                # The ledger's clock stays what it is; what is faked is the time of day.
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1",
            }
            world.add_host("--threads", "4", "--exclude-queues", "fifo", env=env)

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        file = random.choice(self._files)
        file.write_text(f"{random.choice((-24, -1, 1, 24)) * HOUR:+}s\n")
        outlast(1.2)  # by then it has been read
        world.note_fault(self.name, since)

    def problems(self, world: World) -> list[str]:
        """Whether their clocks were wrong at all: their own logs tell."""
        logs = [log.read_text() for host in world.hosts if "LD_PRELOAD" in host.env for log in host.logs]
        today = time.strftime("%Y-%m-%d %H:", time.localtime())
        if any(text and all(line.startswith(today) for line in text.splitlines()) for text in logs):
            return ["libfaketime did not change the clock of a worker"]
        return []

    @classmethod
    def missing(cls) -> str | None:
        return (
            None if debian.unpacked("libfaketime", "libfaketime") else "it needs Debian's package libfaketime"
        )


ALL = (WrongClocks,)
