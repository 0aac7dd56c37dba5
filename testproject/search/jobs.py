"""``search``: what was explored, found again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django_jobqueue import DeadJob, job

from .index import find

LIMIT_MAX = 100


# Somebody waits for the answer: before all other work. A failed search is repeated by who wants it.
@job("search", queue="search", priority=50, max_attempts=2)
def search(query: str, limit: int = 10) -> dict[str, Any]:
    """Hits with rank and excerpt, the best first."""
    if not isinstance(query, str):
        raise DeadJob(f"query={query!r} must be text.")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIMIT_MAX:
        raise DeadJob(f"limit={limit!r} must be a whole number from 1 to {LIMIT_MAX}.")
    return {"query": query, "hits": [asdict(hit) for hit in find(query, limit)]}
