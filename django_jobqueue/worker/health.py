"""Whether the loops that claim go round, and whether they get an answer; told by HTTP and in a file."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .. import logs
from ..exceptions import InvalidOption
from .board import Board

#: Seconds by which a loop may be late: it may wait for a lock, or for a server that is gone.
PATIENCE = 60.0
#: Seconds between two writes of the file.
WRITE_INTERVAL = 1.0


class Health:
    """Of a worker or of all processes of a supervisor. ``boards``: of those that are to claim."""

    def __init__(self, boards: Callable[[], Sequence[Board]]) -> None:
        self._boards = boards
        self._ticked = time.monotonic()

    def tick(self) -> None:
        """The supervisor's own loop has gone round."""
        self._ticked = time.monotonic()

    @property
    def live(self) -> bool:
        """Whether every loop goes round, though the database may be away. If not, only a restart helps."""
        now = time.monotonic()
        return now < self._ticked + PATIENCE and all(
            one.loop_due_in() > -PATIENCE for one in list(self._boards())
        )

    @property
    def ready(self) -> bool:
        """Whether jobs are claimed: some loop had an answer when it last asked for them."""
        return self.live and any(one.had_answer for one in list(self._boards()))


class Probes:
    """What people asked for: an address that answers ``/live`` and ``/ready``, a file, or neither."""

    def __init__(self, address: str | None = None, path: str | None = None) -> None:
        """Bind the address and write the file. Raises ``InvalidOption`` if that is not possible."""
        self._file = None if path is None else HealthFile(Path(path))
        self._server = None if address is None else _bind(address)

    def start(self, health: Health) -> None:
        """Answer from now on."""
        self._health = health
        if self._server is not None:
            self._server.health = health
            threading.Thread(target=self._server.serve_forever, name="jobqueue-health", daemon=True).start()

    def tick(self) -> None:
        """The supervisor's own loop has gone round."""
        self._health.tick()
        if self._file is not None:
            self._file.write(self._health)

    def close(self) -> None:
        """Answer no more, and remove the file."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        if self._file is not None:
            self._file.remove()


class HealthFile:
    """Written once a second while the worker is live, so its age tells; "ready" stands in it while it is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._write_from = 0.0
        self._warned = False
        try:
            self._replace("")
        except OSError as error:
            raise InvalidOption(
                f"health_file={str(path)!r} cannot be written: {error}. Name a file in a folder that this "
                "user may write to."
            ) from error

    def write(self, health: Health) -> None:
        """Tell how it stands."""
        now = time.monotonic()
        if now < self._write_from or not health.live:
            return
        self._write_from = now + WRITE_INTERVAL
        try:
            self._replace("live ready\n" if health.ready else "live\n")
        except OSError as error:  # the disk is full, say; jobs are more important
            if not self._warned:
                logs.health_not_written(self._path, error)
            self._warned = True

    def remove(self) -> None:
        """The worker is gone."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _replace(self, text: str) -> None:
        """In one go, so that nobody reads half of it."""
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        new.write_text(text)
        new.replace(self._path)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    health: Health | None = None


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Answers(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5  # seconds for a request to come

    def do_GET(self) -> None:
        """``/live`` and ``/ready``: 200 or 503."""
        if self.path not in ("/live", "/ready"):
            self._answer(HTTPStatus.NOT_FOUND, "ask for /live or /ready")
            return
        health = self.server.health
        if health is not None and (health.live if self.path == "/live" else health.ready):
            self._answer(HTTPStatus.OK, "ok")
        else:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"not {self.path[1:]}")

    do_HEAD = do_GET

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A probe that comes every few seconds is no news."""


def _bind(address: str) -> _Server:
    """A server at ``HOST:PORT``; without a host at every address of the machine."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise InvalidOption(f"health_address={address!r} must be HOST:PORT or :PORT, e.g. 127.0.0.1:8081.")
    try:
        return (_Server6 if ":" in host else _Server)((host, int(port)), _Answers)
    except OSError as error:
        raise InvalidOption(
            f"health_address={address!r} cannot be listened at: {error}. Choose a free port of this machine."
        ) from error
