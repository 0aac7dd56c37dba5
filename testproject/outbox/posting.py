"""One HTTP POST: no redirects followed, no more read of the answer than is needed."""

from __future__ import annotations

import re
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

_CONNECTIONS = {"http": HTTPConnection, "https": HTTPSConnection}
_PLAIN = re.compile(r"[!-~]+")  # ASCII without spaces: what a request line may hold


#: Bytes of an answer that are read, out of politeness: many servers complain of those who hang up.
ANSWER_READ = 65_536


class NotDelivered(Exception):
    """No answer, or one that says to try again."""


class Answer(NamedTuple):
    """What the receiver said."""

    status: int
    reason: str
    retry_after: float | None

    def __str__(self) -> str:
        return f"{self.status} {self.reason}".strip()


def post(url: str, body: bytes, headers: dict[str, str], timeout: float) -> Answer:
    """Send ``body``. ``timeout``: seconds for the connection, and for each wait on it.

    Raises ``NotDelivered`` if there was no answer, ``ValueError`` for a URL that nothing can be sent to.
    """
    parts = address(url)
    connection = _CONNECTIONS[parts.scheme](parts.hostname or "", parts.port, timeout=timeout)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        with suppress(OSError, HTTPException):  # the status is all that counts
            response.read1(ANSWER_READ)
    except (OSError, HTTPException) as problem:
        raise NotDelivered(f"{url}: {type(problem).__name__}: {problem}") from problem
    else:
        return Answer(response.status, response.reason, _seconds(response.getheader("Retry-After")))
    finally:
        connection.close()


def address(url: str) -> SplitResult:
    """The parts of a URL. Raises ``ValueError`` unless it is one that something can be sent to."""
    parts = urlsplit(url)
    if parts.scheme not in _CONNECTIONS or not parts.hostname or parts.port == 0 or not _PLAIN.fullmatch(url):
        raise ValueError(f"{url!r} is no http or https address.")
    return parts


def _seconds(header: str | None) -> float | None:
    """Retry-After in seconds, at most an hour; its form as a date is not read."""
    return min(float(header), 3_600) if header and header.isdecimal() else None
