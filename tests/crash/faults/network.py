"""Between workers and PostgreSQL: a proxy that cuts, swallows, goes silent; and hosts that are cut off."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from random import Random

from tests.conftest import ROOT
from tests.waiting import outlast

from ..world import Host, World
from .base import POSTGRESQL, Fault, NotInjected


class Proxied(Fault):
    """A host reaches the database through a proxy of the suite. One proxy serves all faults of this kind."""

    databases = (POSTGRESQL,)
    lane = "network"

    def prepare(self, world: World) -> None:
        if "proxy" not in world.extras:
            world.extras["proxy"] = Remote(world)
        self.proxy: Remote = world.extras["proxy"]


class Remote:
    """The proxy's process, and the hosts behind it."""

    def __init__(self, world: World) -> None:
        assert world.server is not None
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.crash.proxy",
                world.address,
                str(world.server.folder / ".s.PGSQL.5432"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        world.at_end(self._process.kill)
        assert self._process.stdout
        port = int(self._process.stdout.readline())
        url = world.tcp_url.replace(":5432", f":{port}")
        self.hosts: list[Host] = [
            world.add_host("--threads", "4", "--exclude-queues", "fifo", env={"DATABASE_URL": url}),
        ]
        if len(world.hosts) < 2:
            world.add_host("--threads", "4", "--exclude-queues", "fifo")  # another that is not behind it
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="proxy", daemon=True).start()

    def say(self, command: str) -> None:
        """Tell it what to do."""
        assert self._process.stdin
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def lost(self, within: float) -> str:
        """What it has lost; empty if nothing in this time."""
        try:
            return self._lines.get(timeout=within)
        except queue.Empty:
            return ""

    def pids(self) -> list[int]:
        """Worker processes behind it, a bit of whose life may be lost with a connection."""
        return [pid for host in self.hosts for pid in host.pids()]

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line.strip())


class Cut(Proxied):
    """All connections of a host are cut."""

    name = "connections cut"
    pause = 0.5

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        self.proxy.say("cut")
        world.note_fault(self.name, since, pids=self.proxy.pids(), kills=True)


class BlackHole(Proxied):
    """Nothing gets through for longer than the lease: no FIN, no RST. Then the old connections are cut."""

    name = "connections black-holed past the lease"

    def inject(self, world: World, random: Random) -> None:
        since, pids = time.monotonic(), self.proxy.pids()
        self.proxy.say("hole")
        outlast(world.lease * random.uniform(1.1, 2))
        self.proxy.say("open")
        world.note_fault(self.name, since, pids=list({*pids, *self.proxy.pids()}), suspends=True, kills=True)


class LostStatement(Proxied):
    """A statement is lost with its connection, before the server sees it or after it was committed."""

    kind: str
    pause = 0.3

    def inject(self, world: World, random: Random) -> None:
        since = time.monotonic()
        self.proxy.say(f"lose {self.kind} {random.choice(('before', 'after', 'after'))}")
        said = self.proxy.lost(within=3)
        self.proxy.say("forget")
        if not said:
            raise NotInjected
        world.note_fault(self.name, since, pids=self.proxy.pids(), kills=True)


class LostClaim(LostStatement):
    """A claim's answer is lost: what was claimed is unknown, is looked up, and given back."""

    name = "a claim's COMMIT lost"
    kind = "claim"


class LostOutcome(LostStatement):
    """An outcome's answer is lost: it is looked up, and not written twice, nor guessed."""

    name = "an outcome's COMMIT lost"
    kind = "outcome"


class CutOffHost(Fault):
    """A host (a network namespace) loses its network for longer than its lease, then has it back."""

    name = "a host cut off past its lease"
    databases = (POSTGRESQL,)
    lane = "network"
    needs_root = True

    def prepare(self, world: World) -> None:
        name = f"crash{time.monotonic_ns() % 1_000_000}"
        third = (time.monotonic_ns() // 1_000) % 250
        self._link = f"{name}a"
        ours, theirs = f"10.213.{third}.1", f"10.213.{third}.2"
        for command in (
            f"netns add {name}",
            f"link add {self._link} type veth peer name {name}b netns {name}",
            f"addr add {ours}/30 dev {self._link}",
            f"link set {self._link} up",
            f"-n {name} addr add {theirs}/30 dev {name}b",
            f"-n {name} link set {name}b up",
            f"-n {name} link set lo up",
        ):
            ip(command)
        world.at_end(lambda: ip(f"netns del {name}"))
        world.listen_on(ours)
        url = world.tcp_url.replace(world.address, ours)
        self._host = world.add_host(
            *("--threads", "4", "--exclude-queues", "fifo"),
            env={"DATABASE_URL": url},
            inside=("ip", "netns", "exec", name),
        )
        if len(world.hosts) < 2:
            world.add_host("--threads", "4", "--exclude-queues", "fifo")

    def inject(self, world: World, random: Random) -> None:
        since, pids = time.monotonic(), self._host.pids()
        ip(f"link set {self._link} down")
        outlast(world.lease * random.uniform(1.2, 3))
        ip(f"link set {self._link} up")
        outlast(1)  # until TCP tries again, or has given up
        world.note_fault(self.name, since, pids=list({*pids, *self._host.pids()}), suspends=True, kills=True)


def ip(command: str) -> None:
    """Run the program of iproute2."""
    subprocess.run(["ip", *command.split()], check=True, capture_output=True)


ALL = (Cut, BlackHole, LostClaim, LostOutcome, CutOffHost)
