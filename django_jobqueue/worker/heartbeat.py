"""Leases are renewed well within their length, by worker, in one statement on a connection of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections, reset_queries

from .. import conf
from ..databases import database_for
from ..databases.waking import say_something
from ..managers.workers import WorkerFacts
from ..models import Job, Worker
from .board import Board
from .options import WorkerOptions
from .service import Backoff, Service, use_own_connection


@dataclass(frozen=True)
class Renewed:
    """A worker whose leases are to be renewed: what people see of it, its notes, and how to stop it."""

    facts: WorkerFacts
    board: Board
    ask_to_stop: Callable[[], None]


class Heartbeat(Service):
    """Runs in the supervisor, where no handler holds the GIL; in a thread only for an embedded worker."""

    def __init__(
        self, options: WorkerOptions, living: Callable[[], Sequence[Renewed]], on_death: Callable[[str], None]
    ) -> None:
        super().__init__("heartbeat", on_death)
        self._options = options
        self._living = living
        self.asked: dict[UUID, float] = {}  # jobs that were asked to stop: when that was first seen here
        self._backoff = Backoff("renewing leases", options.heartbeat / 4)
        self._hurry = threading.Event()

    def beat_now(self) -> None:
        """Do not wait for the next beat: a worker has come, and people are to see it."""
        self._hurry.set()

    def ask_to_stop(self) -> None:
        """End; do not wait."""
        super().ask_to_stop()
        self._hurry.set()

    def run(self) -> None:
        """Beat until stopped; an outage is survived, with pauses shorter than a beat."""
        use_own_connection(self._options.alias)
        while not self.stopping.is_set():
            begun = time.monotonic()
            self._hurry.clear()
            pause = self._safe_beat()
            if not self.stopping.is_set():
                self._hurry.wait(max(pause - (time.monotonic() - begun), 0.01))

    def _safe_beat(self) -> float:
        try:
            reset_queries()
            self.beat()
            self._backoff.worked()
            return self._options.heartbeat
        except (DatabaseError, InterfaceError) as error:
            connections[self._options.alias].close()
            return self._backoff.failed(error)

    def beat(self) -> None:
        """Renew for every worker that lives, and say that they are there."""
        living = list(self._living())
        if not living:
            return
        started: list[tuple[UUID, float]] = []
        for one in living:
            started += one.board.started()
        alias, lease = self._options.alias, self._options.lease
        sent = time.monotonic()
        renewal = Job.objects.db_manager(alias).renew_lease(
            worker_ids=[one.facts.id for one in living], lease=lease, started=started
        )
        answered = time.monotonic()
        asked = set().union(*renewal.to_cancel.values())
        self.asked = {one: self.asked.get(one, answered) for one in asked}
        for one in living:
            one.board.renewed(sent, answered, lease)
        workers = Worker.objects.db_manager(alias)
        known = workers.beat_again({one.facts.id: one.board.loop_due_in() for one in living})
        if len(known) < len(living):
            workers.beat([one.facts for one in living])
        for one in living:
            if known.get(one.facts.id):
                one.ask_to_stop()
        if database_for(alias).notifies and conf.current().LISTEN:
            self._tell_ranks(living)

    def _tell_ranks(self, living: Sequence[Renewed]) -> None:
        """Each worker learns its place among those of the same queues, and that it hears what is said."""
        alias = self._options.alias
        crowds: dict[frozenset[str] | None, list[str]] = {}
        for worker_id, queues in Worker.objects.db_manager(alias).living(self._options.lease / 2):
            crowds.setdefault(_key(queues), []).append(worker_id)
        for one in living:
            crowd = crowds.get(_key(one.facts.queues), [])
            if one.facts.id in crowd:
                one.board.placed(crowd.index(one.facts.id), len(crowd))
        say_something(alias)


def _key(queues: Sequence[str] | None) -> frozenset[str] | None:
    return None if queues is None else frozenset(queues)
