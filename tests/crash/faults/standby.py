"""Failover: the primary dies, and a streaming standby takes its place."""

from __future__ import annotations

import time
from random import Random

import psycopg

from tests.postgres import Cluster
from tests.waiting import eventually

from ..world import World
from .base import POSTGRESQL, Fault, NotInjected


class Failover(Fault):
    """SIGKILL to the primary, promotion of its synchronous standby. What was acknowledged is there."""

    name = "failover to a synchronous standby"
    databases = (POSTGRESQL,)
    lane = "database"
    mixes = False
    pause = 5.0
    server_settings = {"wal_level": "replica", "max_wal_senders": "5", "hot_standby": "on"}

    def prepare(self, world: World) -> None:
        assert world.server
        self._standbys = 0
        self._add_standby(world)

    def _add_standby(self, world: World) -> None:
        """A copy of the present primary, which from now on waits for it at each commit."""
        primary = world.server
        self._standbys += 1
        folder = world.folder / f"standby-{self._standbys}"
        folder.mkdir(mode=0o755)
        self._standby = Cluster(folder, {"listen_addresses": "", "synchronous_standby_names": ""})
        self._standby.copy(primary)
        self._standby.start()
        world.at_end(self._standby.stop)
        with world.bare() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            eventually(
                lambda: connection.execute(
                    "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
                ).fetchone()
            )
        hosts = f"{primary.folder},{folder}"
        world.url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"

    def inject(self, world: World, random: Random) -> None:
        if self._standbys > 1:
            raise NotInjected  # the address of a third is not in the workers' connection string
        since = time.monotonic()
        old, new = world.server, self._standby
        old.kill()
        with psycopg.connect(new.url("postgres"), autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        world.server = new
        world.at_end(old.stop)
        self._standbys += 1
        world.note_fault(self.name, since, kills=True)


ALL = (Failover,)
