"""How an attempt ended, as the worker hands it to ``settle``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from ..states import JobStatus
from .failures import Failure


class Held(Protocol):
    """A claimed job: what an outcome needs to know of it. ``Job`` and ``ClaimedJob`` both are one."""

    @property
    def id(self) -> UUID: ...
    @property
    def fence(self) -> int: ...
    @property
    def job_type(self) -> str: ...
    @property
    def attempts(self) -> int: ...
    @property
    def max_attempts(self) -> int: ...


@dataclass(slots=True)
class Outcome:
    """Base: which job, and how many seconds after its claim the handler started (None: never).

    ``unsure``: an earlier try to write it, or its transaction, ended without an answer from the database.
    """

    job: Held
    started: float | None = None
    unsure: bool = field(default=False, kw_only=True)

    def shows(self, status: int, last_error: str) -> bool:
        """Whether a row that nobody has claimed since shows that this was written."""
        return status == JobStatus.PENDING


@dataclass(slots=True)
class Done(Outcome):
    """It returned; ``result`` is JSON text or None."""

    result: str | None = None

    def shows(self, status: int, last_error: str) -> bool:
        """Nothing else makes a job DONE."""
        return status == JobStatus.DONE


@dataclass(slots=True, kw_only=True)
class Failed(Outcome):
    """It raised. Again after ``delay`` seconds, or never (None)."""

    failure: Failure
    delay: float | None

    def shows(self, status: int, last_error: str) -> bool:
        """Its own error; or DONE, when it is the failure of a COMMIT that went through after all."""
        return status == JobStatus.DONE or (status != JobStatus.RUNNING and last_error == self.failure.text)


@dataclass(slots=True, kw_only=True)
class Snoozed(Outcome):
    """It asked for later; not counted."""

    delay: float


@dataclass(slots=True)
class Released(Outcome):
    """Given back, not counted."""


@dataclass(slots=True)
class UnknownHere(Outcome):
    """Given back by a worker that does not know the type."""
