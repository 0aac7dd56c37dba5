"""What every fault has: a name, where it can be injected, and when it counts."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from random import Random
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ..kinds import Kind
    from ..world import World

POSTGRESQL, SQLITE = "postgresql", "sqlite"
BOTH = (POSTGRESQL, SQLITE)


class NotInjected(Exception):
    """It could not be done this time: there was nothing to break, say. Not counted."""


class Fault(ABC):
    """Something that goes wrong. One object a run."""

    name: ClassVar[str]
    databases: ClassVar[tuple[str, ...]] = BOTH
    #: Faults of one lane happen one after the other; those of different lanes at the same time.
    lane: ClassVar[str] = "workers"
    #: May be mixed with others. Those that need a world of their own may not.
    mixes: ClassVar[bool] = True
    needs_root: ClassVar[bool] = False
    #: Mean seconds between two of it, when it is alone.
    pause: ClassVar[float] = 1.0
    #: How often it happens compared with others of its lane.
    weight: ClassVar[int] = 10

    #: Of a PostgreSQL that is made for it.
    server_settings: ClassVar[dict[str, str]] = {}
    #: Whether a job may be done twice because of it: an outcome is lost with its process, say.
    repeats: ClassVar[bool] = True
    #: When it is alone, a run goes on until it was injected so often.
    at_least: ClassVar[int] = 1

    def prepare(self, world: World) -> None:  # noqa: B027 - most need nothing
        """Change the world before the workers start."""

    @abstractmethod
    def inject(self, world: World, random: Random) -> int | None:
        """Do it once, and undo it if it is of a kind that ends. Raises ``NotInjected`` if it was not done.

        Answers with how often it was done, if that is not once.
        """

    def problems(self, world: World) -> list[str]:
        """What is wrong, besides what the checker sees. Asked at the end."""
        return []

    def kinds(self) -> tuple[Kind, ...]:
        """What is to be enqueued besides the usual."""
        return ()

    @classmethod
    def missing(cls) -> str | None:
        """Why it cannot be injected on this machine; None: it can."""
        return "it needs root" if cls.needs_root and os.geteuid() != 0 else None
