"""``manage.py jobqueue``: look at the queue and act on it, without a browser."""

from __future__ import annotations

import argparse
import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from ...exceptions import JobQueueError
from ...managers import JobQuerySet, Report
from ...managers.base import queue_alias
from ...models import Job, Queue
from ...statistics import PERIODS, Alert, Overview, alerts_of, look, look_back
from ..selecting import add_filters, selected, span
from ..status import as_json, as_text, condition
from ..top import show

#: Exit code of ``status`` when a condition of ``--fail-if`` holds; 1 and 2 are Django's, for errors.
FAILED_IF = 3


class Command(BaseCommand):
    """One subcommand each."""

    help = "Shows where the queue stands, and retries, cancels, pauses, resumes and prunes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The subcommands and their options."""
        commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")

        def add(name: str, text: str) -> ArgumentParser:
            made: ArgumentParser = commands.add_parser(name, help=text, description=text)
            made.add_argument(
                "--database", help="Alias of the queue's database. Default: as the site uses it."
            )
            return made

        self._add_views(add)
        for name, text in (
            ("retry", "Run dead and cancelled jobs again, now and with all their attempts."),
            ("cancel", "Cancel pending jobs, and ask running ones to stop."),
            ("prune", "Remove finished jobs; without options, those older than the retention."),
        ):
            move = add(name, text)
            add_filters(move)
            if name != "prune":  # how old is old differs there by status and queue
                move.add_argument("--dry-run", action="store_true", help="Only say how many jobs are meant.")
            if name == "retry":
                move.add_argument("--rate", type=_rate, metavar="N", help="At most so many jobs a second.")
            if name == "prune":
                move.add_argument(
                    "--older-than", type=span, metavar="SPAN", help="Ended so long ago: 90s, 15m, 2h, 7d."
                )
        for name, text in (
            ("pause", "Claim no more jobs of these queues; running ones end."),
            ("resume", "Claim jobs of these queues again."),
        ):
            add(name, text).add_argument("queues", nargs="+", metavar="QUEUE", help="Their names.")

    def _add_views(self, add: Callable[[str, str], ArgumentParser]) -> None:
        status = add("status", "Show queues, workers, and what somebody should look at.")
        status.add_argument("--json", action="store_true", help="As JSON.")
        status.add_argument(
            "--fail-if",
            action="append",
            default=[],
            type=condition,
            metavar="CONDITION",
            help=f"Exit with {FAILED_IF} if it holds; may be given several times: any, the code of an alert "
            "(late, no-worker …), or a comparison: 'due>1000', 'oldest>60', 'dead>0', 'workers<1'.",
        )
        top = add("top", "The same again and again, until Ctrl-C. Needs rich.")
        top.add_argument("--interval", type=_interval, default=2.0, help="Seconds between two looks (2).")
        top.add_argument("--once", action="store_true", help="Print it once.")
        for view in (status, top):
            view.add_argument("--queue", help="Only this queue.")
            view.add_argument(
                "--period", choices=list(PERIODS), default="hour", help="Of rates and times (hour)."
            )

    def handle(self, *args: Any, **given: Any) -> None:
        """Do what the subcommand says."""
        alias = given["database"] or queue_alias(Job)
        if alias not in settings.DATABASES:
            raise CommandError(
                f"--database {alias}: not one of the aliases in DATABASES ({', '.join(settings.DATABASES)})."
            )
        try:
            getattr(self, f"_{given['subcommand']}")(alias, given)
        except JobQueueError as error:
            raise CommandError(str(error)) from error

    def _look(self, alias: str, given: dict[str, Any]) -> tuple[Overview, Sequence[Alert]]:
        overview = look(look_back(PERIODS[given["period"]], alias), alias)
        if (name := given["queue"]) is not None:
            overview.queues = [queue for queue in overview.queues if queue.name == name]
            if not overview.queues:
                raise CommandError(
                    f"--queue {name}: there is no such queue, and never was a job in it of late."
                )
        return overview, alerts_of(overview, alias)

    def _status(self, alias: str, given: dict[str, Any]) -> None:
        overview, alerts = self._look(alias, given)
        held = [one.text for one in given["fail_if"] if one.holds(overview, alerts)]
        if given["json"]:
            answer = {**as_json(overview, alerts), "failed_if": held}
            self.stdout.write(json.dumps(answer, indent=2))
        else:
            self.stdout.write(as_text(overview, alerts))
        if held:
            self.stderr.write(f"Failed: {', '.join(held)}")
            sys.exit(FAILED_IF)

    def _top(self, alias: str, given: dict[str, Any]) -> None:
        connection = connections[alias]
        show(lambda: self._look(alias, given), connection.close, given["interval"], once=given["once"])

    def _retry(self, alias: str, given: dict[str, Any]) -> None:
        jobs = selected(given, alias)
        if given["dry_run"]:
            self._count(jobs)
        elif given["rate"] is None:
            self._tell(jobs.retry())
        else:
            self._tell(self._retry_slowly(jobs, alias, given["rate"]))

    def _retry_slowly(self, jobs: JobQuerySet, alias: str, rate: int) -> Report:
        """A second's worth at a time; those that were selected when their turn came."""
        total = Report()
        for ids in _chunks(jobs, rate):
            begun = time.monotonic()
            report = Job.objects.db_manager(alias).filter(pk__in=ids).retry()
            total.done += report.done
            total.refused += report.refused
            if len(ids) == rate:
                time.sleep(max(1 - (time.monotonic() - begun), 0))
        return total

    def _cancel(self, alias: str, given: dict[str, Any]) -> None:
        jobs = selected(given, alias)
        if given["dry_run"]:
            self._count(jobs)
        else:
            self._tell(jobs.cancel(reason="cancelled by manage.py jobqueue cancel"))

    def _prune(self, alias: str, given: dict[str, Any]) -> None:
        jobs = selected(given, alias, required=False)
        self.stdout.write(f"{jobs.prune(given['older_than'])} removed")

    def _pause(self, alias: str, given: dict[str, Any]) -> None:
        for name in given["queues"]:
            Queue.objects.db_manager(alias).pause(name)
            self.stdout.write(f"{name} is paused")

    def _resume(self, alias: str, given: dict[str, Any]) -> None:
        for name in given["queues"]:
            Queue.objects.db_manager(alias).resume(name)
            self.stdout.write(f"{name} is resumed")

    def _count(self, jobs: JobQuerySet) -> None:
        self.stdout.write(f"{jobs.order_by().count()} jobs are meant")

    def _tell(self, report: Report) -> None:
        self.stdout.write(str(report))


def _chunks(jobs: JobQuerySet, size: int) -> Iterator[list[UUID]]:
    """The ids selected, by key; each chunk is looked for when its turn comes."""
    by_key = jobs.order_by("pk").values_list("pk", flat=True)
    chunk = list(by_key[:size])
    while chunk:
        yield chunk
        chunk = list(by_key.filter(pk__gt=chunk[-1])[:size])


def _rate(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of jobs a second from 1 to 10000.")
    return int(text)


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.2 <= seconds <= 3_600:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of seconds from 0.2 to 3600.")
    return seconds
