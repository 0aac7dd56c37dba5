"""A proxy before PostgreSQL that loses things: `python -m tests.crash.proxy ADDRESS SOCKET`.

It listens on ADDRESS (a port of its own, which it prints) and takes commands as lines on standard input:

hole        from now on not a byte is passed on in either direction, and no connection is closed
open        connections of before the hole are cut, new ones work
cut         all connections are cut now
lose KIND WHEN   the next statement of this kind ("claim", "outcome") is lost, with its connection:
                 WHEN is "before" (the server never saw it) or "after" (it was committed, and the answer lost)

It prints a line for each statement lost. It ends when standard input does.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator

#: What is found in the text of a statement.
MARKS = {
    "claim": (b"attempts = job.attempts + 1",),
    "outcome": (b"status = 3, result", b"given.delay", b"held_fence"),
}
CHUNK = 65_536


class Proxy:
    """All connections and what is to be done to them."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._links: set[Link] = set()
        self.passing = asyncio.Event()
        self.passing.set()
        self.wanted: tuple[str, str] | None = None  # kind and when

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A client has come."""
        link = Link(self, reader, writer)
        self._links.add(link)
        try:
            await self.passing.wait()
            await link.run(self._socket)
        finally:
            self._links.discard(link)
            link.cut()

    def command(self, line: str) -> None:
        """Do as told."""
        match line.split():
            case ["hole"]:
                self.passing.clear()
            case ["open"]:
                self._cut()
                self.passing.set()
            case ["cut"]:
                self._cut()
            case ["lose", kind, when]:
                self.wanted = kind, when
            case ["forget"]:
                self.wanted = None

    def _cut(self) -> None:
        for link in list(self._links):
            link.cut()


class Link:
    """One client and its session."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client = reader, writer
        self._server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._swallows = ""  # the kind of statement whose answer is not to be passed on

    async def run(self, socket: str) -> None:
        """Pass on in both directions until one side ends."""
        with contextlib.suppress(OSError):
            self._server = await asyncio.open_unix_connection(socket)
            forth = asyncio.create_task(self._forth())
            back = asyncio.create_task(self._back())
            await asyncio.wait((forth, back), return_when=asyncio.FIRST_COMPLETED)
            for task in (forth, back):
                task.cancel()
            await asyncio.gather(forth, back, return_exceptions=True)

    async def _forth(self) -> None:
        assert self._server
        rest = b""
        while data := await self._client[0].read(CHUNK):
            await self._proxy.passing.wait()
            # A statement may come in two pieces.
            if kind := self._wanted_in(rest + data):
                if kind[1] == "before":
                    print(f"lost {kind[0]} before", flush=True)
                    return
                self._swallows = kind[0]
            rest = data[-200:]
            self._server[1].write(data)
            await self._server[1].drain()

    async def _back(self) -> None:
        assert self._server
        while data := await self._server[0].read(CHUNK):
            await self._proxy.passing.wait()
            if self._swallows:
                # The server answers a statement of its own transaction only after the commit.
                print(f"lost {self._swallows} after", flush=True)
                return
            self._client[1].write(data)
            await self._client[1].drain()

    def _wanted_in(self, data: bytes) -> tuple[str, str] | None:
        wanted = self._proxy.wanted
        if wanted is None or not any(mark in data for mark in MARKS[wanted[0]]):
            return None
        self._proxy.wanted = None
        return wanted

    def cut(self) -> None:
        """Close both sides."""
        for _, writer in self._sides():
            with contextlib.suppress(Exception):
                writer.transport.abort()

    def _sides(self) -> Iterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        yield self._client
        if self._server is not None:
            yield self._server


async def serve(address: str, socket: str) -> None:
    """Until standard input ends."""
    proxy = Proxy(socket)
    server = await asyncio.start_server(proxy.accept, address, 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    while line := await commands.readline():
        proxy.command(line.decode())


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:3]))
