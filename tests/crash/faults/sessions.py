"""Sessions of PostgreSQL: terminated, refused, cut short, deadlocked, held up by a forgotten transaction."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import timedelta
from random import Random

import psycopg

from tests.waiting import eventually, outlast

from ..kinds import Kind
from ..world import World
from .base import NotInjected
from .servers import ServerFault

TABLE = "django_jobqueue_job"
HALF_A_SECOND = timedelta(seconds=0.5)


class Terminated(ServerFault):
    """`pg_terminate_backend` of one session or of all."""

    name = "sessions terminated"
    pause = 0.4
    weight = 20

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        with world.bare() as connection:
            row = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() "
                "ORDER BY random() LIMIT %s) AS chosen",
                [random.choice((1, 1, 3, 1_000))],
            ).fetchone()
        if not row or not row[0]:
            raise NotInjected
        self.note(world, since)


class TooManyClients(ServerFault):
    """`max_connections` used up by somebody else; then sessions are terminated, and cannot come back."""

    name = "max_connections used up"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        hoard: list[psycopg.Connection] = []
        try:
            with world.bare() as boss:  # a superuser's place is kept
                boss.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                )
                full = False
                until = time.monotonic() + random.uniform(0.5, 1.5)
                while time.monotonic() < until:
                    try:
                        hoard.append(world.bare())
                    except psycopg.OperationalError:
                        full = True
                        outlast(0.05)  # then places that were freed meanwhile are taken too
            if not full:
                raise NotInjected
        finally:
            for connection in hoard:
                connection.close()
            self.note(world, since)


class Timeouts(ServerFault):
    """A `statement_timeout` so short that statements are cancelled now and then."""

    name = "statement_timeout"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        with world.bare() as connection:
            before = self._cancelled(world)
            connection.execute("ALTER SYSTEM SET statement_timeout = '3ms'")
            connection.execute("SELECT pg_reload_conf()")
            outlast(random.uniform(0.3, 1))
            # Somebody holds a row that a claim or an outcome wants: those that wait for it are cancelled.
            with world.bare(options="-c statement_timeout=0") as other, other.transaction():
                other.execute(f"SELECT id FROM {TABLE} WHERE status IN (1, 2) FOR UPDATE SKIP LOCKED")
                with suppress(AssertionError):
                    eventually(lambda: self._cancelled(world) > before, within=1)
        with world.bare(options="-c statement_timeout=0") as connection:
            connection.execute("ALTER SYSTEM RESET statement_timeout")
            connection.execute("SELECT pg_reload_conf()")
        world.note_fault(self.name, since, kills=True, locks=True)
        if self._cancelled(world) == before:
            raise NotInjected

    def _cancelled(self, world: World) -> int:
        return world.server.log.read_text(errors="replace").count("due to statement timeout")


class Deadlocks(ServerFault):
    """Somebody locks rows in the other order, until the server has broken a deadlock or refused a snapshot.

    The transaction that is chosen as the victim may be a worker's or this one.
    """

    name = "deadlocks and serialisation failures"

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        broken = self._failures(world)
        for _ in range(5):
            with suppress(psycopg.Error), world.bare() as connection, connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                rows = connection.execute(
                    f"SELECT id FROM {TABLE} WHERE status IN (1, 2) ORDER BY id DESC LIMIT 20"
                ).fetchall()
                for (job,) in rows:
                    connection.execute(f"SELECT 1 FROM {TABLE} WHERE id = %s FOR UPDATE", [job])
                    outlast(0.02)  # a transaction that takes its time
            if self._failures(world) > broken:
                world.note_fault(self.name, since, kills=True, locks=True)
                return
        self._deadlock_with_itself(world)
        world.note_fault(self.name, since, kills=True, locks=True)
        if self._failures(world) == broken:
            raise NotInjected

    def _deadlock_with_itself(self, world: World) -> None:
        """Two transactions over two running or waiting jobs, crosswise, in the middle of everything."""
        with world.bare() as connection:
            rows = connection.execute(f"SELECT id FROM {TABLE} WHERE status IN (1, 2) LIMIT 2").fetchall()
        if len(rows) < 2:
            return
        jobs = [row[0] for row in rows]
        meeting = threading.Barrier(2, timeout=5)

        def lock(first: object, second: object) -> None:
            with (
                suppress(psycopg.Error, threading.BrokenBarrierError),
                world.bare() as mine,
                mine.transaction(),
            ):
                mine.execute(f"SELECT 1 FROM {TABLE} WHERE id = %s FOR UPDATE", [first])
                meeting.wait()
                mine.execute(f"SELECT 1 FROM {TABLE} WHERE id = %s FOR UPDATE", [second])

        threads = [threading.Thread(target=lock, args=pair) for pair in (jobs, reversed(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _failures(self, world: World) -> int:
        text = world.server.log.read_text(errors="replace")
        return text.count("deadlock detected") + text.count("could not serialize access")


class RowHeld(ServerFault):
    """A forgotten transaction has one waiting job locked for longer than the lease: all others go on."""

    name = "a row locked past the lease"
    weight = 5

    def __init__(self) -> None:
        self._stuck: list[str] = []

    def inject(self, world: World, random: Random) -> None:
        [n] = world.load.put([Kind("crash:work", 1, options={"priority": 50, "run_after": HALF_A_SECOND})])
        since = time.monotonic()
        with world.bare() as connection, connection.transaction():
            held = connection.execute(
                f"SELECT id FROM {TABLE} WHERE status = 1 AND payload->>'n' = %s FOR UPDATE", [str(n)]
            ).fetchall()
            if not held:
                raise NotInjected
            # From then on it is the first of all.
            due = f"SELECT bool_and(run_after <= clock_timestamp()) FROM {TABLE} WHERE payload->>'n' = %s"
            eventually(lambda: connection.execute(due, [str(n)]).fetchone()[0])
            others = world.load.put([Kind("crash:work", 1, options={"priority": 40})] * 5)
            outlast(world.lease * 1.2)
            left = connection.execute(
                f"SELECT count(*) FROM {TABLE} WHERE payload->>'n' = ANY(%s) AND status = 1 AND attempts = 0",
                [[str(one) for one in others]],
            ).fetchone()
        # Among other faults there may have been no worker at all for as long.
        if world.alone and left and left[0] == len(others):
            self._stuck.append(
                f"nothing was claimed for {world.lease * 1.2:.1f} s beside a row that was locked"
            )
        world.note_fault(self.name, since, locks=True)

    def problems(self, world: World) -> list[str]:
        return self._stuck


ALL = (Terminated, TooManyClients, Timeouts, Deadlocks, RowHeld)
