"""Starts, watches and replaces worker processes, renews their leases, and sees to the jobs they leave."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any
from uuid import UUID

import psutil
from django.db import Error, connections

from .. import logs
from ..managers.workers import WorkerFacts
from ..models import Job
from . import child
from .board import SIZE, Board
from .health import Health, Probes
from .heartbeat import Heartbeat, Renewed
from .maintenance import Departed, Maintenance
from .options import WorkerOptions
from .service import Backoff, use_own_connection
from .shutdown import TICK, Exit, StopSignals

#: A process that lived for less (seconds) died "at once"; again and again, the next waits longer.
AT_ONCE = 5.0
LONGEST_PAUSE = 30.0
#: So many in a row that ended at once, without one answer to a claim: more would not help.
MOST_IN_VAIN = 10
#: Seconds at the end for the last statements about departed processes.
LAST_WORDS = 5.0

#: Seconds that a process is given to see to a time limit itself: unless a handler holds its GIL, it does.
MARGIN = 3.0
#: Seconds within which a handler sees that its job was asked to stop.
SEEN_WITHIN = 2.0

#: Never forked: a process with threads and connections must not be copied.
_spawn = multiprocessing.get_context("spawn")


@dataclass
class Child:
    """A worker process as its supervisor knows it."""

    process: Any
    pipe: Connection
    board: Board
    started: float
    facts: WorkerFacts | None = None  # once it has said who it is
    asked: bool = False  # to stop
    leaving: bool = False  # it claims no more
    stuck: frozenset[UUID] = frozenset()  # jobs that end only with it
    overdue: bool = False  # killed, since it did not see to its time limits itself
    unwanted: bool = False  # somebody has asked this one to stop

    def is_running(self) -> bool:
        """Whether it can work: alive, and not stopped by SIGSTOP or a debugger."""
        try:
            return bool(psutil.Process(self.process.pid).status() not in _NOT_RUNNING)
        except psutil.Error:
            return False

    def ask_to_stop(self) -> None:
        """No new jobs; end when running ones have ended."""
        self.asked = True
        with contextlib.suppress(OSError):  # it has ended already
            self.pipe.send("stop")


_PLANNED = (Exit.DONE, Exit.DRAINED, Exit.RECYCLED, Exit.STUCK)
_NOT_RUNNING = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


class Supervisor:
    """The main thread of ``runworker``."""

    def __init__(
        self,
        options: WorkerOptions,
        signals: StopSignals,
        log_level: int | None = None,
        probes: Probes | None = None,
    ) -> None:
        self._options = options
        self._signals = signals
        self._log_level = log_level
        self._children: list[Child] = []
        self._heartbeat = Heartbeat(options, self._living, self._on_death)
        self._maintenance = Maintenance(options, self._on_death)
        self._probes = probes or Probes()
        self._start_from = 0.0
        self._early_deaths = 0
        self._in_vain = 0  # processes in a row that ended before they had claimed once
        self._drained = 0
        self._dismissed = 0
        self._died = False

    def run(self) -> Exit:
        """Work until a signal, until all is drained, or until it is of no use."""
        self._probes.start(Health(self._claiming))
        try:
            return self._work()
        finally:
            self._probes.close()

    def _work(self) -> Exit:
        begun = time.monotonic()
        if not self._wait_for_database():
            return Exit.DONE
        if time.monotonic() - begun > self._options.heartbeat:
            self._maintenance.hold_back()
        self._heartbeat.start()
        self._maintenance.start()
        while not self._signals.asked and not self._died and self._in_vain < MOST_IN_VAIN:
            self._start_missing()
            if not self._children and self._wanted <= 0:
                break
            self._watch(TICK)
            self._end_overdue()
        return self._stop()

    def _wait_for_database(self) -> bool:
        """Whether the database answers and has the tables, before a signal came."""
        use_own_connection(self._options.alias)
        backoff = Backoff("waiting for the database", 5.0)
        missing = 0
        while not self._signals.asked:
            self._probes.tick()
            try:
                tables = connections[self._options.alias].introspection.table_names()
                if Job._meta.db_table in tables:
                    return True
                missing += 1
                if missing & (missing - 1) == 0:  # 1st, 2nd, 4th, 8th … time
                    logs.waiting_for_tables(self._options.alias)
                pause = 2.0
            except Error as error:
                pause = backoff.failed(error)
            finally:
                connections[self._options.alias].close()
            self._signals.wait(pause)
        return False

    @property
    def _wanted(self) -> int:
        """Processes that there are to be: none in place of those that drained, or were asked to stop."""
        return self._options.processes - self._drained - self._dismissed

    def _start_missing(self) -> None:
        staying = [one for one in self._children if not one.leaving]
        wanted = self._wanted - len(staying)
        if wanted > 0 and time.monotonic() >= self._start_from:
            for _ in range(wanted):
                self._children.append(self._start_child())

    def _start_child(self) -> Child:
        memory = _spawn.RawArray("B", SIZE)
        board = Board.new(memory)
        ours, theirs = _spawn.Pipe()
        process = _spawn.Process(
            target=child.main,
            args=(self._options, memory, theirs, os.getpid(), self._log_level),
            name="jobqueue-worker",
        )
        process.start()
        theirs.close()
        return Child(process, ours, board, time.monotonic())

    def _claiming(self) -> list[Board]:
        """The boards of the processes that are to claim."""
        return [one.board for one in list(self._children) if not (one.leaving or one.asked)]

    def _watch(self, seconds: float) -> None:
        """Wait a little for what processes say, and see to those that have ended."""
        self._probes.tick()
        wait([part for one in self._children for part in (one.process.sentinel, one.pipe)], seconds)
        for one in list(self._children):
            self._hear(one)
            if one.unwanted and not one.asked:
                logs.asked_to_stop(one.process.pid)
                one.ask_to_stop()
            if one.process.exitcode is not None:
                self._children.remove(one)
                self._ended(one)

    def _end_overdue(self) -> None:
        """Kill processes that should have ended a handler and do not even try."""
        for one in self._children:
            # Those that leave do try, and their other jobs have the grace.
            if self._overdue(one, MARGIN + (self._options.grace if one.leaving else 0.0)):
                logs.overdue(one.process.pid)
                one.overdue = True
                one.process.kill()

    def _overdue(self, one: Child, more: float = 0.0) -> set[UUID]:
        """Jobs of the process that should have ended so many seconds ago, since nothing is left to try."""
        patience = self._options.interrupt_grace + more
        found = one.board.overdue(patience)
        if asked := self._heartbeat.asked:
            latest = time.monotonic() - patience - self._options.interrupt_grace - SEEN_WITHIN
            running = {job_id for job_id, _ in one.board.started()}
            found |= {job_id for job_id, since in asked.items() if since < latest and job_id in running}
        return found

    def _hear(self, one: Child) -> None:
        # It died before it could say anything, perhaps; its exit code is seen next.
        with contextlib.suppress(EOFError, OSError):
            while one.pipe.poll():
                word = one.pipe.recv()
                if isinstance(word, child.Leaving):
                    one.leaving, one.stuck = True, word.stuck
                else:
                    one.facts = word
                    logs.process_started(one.process.pid, word.id)
                    self._heartbeat.beat_now()

    def _ended(self, one: Child) -> None:
        """A process is gone: what of its jobs, and when may the next one start."""
        code = one.process.exitcode
        said = one.board.left_with(code)  # else a handler has called os._exit() with a code of ours
        planned = one.asked or one.overdue or (said and code in _PLANNED)
        logs.process_ended(one.process.pid, code, "as planned" if planned else "unexpectedly")
        self._drained += said and code == Exit.DRAINED
        self._dismissed += one.unwanted
        if one.facts is not None:
            stuck = one.stuck | self._overdue(one)
            self._maintenance.departed(
                Departed(one.facts.id, one.board.started(), lost=not planned, stuck=stuck)
            )
        one.pipe.close()
        early = not planned and time.monotonic() - one.started < AT_ONCE
        self._early_deaths = self._early_deaths + 1 if early else 0
        self._in_vain = self._in_vain + 1 if early and not one.board.had_answer else 0
        if self._early_deaths > 1:
            pause = min(0.5 * 2 ** min(self._early_deaths, 10), LONGEST_PAUSE)
            logs.process_replaced_in(pause)
            self._start_from = time.monotonic() + pause

    def _stop(self) -> Exit:
        """Grace for running jobs; then, or at a second signal, kill, and give their jobs back."""
        for one in self._children:
            one.ask_to_stop()
        logs.stopping(self._options.grace, len(self._children))
        deadline = time.monotonic() + self._options.grace
        while self._children and time.monotonic() < deadline and not self._signals.insisted:
            self._watch(TICK)
            self._end_overdue()
        forced = self._signals.insisted and bool(self._children)
        self._cut_off()
        self._maintenance.stop(LAST_WORDS)
        self._heartbeat.stop(1.0)
        if self._died:
            return Exit.FAILED
        if self._in_vain >= MOST_IN_VAIN:
            logs.in_vain(self._in_vain)
            return Exit.UNABLE
        return Exit.FORCED if forced else Exit.DONE

    def _cut_off(self) -> None:
        if self._children:
            logs.cut_off(len(self._children))
        for one in self._children:
            one.process.kill()
        while self._children:
            self._watch(TICK)

    def _living(self) -> list[Renewed]:
        """Whose leases are to be renewed: not those of a dead or stopped process."""
        return [
            Renewed(one.facts, one.board, partial(setattr, one, "unwanted", True))
            for one in list(self._children)
            if one.facts is not None and one.is_running()
        ]

    def _on_death(self, name: str) -> None:
        self._died = True
