"""Outcomes become rows: in batches of what has gathered, kept while the database is away."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from uuid import UUID

from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    close_old_connections,
    connections,
    reset_queries,
)

from .. import logs, signals
from ..attempts import Attempt
from ..managers.failures import describe
from ..managers.outcomes import Failed, Outcome
from ..models import Job
from .holdings import Holdings
from .options import WorkerOptions
from .service import Backoff, OwnConnection, Service, use_own_connection
from .tallying import Tallying

#: Outcomes in one statement.
BATCH = 500
#: Characters of results in one statement.
BATCH_SIZE = 16_000_000
#: Seconds between two looks at running jobs: progress out, cancel in. A handler sees a cancel within 2 s.
TICK = 1.0

Pair = tuple[Attempt, Outcome]


class Settler(Service):
    """One thread, one connection, on which no handler and no receiver ever runs."""

    def __init__(
        self,
        worker_id: str,
        options: WorkerOptions,
        holdings: Holdings,
        claims: Callable[[], tuple[int, int]],
        on_settled: Callable[[Sequence[Pair]], None],
        on_death: Callable[[str], None],
    ) -> None:
        super().__init__("settler", on_death)
        self._worker_id = worker_id
        self._alias = options.alias
        self._holdings = holdings
        self._claims = claims  # how many were sent, and how many are over
        self._on_settled = on_settled
        self._outcomes: queue.SimpleQueue[Pair | None] = queue.SimpleQueue()
        self._backoff = Backoff("writing outcomes", min(options.heartbeat, 5.0))
        self._changed: dict[Attempt, None] = {}  # whose progress is to be written
        self._look_at = 0.0  # when the table is to be asked what it says this worker holds
        self._heartbeat = options.heartbeat
        self._strays: set[tuple[UUID, int]] = set()
        self._claims_before = 0  # claims that were sent when those were seen
        self._held_up: list[Pair] = []  # whose rows are locked by somebody else
        self._tallying = Tallying(options.alias)
        self._give_up = threading.Event()
        self._announcer = Announcer(on_death)
        self._connection = OwnConnection(options.alias)

    def put(self, attempt: Attempt, outcome: Outcome | None) -> None:
        """This is how it ended; None: its outcome is written already."""
        if outcome is None:
            if not attempt.lost:
                self._tallying.settled_itself(attempt)
            self._holdings.remove([attempt])
        else:
            self._outcomes.put((attempt, outcome))

    @property
    def backlog(self) -> int:
        """Outcomes that wait to be written."""
        return self._outcomes.qsize()

    def progressed(self, attempt: Attempt) -> None:
        """Its progress has changed; written at the next tick."""
        self._changed[attempt] = None

    def look_for_strays(self) -> None:
        """A claim was sent and its answer lost: perhaps the table has jobs for us that we know nothing of."""
        self._look_at = 0.0

    def start(self) -> None:
        """Start writing."""
        self._announcer.start()
        super().start()

    def ask_to_stop(self) -> None:
        """Write what is there, then end."""
        super().ask_to_stop()
        self._outcomes.put(None)

    def stop(self, timeout: float | None = None) -> bool:
        """Write what is there and end; after ``timeout`` leave the rest to the leases."""
        ended = super().stop(timeout)
        self._give_up.set()
        return self._announcer.stop(timeout) and ended

    def run(self) -> None:
        """Write as outcomes come; look at running jobs once a tick."""
        use_own_connection(self._alias)
        next_tick = time.monotonic() + TICK
        with signals.delivered_by(self._announcer.put):
            while True:
                batch = self._gather(max(next_tick - time.monotonic(), 0))
                if batch:
                    self._write(batch)
                if time.monotonic() >= next_tick:
                    self._tick()
                    next_tick = time.monotonic() + TICK
                if self.stopping.is_set() and self._outcomes.empty() and not self._held_up:
                    break
        self._add_figures()

    def _gather(self, wait: float) -> list[Pair]:
        """What has gathered by now; the first at once, so a lone job is never late."""
        batch: list[Pair] = []
        size = 0
        try:
            pair = self._outcomes.get(timeout=wait)
            while True:
                if pair is not None:
                    batch.append(pair)
                    size += len(getattr(pair[1], "result", None) or "")
                if len(batch) >= BATCH or size > BATCH_SIZE:
                    break
                pair = self._outcomes.get_nowait()
        except queue.Empty:
            pass
        return batch

    def _write(self, batch: Sequence[Pair]) -> None:
        """Write a batch, however often it takes; one refused row does not hold up the others."""
        while not self._give_up.is_set():
            try:
                self._settle(batch)
                self._backoff.worked()
                return
            except (DataError, IntegrityError, ValueError, TypeError) as error:
                if len(batch) > 1:
                    for pair in batch:
                        pair[1].unsure = True  # another kind in the batch may have been written already
                        self._write([pair])
                    return
                batch = [self._refused(batch[0], error)]
            except (DatabaseError, InterfaceError) as error:
                for _, outcome in batch:
                    outcome.unsure = True
                connections[self._alias].close()
                self._give_up.wait(self._backoff.failed(error))

    def _settle(self, batch: Sequence[Pair]) -> None:
        reset_queries()
        self._connection.ensure()
        if self._changed:
            self._write_progress()  # the last word about a job comes before its end
        outcomes = [outcome for _, outcome in batch]
        settlement = Job.objects.db_manager(self._alias).settle(self._worker_id, outcomes, wait=False)
        self._tallying.count(batch, settlement)
        settled = batch
        if settlement.held_up:  # rows locked by another transaction hold up nobody else: again next tick
            locked = {one.job.id for one in settlement.held_up}
            self._held_up += [pair for pair in batch if pair[1].job.id in locked]
            settled = [pair for pair in batch if pair[1].job.id not in locked]
        self._holdings.remove([attempt for attempt, _ in settled])
        self._on_settled(settled)

    def _refused(self, pair: Pair, error: Exception) -> Pair:
        """The database cannot hold this outcome: that is what is recorded instead."""
        attempt, outcome = pair
        logs.outcome_refused(attempt.job, error)
        failure = describe(error, job=attempt.job)
        if isinstance(outcome, Failed):
            failure = failure._replace(error='{"exception": "?", "message": "not storable", "traceback": ""}')
        delay = outcome.delay if isinstance(outcome, Failed) else None
        return attempt, Failed(
            attempt.job, attempt.since_claim(), failure=failure, delay=delay, unsure=outcome.unsure
        )

    def _tick(self) -> None:
        """Write progress, and ask the table about jobs that run for longer than a tick."""
        now = time.monotonic()
        held_up, self._held_up = self._held_up, []
        for pair in held_up:
            self._outcomes.put(pair)
        running = any(
            one.started is not None and now - one.started >= TICK for one in self._holdings.attempts()
        )
        look = running or self._holdings.in_doubt or now >= self._look_at
        add = self._tallying.is_due(now)
        if not (self._changed or look or add):
            return
        try:
            reset_queries()
            self._write_progress()
            if look:
                self._look(now)
            if add:
                self._tallying.add()
            self._backoff.worked()
        except (DatabaseError, InterfaceError) as error:
            connections[self._alias].close()
            self._give_up.wait(min(self._backoff.failed(error), TICK))

    def _add_figures(self) -> None:
        """The last ones; if the database is away just then, they are lost."""
        try:
            self._tallying.add()
        except (DatabaseError, InterfaceError) as error:
            logs.figures_refused(error)

    def _look(self, now: float) -> None:
        """Compare what the table says this worker holds with what is held here.

        Renewal goes by worker, so a job that only the table knows of would be held for ever. It may be of a
        claim that is not yet handed over here, however long that takes: so it is released when a second
        look still finds it, and every claim sent before the first look is over.
        """
        jobs = Job.objects.db_manager(self._alias)
        lapses, attempts = self._holdings.lapses, self._holdings.attempts()
        held = jobs.held_by(self._worker_id)
        self._holdings.compare(attempts, lapses, held)
        sent, over = self._claims()
        known = self._holdings.ids  # read after the count of claims that are over
        strays = {(one, fence) for one, (fence, _) in held.items() if one not in known}
        confirmed = strays & self._strays if over >= self._claims_before else set()
        if confirmed:
            logs.strays_released(jobs.release_held(self._worker_id, only=confirmed), self._worker_id)
        self._strays, self._claims_before = strays - confirmed, sent
        self._look_at = now + (TICK if self._strays else self._heartbeat)

    def _write_progress(self) -> None:
        """Store the progress reported; kept if the database is away, dropped if it refuses it."""
        changed, self._changed = self._changed, {}
        rows = [(one.job.id, one.job.fence, one.progress, one.note) for one in changed if not one.lost]
        try:
            Job.objects.db_manager(self._alias).report_progress(self._worker_id, rows)
        except (DataError, IntegrityError, ValueError, TypeError) as error:
            logs.progress_refused(len(rows), error)
        except (DatabaseError, InterfaceError):
            self._changed = {**changed, **self._changed}
            raise


class Announcer(Service):
    """Runs signal receivers, in a thread and on connections of its own."""

    def __init__(self, on_death: Callable[[str], None]) -> None:
        super().__init__("signals", on_death)
        self._sends: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def put(self, send: Callable[[], None]) -> None:
        """Call this soon."""
        self._sends.put(send)

    def ask_to_stop(self) -> None:
        """Send what is there, then end."""
        super().ask_to_stop()
        self._sends.put(None)

    def run(self) -> None:
        """Send as they come."""
        while (send := self._sends.get()) is not None:
            close_old_connections()
            send()
            close_old_connections()
