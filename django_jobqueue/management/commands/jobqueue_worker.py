"""``manage.py jobqueue_worker``: the same command under a name that no other app has."""

from __future__ import annotations

from .runworker import Command

__all__ = ["Command"]
