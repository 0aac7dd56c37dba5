"""Job ids: UUIDv7 made in Python, so that a job has its id before it is stored."""

from __future__ import annotations

import sys
from uuid import UUID

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid_utils.compat import uuid7


def new_job_id() -> UUID:
    """A UUIDv7: sorts by the time it was made, also within a millisecond of one process."""
    return uuid7()
