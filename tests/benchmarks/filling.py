"""Rows by the hundred thousand, written by the database itself: what a queue holds after some weeks."""

from __future__ import annotations

from typing import Any

from django.db import NotSupportedError, connection, models
from django.db.models import NOT_PROVIDED

#: What a row of each kind holds besides what all need: column -> SQL. {past} and {future} are instants.
KINDS: dict[str, dict[str, str]] = {
    "done": {
        "status": "3",
        "attempts": "1",
        "fence": "1",
        "worker_id": "'filled'",
        "run_after": "{past}",
        "claimed_at": "{past}",
        "run_started_at": "{past}",
        "finished_at": "{past}",
    },
    # Every second one stands before the due jobs: it has a higher priority.
    "scheduled": {"status": "1", "priority": "(i % 2) * 10", "run_after": "{future}"},
    "pending": {"status": "1", "run_after": "{past}"},
}

#: What a site's table holds after some weeks, in thousandths: kind -> (share, what its rows hold besides).
SITE: dict[str, tuple[int, dict[str, str]]] = {
    "done": (900, KINDS["done"]),
    "scheduled": (60, KINDS["scheduled"]),
    "due": (30, KINDS["pending"]),
    # Of 40 kinds: a type and an error of each.
    "dead": (
        10,
        {
            **KINDS["done"],
            "status": "4",
            "attempts": "3",
            "job_type": "'bench:kind-' || (i % 40)",
            "error_fingerprint": "'ValueError bench.kinds:' || (i % 40)",
            "last_error": "'ValueError: no'",
        },
    ),
}

_POSTGRESQL = {
    "series": "generate_series(1, {rows}) AS series(i)",
    # In the order of its making, as UUIDv7 are; {number} keeps the kinds apart.
    "id": "(lpad(to_hex(i), 11, '0') || '{number}' || left(md5(i::text), 20))::uuid",
    "now": "statement_timestamp()",
    "past": "statement_timestamp() - i * interval '10 milliseconds' - interval '1 minute'",
    "future": "statement_timestamp() + i * interval '10 milliseconds' + interval '1 day'",
}
_SQLITE = {
    "series": "(WITH RECURSIVE series(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < {rows}) "
    "SELECT i FROM series)",
    "id": "printf('%011x', i) || '{number}' || lower(hex(randomblob(10)))",
    "now": "strftime('%Y-%m-%d %H:%M:%f000', 'now')",
    "past": "strftime('%Y-%m-%d %H:%M:%f000', 'now', (-60 - i / 100.0) || ' seconds')",
    "future": "strftime('%Y-%m-%d %H:%M:%f000', 'now', (86400 + i / 100.0) || ' seconds')",
}
_BY_VENDOR = {"postgresql": _POSTGRESQL, "sqlite": _SQLITE}


def fill_site(jobs: int) -> None:
    """So many jobs in all, of each kind its share."""
    for number, (share, holds) in enumerate(SITE.values()):
        fill_with(holds, jobs * share // 1_000, number)


def fill_with(holds: dict[str, str], rows: int, number: int) -> None:
    """So many jobs that hold this; ``number`` is the kind's own digit in their ids."""
    from django_jobqueue.models import Job

    if connection.vendor not in _BY_VENDOR:
        raise NotSupportedError(f"Rows for {connection.vendor} are not written down here.")
    words = _BY_VENDOR[connection.vendor]
    given = needed(Job) | {column: sql.format(**words) for column, sql in holds.items()}
    given["id"] = words["id"].format(number=number)
    statement = (
        f"INSERT INTO {Job._meta.db_table} ({', '.join(given)}) "
        f"SELECT {', '.join(given.values())} FROM {words['series'].format(rows=rows)}"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)


def needed(model: type[models.Model]) -> dict[str, str]:
    """SQL for each column that takes no null and has no default in the database."""
    return {
        field.column: plain(field)
        for field in model._meta.concrete_fields
        if not field.null and not field.primary_key and field.db_default is NOT_PROVIDED
    }


def plain(field: Any) -> str:
    """SQL for the value that a new job would have there."""
    kind = field.get_internal_type()
    if kind == "InstantField":
        return _BY_VENDOR[connection.vendor]["now"]
    if kind == "JSONField":
        return "'[]'" if field.get_default() == [] else "'{}'"
    if not field.has_default():
        return "'bench:nothing'"
    value = field.get_default()
    return str(value) if isinstance(value, int | float) else f"'{value}'"
