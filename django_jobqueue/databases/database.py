"""All that the queue says to a database, in one class; the vendors' classes derive from it."""

from __future__ import annotations

from .controlling import Controlling
from .grouping import Grouping
from .holding import Holding
from .inserting import Inserting
from .observing import Observing
from .settling import Settling


class Database(Inserting, Observing, Settling, Holding, Controlling, Grouping):
    """One method a statement. What is abstract in the parts differs between databases."""
