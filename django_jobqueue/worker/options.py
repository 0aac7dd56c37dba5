"""What a worker is asked to do: checked once, here, for the command and for code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import conf, registry
from ..exceptions import InvalidOption, UnknownQueue
from ..managers.base import queue_alias


def _setting(name: str) -> Any:
    return field(default_factory=lambda: getattr(conf.current(), name))


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Options of ``Worker`` and ``runworker``. What is left out comes from ``settings.JOBQUEUE``.

    Raises ``InvalidOption`` for a value out of range, ``UnknownQueue`` for a queue that is not declared.
    """

    queues: Sequence[str] | None = None  # None: all
    exclude_queues: Sequence[str] = ()
    processes: int = _setting("PROCESSES")
    threads: int = _setting("THREADS")
    async_concurrency: int = _setting("ASYNC_CONCURRENCY")
    lease: float = _setting("LEASE")  # seconds
    poll_interval: float = _setting("POLL_INTERVAL")  # seconds
    grace: float = _setting("GRACE")  # seconds
    interrupt_grace: float = _setting("INTERRUPT_GRACE")  # seconds between asking, forcing and replacing
    durable_outcomes: bool = _setting("DURABLE_OUTCOMES")  # written before the next job of that place starts
    drain: bool = False  # leave when nothing is due
    max_jobs: int | None = None  # a process is replaced after so many
    max_memory: int | None = None  # MiB; a process is replaced when it has more
    health_address: str | None = None  # HOST:PORT that answers /live and /ready
    health_file: str | None = None  # path of a file that tells the same
    database: str | None = None  # alias; None: the queue's

    def __post_init__(self) -> None:
        if found := self._range_problems():
            raise InvalidOption(" ".join(found))
        self._check_queues("queues", self.queues)
        self._check_queues("exclude_queues", self.exclude_queues)

    @property
    def heartbeat(self) -> float:
        """Seconds between two renewals: four fit into a lease, so three may fail."""
        return self.lease / 4

    @property
    def alias(self) -> str:
        """The queue's database."""
        if self.database is not None:
            return self.database
        from ..models import Job

        return queue_alias(Job)

    @property
    def capacity(self) -> int:
        """Handlers at once in one process, of the kinds that are registered."""
        width = {False: self.threads, True: self.async_concurrency}
        return sum(width[kind] for kind in registry.kinds())

    def _range_problems(self) -> list[str]:
        given = {name: getattr(self, name) for name in _RANGES}
        return [
            problem
            for name, value in given.items()
            if value is not None or name.upper() in conf.RANGES
            for problem in conf.range_problem(name, value, *_RANGES[name])
        ]

    def _check_queues(self, name: str, queues: Sequence[str] | None) -> None:
        if queues is None:
            return
        if isinstance(queues, str) or (name == "queues" and not queues):
            raise InvalidOption(f"{name}={queues!r} must be a list of at least one queue name.")
        declared = conf.current().QUEUES
        for queue in queues:
            if declared is not None and queue not in declared:
                raise UnknownQueue(queue, declared)


#: The settings that the options of the same name stand for have the same range.
_RANGES = {
    **{
        name: conf.RANGES[name.upper()]
        for name in WorkerOptions.__dataclass_fields__
        if name.upper() in conf.RANGES
    },
    "max_jobs": (1, 1_000_000_000, "jobs"),
    "max_memory": (16, 1_048_576, "MiB"),
}
