"""Handlers that do what handlers should not. The fault is the job; its neighbours are to notice nothing."""

from __future__ import annotations

import time
from random import Random

from tests.waiting import eventually

from ..kinds import DEAD, DONE, MANY, Kind
from ..ledger import Ledger
from ..world import World
from .base import BOTH, Fault, NotInjected


class Hostile(Fault):
    """Enqueues one, and counts when it was seen to run."""

    lane = "handlers"
    type: str
    payload: dict[str, int] = {}
    expected = DONE
    options: dict[str, int] = {"max_attempts": MANY}
    patience = 20.0

    def inject(self, world: World, random: Random) -> None:
        kind = Kind(self.type, 1, self.given(world), self.expected, {"priority": 10, **self.options})
        since = time.monotonic()
        [n] = world.load.put([kind])
        self.wait_until_run(world, n)
        self.note(world, since, n)

    def given(self, world: World) -> dict[str, object]:
        """The payload."""
        return dict(self.payload)

    def note(self, world: World, since: float, n: int) -> None:
        """What the checker has to know. Mostly nothing: nobody else may notice."""
        world.note_fault(self.name, since)

    def wait_until_run(self, world: World, n: int) -> None:
        """Until the handler has started, and ended if it ends."""

        def ran() -> bool:
            runs = [run for run in Ledger.read(world.ledger).runs if run.n == n]
            return bool(runs) and (runs[-1].verdict is not None or self.expected == DEAD)

        try:
            eventually(ran, within=self.patience, every=0.2)
        except AssertionError:
            raise NotInjected from None


class HoldsTheGil(Hostile):
    """Holds the interpreter lock for three leases: its process does nothing else, and keeps its jobs."""

    name = "a handler that holds the GIL for three leases"
    type = "crash:hold_gil"
    weight = 3

    def given(self, world: World) -> dict[str, object]:
        return {"seconds": round(3 * world.lease)}


class Forks(Hostile):
    name = "a handler that forks"
    type = "crash:fork"


class ClosesConnections(Hostile):
    name = "a handler that closes all connections"
    type = "crash:close_connections"


class LeavesTransactionOpen(Hostile):
    name = "a handler that leaves a transaction open"
    type = "crash:open_transaction"


class Disturbs(Hostile):
    name = "a handler that changes directory, language, zone and environment"
    type = "crash:disturb"


class Grows(Hostile):
    """Eats memory until `--max-memory` has its process replaced, in good order."""

    name = "a handler that eats memory until its process is recycled"
    type = "crash:grow"
    payload = {"mebibytes": 40}
    weight = 3

    def prepare(self, world: World) -> None:
        world.options = (*world.options, "--max-memory", "200")


class Poison(Hostile):
    """Kills its worker process each time: it ends dead, and the workers survive."""

    name = "a job that kills its worker"
    type = "crash:poison"
    expected = DEAD
    options = {"max_attempts": 3}
    pause = 2.0
    weight = 3

    def note(self, world: World, since: float, n: int) -> None:
        pids = [run.pid for run in Ledger.read(world.ledger).runs if run.n == n]
        # Each is replaced by its supervisor; what ran beside it in the process is cut off.
        world.note_fault(self.name, since, pids=pids, kills=True, until=time.monotonic() + 60)


class LongWrite(Hostile):
    """A transaction that has written stays open for longer than the lease; on SQLite nobody else writes."""

    name = "a handler with a long write transaction"
    type = "crash:write_long"
    databases = BOTH
    weight = 3

    def given(self, world: World) -> dict[str, object]:
        return {"seconds": 1.3 * world.lease}


ALL = (HoldsTheGil, Forks, ClosesConnections, LeavesTransactionOpen, Disturbs, Grows, Poison, LongWrite)
