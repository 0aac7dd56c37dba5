"""All that the queue says to a database, in one class; the vendors' classes derive from it."""

from __future__ import annotations

from .controlling import Controlling
from .holding import Holding
from .inserting import Inserting
from .observing import Observing
from .settling import Settling


class Database(Inserting, Observing, Settling, Holding, Controlling):
    """One method a statement. What is abstract in the parts differs between databases."""
