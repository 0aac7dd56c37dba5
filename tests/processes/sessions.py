"""PostgreSQL's view of its clients: every session on the test database but this one."""

from typing import Any

from django.db import connection

_OTHERS = """
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""


def count() -> int:
    return _one(f"SELECT count(*) {_OTHERS}")


def terminate() -> int:
    """Cut all of them off; how many."""
    return _one(f"SELECT count(pg_terminate_backend(pid)) {_OTHERS}")


def are_idle() -> bool:
    """Whether there are some, and none has done anything for half a second."""
    return _one(f"SELECT bool_and(state_change < clock_timestamp() - interval '0.5 s') {_OTHERS}") is True


def _one(sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]
