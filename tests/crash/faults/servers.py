"""PostgreSQL as a whole: stopped, killed, frozen, away for long, read-only."""

from __future__ import annotations

import signal
import time
from random import Random

import psutil
import psycopg

from tests.waiting import eventually, outlast

from ..kinds import DONE, MANY, Kind
from ..world import World
from .base import POSTGRESQL, Fault, NotInjected


class ServerFault(Fault):
    """A fault of the database server: one at a time."""

    databases = (POSTGRESQL,)
    lane = "database"
    pause = 2.0

    def note(self, world: World, since: float) -> None:
        """Written down for the checker: a handler that uses the ORM may fail, and outcomes come late."""
        world.note_fault(self.name, since, kills=True)


class StopFast(ServerFault):
    """An orderly stop: every session is ended with a word. Started again at once."""

    name = "PostgreSQL stopped fast"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        world.server.stop()
        outlast(random.uniform(0, 0.5))
        world.server.start()
        self.note(world, since)


class StopImmediately(ServerFault):
    """Every session is cut, and the server recovers from its log."""

    name = "PostgreSQL stopped immediately"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        world.server.stop_immediately()
        outlast(random.uniform(0, 0.5))
        world.server.start()
        self.note(world, since)


class KillServer(ServerFault):
    """SIGKILL to all its processes."""

    name = "PostgreSQL killed with -9"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        world.server.kill()
        outlast(random.uniform(0, 0.5))
        world.server.start()
        self.note(world, since)


class KillBackend(ServerFault):
    """SIGKILL to one session's process: the server ends all the others and recovers."""

    name = "PostgreSQL session killed with -9"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        with world.bare() as connection:
            row = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
                "AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
            ).fetchone()
        if row is None:
            raise NotInjected
        psutil.Process(row[0]).kill()
        self.note(world, since)
        wait_for(world)
        self.note(world, since)


class Freeze(ServerFault):
    """SIGSTOP to the whole server for longer than the lease: sockets are open, and nobody answers."""

    name = "PostgreSQL frozen past the lease"
    weight = 5

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        with world.server.frozen():
            outlast(world.lease * random.uniform(1.1, 1.6))
        self.note(world, since)


class LongOutage(ServerFault):
    """Away for twice the lease, with eight worker processes: no running job is taken from a living worker."""

    name = "PostgreSQL away for twice the lease"
    pause = 8.0
    weight = 3
    repeats = False

    def prepare(self, world: World) -> None:
        if world.alone:
            for _ in range(4):
                world.add_host("--threads", "4", "--exclude-queues", "fifo")

    def kinds(self) -> tuple[Kind, ...]:
        """Jobs that run from before to after."""
        return (Kind("crash:work", 10, {"seconds": 4}, DONE, {"max_attempts": MANY}),)

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        # One worker comes to renew later than all others to sweep: they have to leave it a whole lease. Among
        # other faults it may be dead by then.
        late = random.choice(world.busy_hosts()).running if world.alone else None
        world.server.stop()
        outlast(2 * world.lease)
        if late:
            late.send(signal.SIGSTOP)
        world.server.start()
        outlast(world.lease / 2)
        if late:
            late.send(signal.SIGCONT)
        self.note(world, since)


class ReadOnly(ServerFault):
    """Every transaction is read-only for a while, as on a primary that was demoted."""

    name = "PostgreSQL read-only"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        try:
            self._set(world, "ALTER SYSTEM SET default_transaction_read_only = on")
            outlast(random.uniform(0.5, 1.5))
        finally:
            self._set(world, "ALTER SYSTEM RESET default_transaction_read_only")
        self.note(world, since)

    def _set(self, world: World, statement: str) -> None:
        with world.bare(options="-c default_transaction_read_only=off") as connection:
            connection.execute(statement)
            connection.execute("SELECT pg_reload_conf()")


def wait_for(world: World, within: float = 20) -> None:
    """Until the server lets somebody in."""
    eventually(lambda: _lets_in(world), within=within, every=0.05)


def _lets_in(world: World) -> bool:
    try:
        world.bare().close()
    except psycopg.Error:
        return False
    return True


ALL = (StopFast, StopImmediately, KillServer, KillBackend, Freeze, LongOutage, ReadOnly)
