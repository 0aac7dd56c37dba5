"""Signals to worker processes and to their supervisors."""

from __future__ import annotations

import os
import signal
import threading
import time
from random import Random

from tests.processes.workers import is_alive
from tests.waiting import equals, eventually, outlast

from ..kinds import Kind
from ..world import Host, World
from .base import Fault, NotInjected

#: Seconds for a `runworker` to be there again.
START = 60


def some_host(world: World, random: Random) -> Host:
    """Any that is there."""
    hosts = [host for host in world.hosts if host.pids()]
    if not hosts:
        raise NotInjected
    return random.choice(hosts)


def some_process(world: World, random: Random) -> int:
    """A worker process of any host."""
    return random.choice(some_host(world, random).pids())


def restart(host: Host) -> None:
    """As systemd does, when the old one is gone."""
    host.running.process.wait()
    equals([], host.running.members)
    host.start().ready(host.processes, within=START)


class KillProcess(Fault):
    """SIGKILL to one worker process; its supervisor takes its jobs back and replaces it."""

    name = "SIGKILL to a process"
    pause = 0.8

    def inject(self, world: World, random: Random) -> None:
        pid = some_process(world, random)
        since = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid))
        world.note_fault(self.name, since, pids=[pid], kills=True)


class KillHost(Fault):
    """SIGKILL to a supervisor and its processes at once, as when a container is killed."""

    name = "SIGKILL to a whole worker"

    def prepare(self, world: World) -> None:
        if world.alone:  # with one thread, many jobs wait in the process behind the one that runs
            for _ in range(2):
                world.add_host("--threads", "1", "--exclude-queues", "fifo", processes=1)

    def inject(self, world: World, random: Random) -> None:
        if world.alone:
            for _ in range(3):
                world.load.put([Kind("crash:work", 1)] * 100)
            outlast(random.uniform(0, 0.4))
        host = some_host(world, random)
        since, pids = time.monotonic(), host.pids()
        host.running.send_group(signal.SIGKILL)
        host.running.process.wait()
        world.note_fault(self.name, since, pids=pids, kills=True)
        restart(host)


class KillSupervisor(Fault):
    """SIGKILL to the supervisor alone: its processes must not live on, for nobody renews their leases."""

    name = "SIGKILL to a supervisor"

    def __init__(self) -> None:
        self._orphans: list[str] = []

    def inject(self, world: World, random: Random) -> None:
        host = some_host(world, random)
        since, pids = time.monotonic(), host.pids()
        host.running.send(signal.SIGKILL)
        host.running.process.wait()
        try:
            eventually(lambda: not any(map(is_alive, pids)), within=world.lease)
        except AssertionError:
            self._orphans.append(f"processes {pids} lived on for a lease after their supervisor was killed")
        world.note_fault(self.name, since, pids=pids, kills=True)
        restart(host)

    def problems(self, world: World) -> list[str]:
        return self._orphans


class Stop(Fault):
    """SIGSTOP to a worker, or to one process of it, for longer than the lease; then SIGCONT."""

    name = "SIGSTOP past the lease"
    pause = 0.5

    def inject(self, world: World, random: Random) -> None:
        host = some_host(world, random)
        whole = random.random() < 0.5
        pids = host.pids() if whole else [random.choice(host.pids())]
        since = time.monotonic()
        for pid in [*pids, host.running.pid] if whole else pids:
            os.kill(pid, signal.SIGSTOP)
        outlast(world.lease * random.uniform(1.1, 2))
        for pid in [*pids, host.running.pid] if whole else pids:
            os.kill(pid, signal.SIGCONT)
        # For a while after it goes on it does not know that its jobs are with others.
        world.note_fault(self.name, since, pids=pids, suspends=True)


class Terminate(Fault):
    """SIGTERM at a random instant of a worker's life, its start included. No job and no attempt is lost."""

    name = "SIGTERM"
    pause = 0.1

    def __init__(self) -> None:
        self._bad: list[str] = []

    def inject(self, world: World, random: Random) -> None:
        host = some_host(world, random)
        # Or within the start, where it waits for the database, and claims for the first time.
        outlast(random.uniform(0, 0.5))
        self._terminate(world, host, random)
        equals([], host.running.members)
        host.start()
        if random.random() < 0.7:
            host.running.ready(host.processes, within=START)
        else:  # into the start
            outlast(random.uniform(0.05, 1.0))

    def _terminate(self, world: World, host: Host, random: Random) -> None:
        code = host.running.stop()
        # A signal that comes before Python has set up its handlers ends the process, as it does any program.
        early = code == -signal.SIGTERM and not host.running.worker_ids
        if code and not early:
            self._bad.append(f"a worker ended with {code} at SIGTERM: {host.running.log[-500:]}")

    def problems(self, world: World) -> list[str]:
        return self._bad


class TerminateTwice(Terminate):
    """A second SIGTERM while it ends: running jobs are cut off and given back."""

    name = "SIGTERM twice"

    def _terminate(self, world: World, host: Host, random: Random) -> None:
        host.running.send(signal.SIGTERM)
        outlast(random.choice((0, 0.01, 0.1, 0.3)) * random.random())
        if host.running.process.poll() is None:
            host.running.send(signal.SIGTERM)
        code = host.running.wait(20)
        if code not in (0, 3, -signal.SIGTERM):
            self._bad.append(f"a worker ended with {code} at two SIGTERMs: {host.running.log[-500:]}")


class TerminateAtAnyLine(Terminate):
    """SIGTERM when a worker process, or its supervisor, comes to a line of the package: any line.

    The lines are counted as they are run, in all threads, so the start and the first claims are hit most.
    """

    name = "SIGTERM at any line"
    pause = 0.01
    mixes = False
    at_least = 300
    HOSTS = 4

    def prepare(self, world: World) -> None:
        for _ in range(self.HOSTS):
            world.add_host("--threads", "2", "--exclude-queues", "fifo", processes=1)
        world.add_host("--threads", "4", "--exclude-queues", "fifo", processes=1)  # does the work meanwhile

    def inject(self, world: World, random: Random) -> int:
        hosts = world.hosts[: self.HOSTS]
        lines = [int(10 ** random.uniform(0, 4.3)) for _ in hosts]
        places = [random.choice(("child", "child", "supervisor")) for _ in hosts]
        threads = [
            threading.Thread(target=self._at_line, args=one) for one in zip(hosts, lines, places, strict=True)
        ]
        before = self._hits
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._hits == before:
            raise NotInjected
        return self._hits - before

    def __init__(self) -> None:
        super().__init__()
        self._hits = 0

    def _at_line(self, host: Host, line: int, place: str) -> None:
        if host.running.process.poll() is None:
            host.running.stop()
        host.env |= {"CRASH_TERM_AT_LINE": str(line), "CRASH_TERM_IN": place}
        worker = host.start()
        good = [0]
        try:
            code = worker.wait(6)
        except AssertionError:  # so many lines are not run by an idle worker
            code = worker.stop()
            good += [3, -signal.SIGTERM]  # unless it comes to the line now: that is a second signal
        else:
            self._hits += 1
        host.env.clear()
        host.resting = True
        if code not in good and not (code == -signal.SIGTERM and not worker.worker_ids):
            self._bad.append(f"a worker ended with {code} at SIGTERM: {worker.log[-500:]}")

    def problems(self, world: World) -> list[str]:
        return self._bad


ALL = (KillProcess, KillHost, KillSupervisor, Stop, Terminate, TerminateTwice, TerminateAtAnyLine)
