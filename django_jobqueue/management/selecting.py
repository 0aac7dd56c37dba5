"""Which jobs are meant: the filters of the admin's list as options."""

from __future__ import annotations

import argparse
import re
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from ..databases.clock import DatabaseAgo, DatabaseNow
from ..managers import JobQuerySet
from ..models import Job, JobStatus

#: A job that has been due for longer is overdue.
OVERDUE = timedelta(minutes=1)

STATUSES = {status.name.lower(): status for status in JobStatus}
TIMES = {"created": "created_at", "due": "run_after", "ended": "finished_at"}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def add_filters(parser: ArgumentParser) -> None:
    """The options; those that are given hold together."""
    group = parser.add_argument_group("which jobs")
    add = group.add_argument
    add("ids", nargs="*", type=_id, metavar="ID", help="These jobs, by their ids.")
    add("--status", type=_statuses, help=f"In these: {', '.join(STATUSES)}; separated by commas.")
    add("--queue", help="Of this queue.")
    add("--type", help='Of this type; or, with a star at the end ("billing:*"), of all that begin so.')
    add("--worker", help="Last claimed by this worker.")
    add("--dedupe-key", help="With this dedupe key.")
    add("--with-dedupe-key", action="store_true", help="With any dedupe key.")
    add("--fingerprint", help="Whose last error has this fingerprint.")
    add("--due-now", action="store_true", help="Pending, and due.")
    add("--overdue", action="store_true", help="Pending, and due for more than a minute.")
    for name, field in TIMES.items():
        words = field.replace("_", " ")
        add(f"--{name}-after", type=_instant, metavar="TIME", help=f"Whose {words} is then or later.")
        add(f"--{name}-before", type=_instant, metavar="TIME", help=f"Whose {words} is before then.")
    add("--all", action="store_true", help="Every job: needed where no other filter is given.")


def selected(given: Mapping[str, Any], alias: str, *, required: bool = True) -> JobQuerySet:
    """The jobs that the options leave. Raises ``CommandError`` if none is given, but ``required``."""
    jobs: JobQuerySet = Job.objects.db_manager(alias).all()
    conditions = {
        "pk__in": given["ids"] or None,
        "status__in": given["status"],
        "queue": given["queue"],
        "worker_id": given["worker"],
        "dedupe_key": given["dedupe_key"],
        "dedupe_key__isnull": False if given["with_dedupe_key"] else None,
        "error_fingerprint": given["fingerprint"],
        **_of_type(given["type"]),
    }
    for name, field in TIMES.items():
        conditions[f"{field}__gte"] = given[f"{name}_after"]
        conditions[f"{field}__lt"] = given[f"{name}_before"]
    chosen = {key: value for key, value in conditions.items() if value is not None}
    if given["due_now"] or given["overdue"]:
        limit = DatabaseAgo(OVERDUE) if given["overdue"] else DatabaseNow()
        jobs = jobs.filter(status=JobStatus.PENDING, run_after__lte=limit)
    elif required and not chosen and not given["all"]:
        raise CommandError("Name the jobs by at least one filter, or say --all.")
    return jobs.filter(**chosen)


def _of_type(name: str | None) -> dict[str, str]:
    if name is None:
        return {}
    return {"job_type__startswith": name[:-1]} if name.endswith("*") else {"job_type": name}


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no id of a job.") from None


def _statuses(text: str) -> list[JobStatus]:
    names = [name.strip().lower() for name in text.split(",")]
    for name in names:
        if name not in STATUSES:
            raise argparse.ArgumentTypeError(f"{name!r} is no status. Choose from {', '.join(STATUSES)}.")
    return [STATUSES[name] for name in names]


def span(text: str) -> timedelta:
    """``90s``, ``15m``, ``2h`` or ``7d``."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no span of time. Write 90s, 15m, 2h or 7d.")
    try:
        return timedelta(**{_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than time itself.") from None


def _instant(text: str) -> datetime:
    """A date, a date with a time (in the site's zone if it names none), or a span: so long ago."""
    if _SPAN.fullmatch(text.strip()):
        return timezone.now() - span(text)
    try:
        moment = parse_datetime(text)
        if moment is None and (day := parse_date(text)) is not None:
            moment = datetime.combine(day, time.min)
    except ValueError:
        moment = None
    if moment is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time. Write 2026-05-31, 2026-05-31T18:00 or, for so long ago, 90s, 15m, 2h, 7d."
        )
    if settings.USE_TZ and timezone.is_naive(moment):
        return timezone.make_aware(moment)
    if not settings.USE_TZ and timezone.is_aware(moment):
        return timezone.make_naive(moment, timezone.get_default_timezone())
    return moment
