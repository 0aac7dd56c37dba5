"""``enqueue``: a row inside the caller's transaction, at most one active per dedupe key."""

from __future__ import annotations

import copy
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models.base import ModelState

from .. import context, logs, signals
from ..databases.base import Row
from ..databases.clock import from_database
from ..databases.inserting import NewJob
from ..databases.waking import wake_workers
from ..exceptions import DuplicateJob, EnqueueContended, InvalidOption
from ..payloads import decode
from .base import open_transaction_elsewhere
from .deduping import DedupeMoves
from .preparing import Blueprint, EnqueueOptions, known_options, prepare

if TYPE_CHECKING:
    from ..models import Job

#: Jobs in one INSERT of ``enqueue_many``.
CHUNK = 1_000
#: Characters of payload in one INSERT.
CHUNK_SIZE = 16_000_000
#: How often an insert is tried while the holder of its dedupe key keeps ending just then.
TRIES = 3


class EnqueueMoves(DedupeMoves):
    """The moves that make jobs."""

    def enqueue(
        self, job_type: str, payload: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job:
        """Make a job and return it.

        ``payload`` is a JSON object, the keyword arguments of the handler. Options, each None by default
        for what the type says: ``run_after`` (aware datetime or timedelta; now), ``priority`` (-100 … 100,
        higher first; 0), ``max_attempts`` (starts; 3), ``queue`` ("default"), ``dedupe_key``,
        ``dedupe`` ("return", "raise", "replace" or a ``Dedupe``), ``lock_key``, ``expires_at`` (aware
        datetime or timedelta: not started by then, the job is CANCELLED).

        If an active job has the dedupe key, ``dedupe`` says what happens: by default that one is
        returned, with ``created`` False, and ``"raise"`` raises ``DuplicateJob``. The row is
        written in the caller's transaction; with the queue on another database, it is written when the
        open transaction there commits, and ``created`` is None. While another open transaction has
        enqueued the same dedupe key, the call waits for it to end (PostgreSQL; SQLite has one writer).

        Raises ``InvalidPayload``, ``UnknownJobType``, ``UnknownQueue`` or ``InvalidOption`` before
        anything is stored.
        """
        new = prepare(job_type, payload, known_options(options), context.capture(job_type))
        return self._enqueue_or_wait([new])[0]

    def enqueue_many(
        self,
        jobs: Iterable[tuple[str, Mapping[str, Any]] | Mapping[str, Any]],
        **options: Unpack[EnqueueOptions],
    ) -> list[Job]:
        """Make many jobs; the list that comes back is in the order given.

        Each is ``(job_type, payload)`` or a dict of ``enqueue``'s arguments; ``options`` hold for all that
        do not say otherwise. Dedupe keys are honoured row by row, also within the list. All or none are
        stored; 1,000 go into one statement, but a job whose policy is neither "return" nor "raise" has one of
        its own, and then so has every other with a key.
        """
        return self._enqueue_or_wait(_prepared(jobs, known_options(options)))

    def enqueue_as(self, blueprint: Blueprint, payloads: Iterable[Mapping[str, Any]]) -> list[Job]:
        """Make the jobs that a blueprint describes, one for each payload and in their order.

        For faces of the queue with types of their own; ``enqueue`` and ``enqueue_many`` are for everybody.
        """
        return self._enqueue_or_wait([blueprint.job(payload) for payload in payloads])

    async def aenqueue(
        self, job_type: str, payload: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job:
        """``enqueue`` for async code."""
        return await sync_to_async(self.enqueue)(job_type, payload, **options)

    async def aenqueue_many(
        self,
        jobs: Iterable[tuple[str, Mapping[str, Any]] | Mapping[str, Any]],
        **options: Unpack[EnqueueOptions],
    ) -> list[Job]:
        """``enqueue_many`` for async code."""
        return await sync_to_async(self.enqueue_many)(jobs, **options)

    def _enqueue_or_wait(self, new: Sequence[NewJob]) -> list[Job]:
        """Store the jobs now, or when the open transaction of another database commits."""
        elsewhere = open_transaction_elsewhere(self.db)
        if elsewhere is None:
            return self._enqueue(new)
        if any(one.dedupe.policy == "raise" and one.dedupe_key is not None for one in new):
            raise InvalidOption(
                f'dedupe="raise": the queue is on the database {self.db!r}, so whether the key is free is '
                f"known only when the open transaction on {elsewhere!r} has committed. Enqueue outside of "
                "it, or use another policy."
            )
        transaction.on_commit(lambda: self._enqueue(new), using=elsewhere)
        return self._instances((one, None) for one in new)

    def _enqueue(self, new: Sequence[NewJob]) -> list[Job]:
        if len(new) == 1:
            return self._told([self._insert_one(new[0])])
        with transaction.atomic(using=self.db):
            jobs = self._insert_all(new)
        return self._told(jobs)

    def _told(self, jobs: list[Job]) -> list[Job]:
        """Tell receivers, workers and the log of the jobs that were made."""
        made = [job for job in jobs if job.created]
        if signals.has_listeners(signals.job_enqueued, self.model):
            for job in made:
                signals.announce(signals.job_enqueued, self.model, job)
        wake_workers(self.db, Counter(job.queue for job in made))
        logs.enqueued(jobs)
        return jobs

    def _insert_one(self, new: NewJob) -> Job:
        for _ in range(TRIES):
            row = self._database.insert(self._connection, new)
            if row is not None:
                return self._instances([(new, row)])[0]
            holder = self._in_place_of(new)
            if holder is not None:
                return holder
        raise EnqueueContended(str(new.dedupe_key))

    def _insert_all(self, new: Sequence[NewJob]) -> list[Job]:
        pending = new
        if any(one.dedupe_key is not None for one in new):
            # By key: two lists with the same keys in different orders would deadlock.
            pending = sorted(new, key=lambda one: (one.dedupe_key or "", one.id))
        jobs: dict[int, Job] = {}  # by the number of the id: a UUID works out its hash in Python each time
        if not all(one.dedupe.is_plain for one in new):
            keyed = [one for one in pending if one.dedupe_key is not None]
            pending = [one for one in pending if one.dedupe_key is None]
            jobs.update((one.id.int, self._insert_one(one)) for one in keyed)
        for _ in range(TRIES):
            left: list[NewJob] = []
            for chunk in _chunks(pending):
                left += self._insert_chunk(chunk, jobs)
            if not left:
                return [jobs[one.id.int] for one in new]
            pending = left
        raise EnqueueContended(str(pending[0].dedupe_key))

    def _insert_chunk(self, chunk: Sequence[NewJob], jobs: dict[int, Job]) -> list[NewJob]:
        """Insert a chunk and put its jobs into ``jobs``; returns those neither made nor found."""
        made = self._database.insert_many(self._connection, chunk)
        alias, model = self.db, self.model
        missing = []
        for one in chunk:
            number = one.id.int
            if row := made.get(number):
                jobs[number] = _instance(model, alias, one, row)
            else:
                missing.append(one)
        if not missing:
            return []
        left = []
        holders = self._holders([one.dedupe_key for one in missing])
        for one in missing:
            if one.dedupe_key in holders:
                jobs[one.id.int] = job = copy.copy(holders[one.dedupe_key])
                job.created = job.id == one.id
                if not job.created and one.dedupe.policy == "raise":
                    raise DuplicateJob(job)
            else:
                left.append(one)
        return left

    def _instances(self, rows: Iterable[tuple[NewJob, Row | None]]) -> list[Job]:
        """The jobs as model instances, without asking the database again."""
        alias = self.db
        return [_instance(self.model, alias, new, row) for new, row in rows]


def _instance(model: type[Job], alias: str, new: NewJob, row: Row | None) -> Job:
    """What ``model(…)`` makes; that takes longer than the database takes to store the row.

    No ``row``: it is not yet stored.
    """
    run_after, expires_at, created_at = row or (
        from_database(new.run_at),
        from_database(new.expires_at),
        None,
    )
    state = ModelState()
    state.adding, state.db = False, alias
    job = model.__new__(model)
    job.__dict__ = {
        **_defaults(model),
        "_state": state,
        "id": new.id,
        "job_type": new.job_type,
        "queue": new.queue,
        "priority": new.priority,
        "payload": decode(new.payload),
        "context": {} if new.context == "{}" else decode(new.context),
        "errors": [],
        "dedupe_key": new.dedupe_key,
        "lock_key": new.lock_key,
        "max_attempts": new.max_attempts,
        "run_after": run_after,
        "expires_at": expires_at,
        "created_at": created_at,
        "updated_at": created_at,
        "created": None if row is None else True,
    }
    return job


@functools.cache
def _defaults(model: type[Job]) -> dict[str, Any]:
    """The attributes of a new instance."""
    return model().__dict__


def _chunks(new: Sequence[NewJob]) -> Iterator[list[NewJob]]:
    """Up to a thousand jobs, or fewer large ones, at a time."""
    chunk: list[NewJob] = []
    size = 0
    for one in new:
        chunk.append(one)
        size += len(one.payload)
        if len(chunk) >= CHUNK or size > CHUNK_SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _prepared(
    jobs: Iterable[tuple[str, Mapping[str, Any]] | Mapping[str, Any]], common: EnqueueOptions
) -> list[NewJob]:
    """Every item of ``enqueue_many``, checked; what many have in common is checked once."""
    contexts = functools.cache(context.capture)  # asked for once a type in this call
    blueprints: dict[str, Blueprint] = {}
    new = []
    for one in jobs:
        if isinstance(one, tuple) and len(one) == 2:
            job_type, payload = one
            blueprint = blueprints.get(job_type) if isinstance(job_type, str) else None
            if blueprint is None:
                blueprint = blueprints[job_type] = Blueprint(job_type, common, contexts(str(job_type)))
            new.append(blueprint.job(payload))
        elif isinstance(one, Mapping) and "job_type" in one:
            options = {**common, **one}
            job_type, payload = options.pop("job_type"), options.pop("payload", None)
            new.append(prepare(job_type, payload, known_options(options), contexts(str(job_type))))  # type: ignore[arg-type]
        else:
            raise InvalidOption(
                f"enqueue_many() was given {one!r:.300}: each job is (job_type, payload) or a dict of "
                'enqueue()\'s arguments, {"job_type": …, "payload": …, "priority": …}.'
            )
    return new
