"""One attempt of a job, as the process that has claimed it sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import interrupts, registry
from .exceptions import JobTimeout
from .handlers import JobContext
from .managers.claim import ClaimedJob
from .payloads import clean_text

#: Characters of a progress note that are kept.
NOTE_LIMIT = 1_000


class Attempt:
    """A claimed job while this process has it. Times are of the monotonic clock."""

    __slots__ = (
        "cancelled",
        "claimed",
        "ended",
        "interruption",
        "isolated",
        "job",
        "lapses",
        "limit",
        "lost",
        "note",
        "on_settled",
        "progress",
        "ran",
        "report",
        "runner",
        "slot",
        "started",
        "worker_id",
    )

    def __init__(self, job: ClaimedJob, worker_id: str, claimed: float, lapses: int = 0) -> None:
        self.job = job
        self.worker_id = worker_id
        self.claimed = claimed  # just before the claim was sent
        self.lapses = lapses  # how often leases had lapsed by then, or when the table last said it is held
        self.started: float | None = None
        self.ended = False  # its outcome is on the way to the table
        self.ran = 0.0  # seconds; known when it has ended
        self.cancelled = False  # somebody asked it to stop
        self.lost = False  # somebody else has it, or a person ended it
        self.limit: float | None = None  # seconds that the handler may run
        self.isolated = False  # runs in a process of its own
        self.runner: Any = None  # exactly while the handler runs: see interrupts
        self.interruption: interrupts.Interruption | None = None
        self.progress: float | None = None
        self.note = ""
        self.report: Callable[[Attempt], None] | None = None  # called when progress changed
        self.on_settled: Callable[[], None] | None = None  # called when its outcome is written, or it is lost
        self.slot = -1  # where the process keeps note of its start

    def since_claim(self) -> float | None:
        """Seconds from claim to start."""
        return None if self.started is None else self.started - self.claimed

    def context(self) -> JobContext:
        """What the handler sees."""
        return JobContext(self.job, self.progressed, self.is_to_end)

    def is_to_end(self) -> bool:
        """Whether the handler is to come to an end: asked, out of time, or for somebody else's job."""
        return self.cancelled or self.lost or self.interruption is not None

    def progressed(self, progress: float | None, note: str) -> None:
        """The handler reports."""
        self.progress, self.note = progress, clean_text(str(note), NOTE_LIMIT)
        if self.report is not None:
            self.report(self)

    def out_of_time(self) -> JobTimeout:
        """Why the handler is interrupted when its time is over."""
        job_type = registry.find(self.job.job_type)
        kind = JobTimeout if job_type is None else job_type.timeout_error
        return kind.after(self.limit)
