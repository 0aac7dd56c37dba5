"""A deploy: the old code and the new one at work together, and the schema changed beneath both."""

from __future__ import annotations

import time
from random import Random

from ..kinds import DONE, MANY, Kind
from ..world import World
from .base import POSTGRESQL, Fault


class Deploy(Fault):
    """Old workers that do not know a new type, and columns added under statements that are prepared."""

    name = "an additive migration under two versions of the code"
    databases = (POSTGRESQL,)
    lane = "deploy"
    pause = 1.5

    def prepare(self, world: World) -> None:
        self._columns = 0
        # Prepared statements keep their plan, which is refused once its result has another type.
        world.worker_env |= {"CRASH_PREPARE": "1"}
        world.add_host("--threads", "4", "--exclude-queues", "fifo", env={"CRASH_OLD_CODE": "1"})
        world.add_host("--threads", "4", "--exclude-queues", "fifo")

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        self._columns += 1
        with world.bare(options="-c lock_timeout=5s") as connection:
            connection.execute(
                f"ALTER TABLE django_jobqueue_job ADD COLUMN added_{self._columns} integer NOT NULL DEFAULT 0"
            )
            connection.execute(f"ALTER TABLE app_effect ADD COLUMN added_{self._columns} text DEFAULT ''")
            connection.execute("ALTER TABLE django_jobqueue_worker ADD COLUMN IF NOT EXISTS added integer")
        world.note_fault(self.name, since, kills=True)

    def kinds(self) -> tuple[Kind, ...]:
        return (Kind("crash:new", 10, {}, DONE, {"max_attempts": MANY}),)


ALL = (Deploy,)
