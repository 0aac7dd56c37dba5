"""The databases that are measured: a server and a folder of files, both gone afterwards."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.postgres import Cluster

#: Of the embedded server, over what the tests have. Statements are counted only where a workload asks for it;
#: the rest is as PostgreSQL comes.
CONFIGURATION = """
fsync = on
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track = 'none'
max_connections = 400
"""

STATEMENTS = """
    SELECT coalesce(sum(s.calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
    WHERE d.datname = %s AND {kept}"""
#: Not those of who enqueues.
ENQUEUES = "s.query NOT ILIKE '%%INSERT INTO django_jobqueue_job%%' AND s.query NOT ILIKE '%%pg_notify%%'"
TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s AND {kept}"


class ServerError(Exception):
    """The server that was named cannot be used."""


@dataclass(frozen=True)
class Target:
    """One database of a server."""

    vendor: str
    url: str

    @property
    def path(self) -> Path:
        """The file, on SQLite."""
        return Path(self.url.removeprefix("sqlite:///"))


class Server(ABC):
    """Makes databases, each once."""

    vendor: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._targets: dict[str, Target] = {}

    def has(self, name: str) -> bool:
        """Whether it was made."""
        return name in self._targets

    def database(self, name: str) -> tuple[Target, bool]:
        """The database of that name, and whether it was made now."""
        if name in self._targets:
            return self._targets[name], False
        self._targets[name] = self.create(name)
        return self._targets[name], True

    @abstractmethod
    def create(self, name: str) -> Target:
        """Make an empty database."""

    def drop(self, name: str) -> None:
        """Remove it, if it was made."""
        self._targets.pop(name, None)

    def close(self) -> None:
        """Leave nothing behind."""
        for name in list(self._targets):
            self.drop(name)

    @property
    def version(self) -> str:
        """What the report calls it."""
        import sqlite3

        return f"SQLite {sqlite3.sqlite_version}"


class SQLiteServer(Server):
    """Files in a temporary folder."""

    vendor = "sqlite"

    def create(self, name: str) -> Target:
        return Target(self.vendor, f"sqlite:///{self.folder / name}.sqlite3")

    def drop(self, name: str) -> None:
        for suffix in ("", "-wal", "-shm"):
            (self.folder / f"{name}.sqlite3{suffix}").unlink(missing_ok=True)
        super().drop(name)


class PostgreSQLServer(Server):
    """Databases on one server."""

    vendor = "postgresql"

    def __init__(self, folder: Path, dsn: str) -> None:
        super().__init__(folder)
        self.dsn = dsn
        with psycopg.connect(dsn, autocommit=True) as connection:
            self._version = str(connection.info.server_version // 10_000)
            self.counts_statements = counts_statements(connection)

    @property
    def version(self) -> str:
        return f"PostgreSQL {self._version}"

    def create(self, name: str) -> Target:
        self.drop(name)
        self._run("CREATE DATABASE {}", name)
        return Target(self.vendor, self._url(name))

    def drop(self, name: str) -> None:
        self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        super().drop(name)

    def count_statements(self, name: str) -> None:
        """Let new connections to this database count theirs."""
        if self.counts_statements:
            self._run("ALTER DATABASE {} SET pg_stat_statements.track = 'top'", name)

    def work(self, name: str, *, without_enqueues: bool) -> dict[str, int]:
        """What this database did so far: statements, or transactions where the server counts no others."""
        what, query = ("statements", STATEMENTS) if self.counts_statements else ("transactions", TRANSACTIONS)
        kept = ENQUEUES if without_enqueues and self.counts_statements else "TRUE"
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            row = connection.execute(query.format(kept=kept), [f"jobqueue_bench_{name}"]).fetchone()
        return {what: int(row[0]) if row else 0}

    def _run(self, statement: str, name: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(f"jobqueue_bench_{name}")))

    def _url(self, name: str) -> str:
        """As a URL, the form in which the test project's settings take it."""
        parts = {key: str(value) for key, value in conninfo_to_dict(self.dsn).items()}
        user, password = quote(parts.pop("user", "")), quote(parts.pop("password", ""))
        parts.pop("dbname", None)
        login = f"{user}{':' + password if password else ''}@" if user else ""
        return f"postgresql://{login}/jobqueue_bench_{name}?{urlencode(parts)}"


def counts_statements(connection: psycopg.Connection) -> bool:
    """Whether the server can; then make it so in this database, whose view shows all others."""
    row = connection.execute("SELECT current_setting('shared_preload_libraries')").fetchone()
    loaded = bool(row) and "pg_stat_statements" in row[0]
    if loaded:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    return loaded


@contextmanager
def running(vendor: str, dsn: str | None) -> Iterator[Server]:
    """The server: that of ``dsn``, or an own one for as long."""
    # Not below the folder of a person: PostgreSQL runs as nobody where we are root.
    with tempfile.TemporaryDirectory(prefix="jobqueue-bench-") as name:
        folder = Path(name)
        if vendor == "sqlite":
            yield SQLiteServer(folder)
        elif dsn is not None:
            check(dsn)
            yield from closing(PostgreSQLServer(folder, dsn))
        else:
            with own_cluster() as cluster:
                yield from closing(PostgreSQLServer(folder, cluster.url("postgres")))


def closing(server: Server) -> Iterator[Server]:
    """The server, and none of our databases on it afterwards."""
    try:
        yield server
    finally:
        server.close()


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    """An embedded PostgreSQL with our configuration."""
    with tempfile.TemporaryDirectory(prefix="jobqueue-bench-") as folder:
        cluster = Cluster(Path(folder))
        cluster.create()
        with (cluster.data / "postgresql.auto.conf").open("a") as file:
            file.write(CONFIGURATION)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def check(dsn: str) -> None:
    """Raise ``ServerError`` if nothing could be measured there."""
    try:
        with psycopg.connect(dsn, autocommit=True, connect_timeout=10) as connection:
            row = connection.execute(
                "SELECT usename FROM pg_user WHERE usename = current_user AND NOT usesuper"
            ).fetchone()
    except psycopg.OperationalError as error:
        reason = " ".join(str(error).split())
        raise ServerError(
            f"argument --postgres: {dsn!r} does not answer ({reason}). Start it, or leave --postgres out."
        ) from None
    if row:
        raise ServerError(
            f"argument --postgres: {row[0]!r} is no superuser there, as CREATE DATABASE and CHECKPOINT need. "
            "Name one that is, or leave --postgres out."
        )
