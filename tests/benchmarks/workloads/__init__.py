"""Every workload, in the order in which they run."""

from ..bench import Workload
from ..options import WORKLOADS as NAMES
from . import growth, throughput, waiting

_ALL = {one.name: one for module in (throughput, waiting, growth) for one in module.WORKLOADS}

WORKLOADS: list[Workload] = [_ALL[name] for name in NAMES]
