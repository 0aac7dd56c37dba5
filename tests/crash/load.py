"""What is enqueued while things break, each call with its fate, so that the checker knows what must be."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from django.db import Error, connections, transaction

from django_jobqueue.models import Job

from .kinds import MANY, Kind
from .ledger import note
from .table import connected

TABLE = Job._meta.db_table
#: Above so many jobs that wait, the load pauses: a run has to come to its end.
BACKLOG = 400


class RolledBack(Exception):
    """Raised to roll a transaction back."""


class Load(threading.Thread):
    """Enqueues until stopped, by a plan that follows from the seed."""

    def __init__(self, url: str, seed: str, kinds: Sequence[Kind], pause: float) -> None:
        super().__init__(name="load", daemon=True)
        self._url = url
        self._random = Random(f"load {seed}")  # noqa: S311 - a plan, not a secret
        self._kinds = kinds
        self._pause = pause
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Transactions of a few jobs, one after the other."""
        try:
            while not self._stopping.is_set():
                kind = self._random.choices(self._kinds, [kind.weight for kind in self._kinds])[0]
                self.put(
                    [kind] * self._random.choice((1, 1, 1, 2, 10)), roll_back=self._random.random() < 0.1
                )
                self.put([Kind("crash:work", 1, options={"queue": "fifo"})])
                self._stopping.wait(self._random.expovariate(1 / self._pause))
                while self._is_behind():
                    self._stopping.wait(0.3)
        except BaseException as error:
            self.failure = error
        finally:
            connections.close_all()

    def stop(self) -> None:
        """After the transaction at hand."""
        self._stopping.set()
        self.join()
        if self.failure is not None:
            raise self.failure

    def put(self, kinds: Sequence[Kind], *, roll_back: bool = False) -> list[int]:
        """Enqueue jobs in one transaction; answers with their numbers."""
        with self._lock:
            numbers = [next(self._numbers) for _ in kinds]
        jobs = list(zip(numbers, kinds, strict=True))
        with self._noted(jobs) as fate, transaction.atomic():
            for n, kind in jobs:
                Job.objects.enqueue(
                    kind.type, self._payload(n, kind), **{"max_attempts": MANY, **kind.options}
                )
            if roll_back:
                fate[0] = "rolled back"
                raise RolledBack
        return numbers

    @contextmanager
    def _noted(self, jobs: list[tuple[int, Kind]]) -> Iterator[list[str]]:
        """Note the fate when it is known: a statement or a COMMIT that failed may have been carried out."""
        fate = ["unknown"]
        try:
            yield fate
            fate[0] = "committed"
        except RolledBack:
            pass
        except Error:
            connections["default"].close()
            self._stopping.wait(0.2)
        finally:
            for n, kind in jobs:
                queue = kind.options.get("queue", "default")
                note("enqueue", n=n, fate=fate[0], expected=kind.expected, queue=queue, type=kind.type)

    def _payload(self, n: int, kind: Kind) -> dict[str, Any]:
        payload = {"n": n, **kind.payload}
        if "seconds" in payload and kind.type in {"crash:work", "crash:async"}:
            payload["seconds"] = round(self._random.uniform(0, 2 * payload["seconds"]), 3)
        return payload

    def _is_behind(self) -> bool:
        if self._stopping.is_set():
            return False
        try:
            with connected(self._url) as connection:
                count = connection.execute(
                    f"SELECT count(*) FROM (SELECT 1 FROM {TABLE} WHERE status = 1 LIMIT {BACKLOG}) AS j"
                ).fetchone()[0]
        except Exception:  # broken at the moment, which is what this is about
            return False
        return bool(count >= BACKLOG)
