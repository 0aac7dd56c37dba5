"""The site itself, served from a thread: pages, admin, and the receiver of webhooks with its troubles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.servers.basehttp import (
    ThreadedWSGIServer,
    WSGIRequestHandler,
    get_internal_wsgi_application,
)
from django.urls import reverse

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Troubles:
    """Around the site: answers in its stead at receivers that are in trouble."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._answers: dict[str, Iterator[str]] = {}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status = next(self._answers.get(environ["PATH_INFO"], iter(())), None)
        if status is None:
            return self._application(environ, start_response)
        # Unread, the body would make the system reset the connection, and the answer could be lost.
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start_response(status, [("Content-Length", "0")])
        return []

    def once(self, receiver: str, status: str) -> None:
        """The receiver's next answer."""
        self._answers[path_of(receiver)] = iter([status])

    def always(self, receiver: str, status: str) -> None:
        """The receiver's answer until its trouble is ``over``."""
        self._answers[path_of(receiver)] = repeat(status)

    def over(self, receiver: str) -> None:
        """The receiver is well again."""
        del self._answers[path_of(receiver)]


class Handler(WSGIRequestHandler):
    """Says nothing: the display has the terminal."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Site:
    """The server and its thread. Raises ``OSError`` if the port is taken; port 0 finds a free one."""

    def __init__(self, port: int) -> None:
        self.troubles = Troubles(StaticFilesHandler(get_internal_wsgi_application()))
        self._server = ThreadedWSGIServer(("127.0.0.1", port), Handler)
        self._server.set_app(self.troubles)
        self._thread = threading.Thread(target=self._server.serve_forever, name="site", daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Site:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def webhook(self, receiver: str) -> str:
        """Where messages to a receiver go."""
        return self.url + path_of(receiver)

    def wait(self) -> None:
        """Serve until somebody interrupts."""
        self._thread.join()


def path_of(receiver: str) -> str:
    """The path of a receiver's webhook."""
    return reverse("webhook", args=[receiver])
