"""The loop that claims. A dozen lines; ``poll`` says how long to wait."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from django.db import Error, connections, reset_queries

from .. import logs, registry
from ..attempts import Attempt
from ..databases.claiming import ClaimRequest
from ..databases.waking import wake_workers
from ..managers.claim import ClaimedJob
from ..managers.outcomes import Failed, Released, Snoozed, UnknownHere
from ..models import Job
from .holdings import Holdings
from .marks import ScanMarks
from .options import WorkerOptions
from .pool import STALE, Pool
from .rhythm import SHORT_STEP, Rhythm
from .service import Backoff, OwnConnection, Service, use_own_connection
from .settle import BATCH, Pair, Settler
from .turns import Turns
from .wakeup import Wakeup, make_wakeup

#: Seconds for which a type that this worker does not know is left to others.
LEAVE_ALONE = 60.0
#: Jobs in one claim: more are no cheaper each, and above some 1,200 PostgreSQL may compile the plan (JIT).
MOST_CLAIMED = 1_000
#: Seconds: a loop that was asked to end need not come round any more.
FOR_GOOD = 10.0**8
#: Seconds that ``pause`` waits for a claim under way.
CLAIM_PATIENCE = 5.0


class Poller(Service):
    """Claims as many jobs as the pools have room for, and hands them over."""

    def __init__(
        self,
        worker_id: str,
        options: WorkerOptions,
        pools: dict[bool, Pool],
        holdings: Holdings,
        settler: Settler,
        on_death: Callable[[str], None],
    ) -> None:
        super().__init__("poller", on_death)
        self._paused = threading.Event()
        self._claiming = threading.Lock()
        self.drained = threading.Event()
        self.claimed = 0
        self.begun = self.ended = 0  # claims sent; claims answered and handed over, or failed
        self._worker_id = worker_id
        self._options = options
        self._alias = options.alias
        self._pools = pools  # by "is async"
        self._holdings = holdings
        self._settler = settler
        self._turns = Turns(lambda: holdings.board.crowd)
        self._listen_by(Wakeup())
        self._backoff = Backoff("claiming jobs", min(options.heartbeat, 5.0))
        self._unknown: dict[str, float] = {}  # type -> until when it is left alone
        self._shares = {False: 0.5, True: 0.5}  # of plain and async jobs in what was claimed lately
        self._suspect: Attempt | None = None  # the last job claimed whose worker was lost before
        self._marks = ScanMarks()
        self._connection = OwnConnection(options.alias)
        self._past_full_from = 0.0  # when to look again past jobs that have no place here
        self._wants_room = False
        self._relays = True  # the next claim that leaves no room tells others that there may be more

    def run(self) -> None:
        """Poll, wait, poll."""
        use_own_connection(self._alias, pooled=False)
        self._listen_by(make_wakeup(self._options, self._turns))
        try:
            while not self.stopping.is_set():
                delay, listen = self._safe_poll()
                self._holdings.board.comes_round(time.monotonic() + delay)
                if delay:
                    self._rhythm.wait(delay, listen=listen)
        finally:
            self._holdings.board.comes_round(time.monotonic() + FOR_GOOD)
            self._wakeup.close()

    def _listen_by(self, wakeup: Wakeup) -> None:
        self._wakeup = wakeup
        self._rhythm = Rhythm(self._options, wakeup, self._turns, self._seconds_to_next)

    def ask_to_stop(self) -> None:
        """Leave the loop after the statement at hand."""
        super().ask_to_stop()
        self.wake()

    def wake(self) -> None:
        """Look again soon: a place is free, or something changed."""
        self._wakeup.wake()

    def pause(self) -> None:
        """Claim no more; returns when a claim under way is over (or stuck for seconds)."""
        self._paused.set()
        if self._claiming.acquire(timeout=CLAIM_PATIENCE):
            self._claiming.release()

    def resume(self) -> None:
        """Claim again."""
        self._paused.clear()
        self.wake()

    def room_made(self) -> None:
        """A handler has ended. Called for every job, so it does nothing unless the loop waits for room."""
        if self._wants_room and any(pool.room > 0 for pool in self._pools.values()):
            self._wants_room = False
            self.wake()

    def settled(self, batch: Sequence[Pair]) -> None:
        """Outcomes were written: a lock key may be free now, and some jobs are to run again, now or soon."""
        for_others: Counter[str] = Counter()
        for attempt, outcome in batch:
            delay = outcome.delay if isinstance(outcome, Failed | Snoozed) else None
            if delay is not None:
                self._rhythm.comes_back(delay)
            if isinstance(outcome, Released | UnknownHere) or (delay is not None and self.stopping.is_set()):
                for_others[attempt.job.queue] += 1
            if attempt.job.lock_key is not None:
                self._marks.key_freed()
            if attempt.job.lock_key is not None or attempt is self._suspect:
                self.wake()
        wake_workers(self._alias, for_others)
        if self._wants_room and not self._is_behind:
            self.room_made()

    def _safe_poll(self) -> tuple[float, bool]:
        """``poll``, with an outage survived: the connection is dropped, and after a pause a new one tried."""
        try:
            reset_queries()
            self._connection.ensure()
            answer = self.poll()
            self._backoff.worked()
            self._holdings.board.looked(True)
            return answer
        except Error as error:
            connections[self._alias].close()
            self._settler.look_for_strays()
            self._holdings.board.looked(False)
            return self._backoff.failed(error), False

    def poll(self) -> tuple[float, bool]:
        """Claim once. Seconds to wait now, and whether new jobs are of interest meanwhile."""
        self._give_back_hoard()
        if self._suspect is not None and self._holdings.is_settling_in(self._suspect):
            return SHORT_STEP, False  # if it brings this process down again, nobody is beside it
        if self._rhythm.nothing_due(idle=self._idle):
            return self._rhythm.pause(), True
        self._wants_room = True  # before the look: a handler that ends right after it is heard
        limit, exclude_types, past_full = (0, [], False) if self._is_behind else self._room()
        self._wants_room = limit <= 0
        held_before = len(self._holdings)
        with self._claiming:
            if self._paused.is_set() or limit <= 0:
                return min(self._options.poll_interval, STALE), False
            self.begun += 1
            try:
                jobs = self._claim(limit, exclude_types, past_full)
            finally:
                self.ended += 1
        if jobs:
            return min(self._found(jobs, limit), self._marks.patience()), True
        if self._options.drain and not held_before and not past_full and self._marks.saw_all:
            self.drained.set()
        self._relays = True
        return min(self._rhythm.found_nothing(idle=self._idle), self._marks.patience()), True

    def _claim(self, limit: int, exclude_types: list[str], past_full: bool) -> list[ClaimedJob]:
        request = self._request(limit, exclude_types)
        sent, lapses = time.monotonic(), self._holdings.lapses
        jobs: list[ClaimedJob]
        jobs, marks = Job.objects.db_manager(self._alias).claim_and_mark(request)
        self.claimed += len(jobs)
        self._note(jobs, took := time.monotonic() - sent, past_full)
        # Past a kind that is full, jobs are left behind that have a place in a moment.
        self._marks.learn(request, jobs, [] if past_full else marks, took)
        attempts = [Attempt(job, self._worker_id, sent, lapses) for job in jobs]
        self._suspect = attempts[0] if attempts and attempts[0].job.crashes else None
        self._hand_over(attempts)
        return jobs

    def _request(self, limit: int, exclude_types: list[str]) -> ClaimRequest:
        return ClaimRequest(
            worker_id=self._worker_id,
            limit=limit,
            lease=self._options.lease,
            queues=self._options.queues,
            exclude_queues=self._options.exclude_queues,
            exclude_types=exclude_types,
            suspects=all(self._pools[kind].idle for kind in _kinds()) and self._holdings.calm,
            marks=self._marks.ahead(),
        )

    def _hand_over(self, attempts: list[Attempt]) -> None:
        """Each job to the pool of its kind; back with those nobody here knows."""
        self._holdings.add(attempts)
        by_kind: dict[bool, list[Attempt]] = {}
        for attempt in attempts:
            attempt.report = self._settler.progressed
            job_type = registry.find(attempt.job.job_type)
            if job_type is None:
                self._give_back_unknown(attempt)
            else:
                if job_type.limit is not None or attempt.job.context_text != "{}":
                    attempt.limit = job_type.limit_in(attempt.job.context_text)
                attempt.isolated = job_type.isolated
                by_kind.setdefault(job_type.is_async, []).append(attempt)
        for is_async, batch in by_kind.items():
            self._pools[is_async].put(batch)

    def _give_back_unknown(self, attempt: Attempt) -> None:
        if attempt.job.job_type not in self._unknown:
            logs.unknown_type(attempt.job, LEAVE_ALONE)
        self._unknown[attempt.job.job_type] = time.monotonic() + LEAVE_ALONE
        self._settler.put(attempt, UnknownHere(attempt.job))

    def _give_back_hoard(self) -> None:
        """Jobs that were thought short and turned out to wait."""
        for pool in self._pools.values():
            for attempt in pool.give_back_hoard():
                self._settler.put(attempt, Released(attempt.job))

    @property
    def _is_behind(self) -> bool:
        """Whether outcomes come faster than they are written: then they would be written later and later."""
        return self._settler.backlog > 2 * BATCH

    def _room(self) -> tuple[int, list[str], bool]:
        """How many jobs to claim; of which types none; and whether one kind of handler is full.

        None of those unknown here, and of those without a place.
        """
        now = time.monotonic()
        self._unknown = {name: until for name, until in self._unknown.items() if until > now}
        kinds = _kinds()
        rooms = {kind: room for kind in kinds if (room := self._pools[kind].room) > 0}
        full = kinds - rooms.keys()
        if not rooms or (full and now < self._past_full_from):
            return 0, [], bool(full)
        # What comes is of both kinds: so many that each finds a place, if they come as they lately did.
        shares = self._shares if len(kinds) > 1 else dict.fromkeys(kinds, 1.0)
        limit = min(int(room / max(shares[kind], 0.02)) for kind, room in rooms.items())
        limit = min(limit, self._holdings.room, MOST_CLAIMED)
        if self._options.max_jobs is not None:
            limit = min(limit, self._options.max_jobs - self.claimed)
        return limit, [*self._unknown, *registry.names_of(full)], bool(full)

    def _note(self, jobs: Sequence[ClaimedJob], took: float, past_full: bool) -> None:
        """Learn from a claim: how many of each kind come, and what looking past the full kind costs."""
        if past_full:
            # It may have walked over a long backlog: no more than a twentieth of the time for that.
            self._past_full_from = time.monotonic() + 20 * took
        elif jobs:
            is_async = [job_type.is_async for job in jobs if (job_type := registry.find(job.job_type))]
            share = sum(is_async) / len(is_async) if is_async else self._shares[True]
            self._shares[True] += (share - self._shares[True]) / 2
            self._shares[False] = 1 - self._shares[True]

    @property
    def _idle(self) -> bool:
        """Whether nothing here asks for another look but new jobs, and jobs that come due."""
        return not (self._options.drain or self._unknown or len(self._holdings) or self._paused.is_set())

    def _found(self, jobs: Sequence[ClaimedJob], limit: int) -> float:
        """Seconds to wait after a claim that found jobs."""
        if len(jobs) >= limit:
            if self._relays and self._turns.size != 1:
                # There may be more, and others may be as idle as this worker was.
                self._relays = False
                wake_workers(self._alias, Counter(job.queue for job in jobs))
            return self._rhythm.found(all_there_is=False)
        self._relays = True
        # One of its lock key at a time; and of many jobs, one that is due may have been passed over.
        short = not self._options.drain and all(job.lock_key is None and not job.crashes for job in jobs)
        return self._rhythm.found(all_there_is=short)

    def _seconds_to_next(self) -> float | None:
        seconds: float | None = Job.objects.db_manager(self._alias).next_due(self._request(1, []))
        return seconds


def _kinds() -> set[bool]:
    """The kinds of handlers whose places count: async (True), plain (False)."""
    return registry.kinds() or {False}
