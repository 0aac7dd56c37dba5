"""Read-only figures for the dashboard and the commands, each by an index and up to a bound.

``figures`` says what there is, ``history`` is what workers counted minute by minute, ``present`` is what the
tables say now, and ``alerts`` is what somebody should look at.
"""

from .alerts import CODES, Alert, alerts_of
from .figures import Count, Overview, Point, QueueFigures, RunningJob, Times, WorkerFigures
from .history import PERIODS, History, Period, look_back
from .present import CAP, look
from .spans import span_text

__all__ = [
    "CAP",
    "CODES",
    "PERIODS",
    "Alert",
    "Count",
    "History",
    "Overview",
    "Period",
    "Point",
    "QueueFigures",
    "RunningJob",
    "Times",
    "WorkerFigures",
    "alerts_of",
    "look",
    "look_back",
    "span_text",
]
