"""PgBouncer in transaction mode between workers and PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import time
from random import Random

from tests import debian
from tests.waiting import eventually

from ..world import World
from .base import POSTGRESQL, Fault, NotInjected

PACKAGES = ("pgbouncer", "libc-ares2")
PORT = 6432
CONFIGURATION = """
[databases]
postgres = host={socket} port=5432 dbname=postgres user=postgres
[pgbouncer]
listen_addr = {address}
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 500
ignore_startup_parameters = extra_float_digits,options
logfile = {folder}/pgbouncer.log
admin_users = postgres
"""


class Pooled(Fault):
    """One worker polls through it, one listens past it; and its server connections change all the time."""

    name = "PgBouncer in transaction mode changes its connections"
    databases = (POSTGRESQL,)
    lane = "pooler"
    mixes = False

    def prepare(self, world: World) -> None:
        program, environment = debian.program("pgbouncer", *PACKAGES)
        assert program
        assert world.server
        folder = world.folder / "pooler"
        folder.mkdir()
        (folder / "pgbouncer.ini").write_text(
            CONFIGURATION.format(socket=world.server.folder, address=world.address, port=PORT, folder=folder)
        )
        folder.chmod(0o777)
        process = subprocess.Popen(
            [program, str(folder / "pgbouncer.ini")],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user="nobody" if os.geteuid() == 0 else None,
        )
        world.at_end(process.kill)
        world.worker_url = world.tcp_url.replace(":5432", f":{PORT}")
        eventually((folder / f".s.PGSQL.{PORT}").exists)
        self._admin = world.worker_url.replace("/postgres?", "/pgbouncer?")
        world.add_host("--threads", "4", "--exclude-queues", "fifo")
        direct = f"host={world.server.folder} user=postgres dbname=postgres"
        self._listener = world.add_host(
            "--threads", "4", "--exclude-queues", "fifo", env={"CRASH_LISTEN_DSN": direct}
        )

    def inject(self, world: World, random: Random) -> None:
        """Its connections to the server are closed when they are next given back, and new ones made."""
        import psycopg

        since = time.monotonic()
        with psycopg.connect(self._admin, autocommit=True, prepare_threshold=None) as admin:
            cursor = psycopg.ClientCursor(admin)
            cursor.execute("SHOW SERVERS")
            if not cursor.fetchall():
                raise NotInjected
            cursor.execute("RECONNECT")
        world.note_fault(self.name, since, kills=True)

    def problems(self, world: World) -> list[str]:
        """At most one warning about LISTEN from each worker process, and none of those that go past it."""
        found = []
        for host in world.hosts:
            warnings = host.running.log.count("Cannot LISTEN")
            allowed = 0 if host is self._listener else len(host.running.worker_ids)
            if warnings > allowed:
                found.append(f"host {host.number} warned of LISTEN {warnings} times, {allowed} would do")
        return found

    @classmethod
    def missing(cls) -> str | None:
        program, _ = debian.program("pgbouncer", *PACKAGES)
        return None if program else "it needs Debian's package pgbouncer"


ALL = (Pooled,)
