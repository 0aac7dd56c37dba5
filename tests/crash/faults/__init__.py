"""Every fault of the suite, by kind. A fault is a small class; see ``base.Fault``."""

from . import clocks, files, handlers, network, pooler, processes, servers, sessions, standby, versions
from .base import Fault

ALL: tuple[type[Fault], ...] = (
    *processes.ALL,
    *servers.ALL,
    *sessions.ALL,
    *network.ALL,
    *handlers.ALL,
    *clocks.ALL,
    *versions.ALL,
    *pooler.ALL,
    *standby.ALL,
    *files.ALL,
)

#: A fault alone is named by its class on the command line.
BY_NAME = {fault.__name__: fault for fault in ALL}
