"""``manage.py runworker``."""

from __future__ import annotations

import logging
import os
import socket
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ... import __version__, registry
from ...databases import database_for
from ...exceptions import JobQueueError
from ...worker import WorkerOptions
from ...worker.health import Probes
from ...worker.reload import Reloader, restart_on_change
from ...worker.shutdown import StopSignals
from ...worker.supervisor import Supervisor

LEVELS = {0: logging.ERROR, 1: logging.INFO, 2: logging.DEBUG, 3: logging.DEBUG}


class Command(BaseCommand):
    """Run jobs until stopped."""

    help = "Runs jobs from the queue in worker processes, until SIGTERM or Ctrl-C (twice: at once)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options; what is left out comes from settings.JOBQUEUE."""
        add = parser.add_argument
        add("--queues", type=_names, help="Only these queues, separated by commas. Default: all.")
        add("--exclude-queues", type=_names, default=[], help="Not these queues, separated by commas.")
        add("--processes", type=int, help="Worker processes (JOBQUEUE['PROCESSES'], 1).")
        add("--threads", type=int, help="Plain handlers at once in a process (JOBQUEUE['THREADS'], 8).")
        add(
            "--async-concurrency",
            type=int,
            help="Async handlers at once in a process (JOBQUEUE['ASYNC_CONCURRENCY'], 100).",
        )
        add("--lease", type=float, help="Seconds a claim holds without renewal (JOBQUEUE['LEASE'], 60).")
        add(
            "--poll-interval",
            type=float,
            help="Seconds between looks while idle (JOBQUEUE['POLL_INTERVAL'], 1).",
        )
        add("--grace", type=float, help="Seconds for running jobs at shutdown (JOBQUEUE['GRACE'], 25).")
        add(
            "--interrupt-grace",
            type=float,
            help="Seconds for a job that was asked to stop or interrupted (JOBQUEUE['INTERRUPT_GRACE'], 10).",
        )
        add("--drain", action="store_true", help="Leave when nothing is due.")
        add("--max-jobs", type=int, help="Replace a process after so many jobs.")
        add("--max-memory", type=int, help="Replace a process when it has more MiB of memory.")
        add("--health-address", metavar="HOST:PORT", help="Answer /live and /ready here, by HTTP.")
        add("--health-file", metavar="PATH", help="Tell the same in this file, written once a second.")
        add("--database", help="Alias of the queue's database. Default: JOBQUEUE['DATABASE'] or the routers.")
        add(
            "--reload",
            action="store_true",
            default=None,
            help="Restart when code changes (default under DEBUG).",
        )
        add("--no-reload", action="store_false", dest="reload", help="Do not restart when code changes.")

    def handle(self, *args: Any, **given: Any) -> None:
        """Check the options, then supervise."""
        level = LEVELS[given["verbosity"]]
        options = self._options(given)
        reload = settings.DEBUG if given["reload"] is None else given["reload"]
        if reload and not options.drain and not Reloader.is_inside():
            sys.exit(restart_on_change(self.stderr.write))
        signals = StopSignals()
        signals.install()
        if given["verbosity"]:
            self.stdout.write(self._banner(options))
            self.stdout.flush()
        shown = None if logging.getLogger("django_jobqueue").hasHandlers() else level
        if shown is not None:
            from ...worker.child import log_to_stderr

            log_to_stderr(shown)
        code = Supervisor(options, signals, shown, self._probes(options)).run()
        if code:
            sys.exit(code)

    def _options(self, given: dict[str, Any]) -> WorkerOptions:
        names = WorkerOptions.__dataclass_fields__
        chosen = {name: given[name] for name in names if given.get(name) is not None}
        try:
            options = WorkerOptions(**chosen)
            if options.database is not None and options.database not in settings.DATABASES:
                raise CommandError(
                    f"--database {options.database}: not one of the aliases in DATABASES "
                    f"({', '.join(settings.DATABASES)})."
                )
            database_for(options.alias)
        except JobQueueError as error:
            raise CommandError(str(error)) from error
        return options

    def _probes(self, options: WorkerOptions) -> Probes:
        try:
            return Probes(options.health_address, options.health_file)
        except JobQueueError as error:
            raise CommandError(str(error)) from error

    def _banner(self, options: WorkerOptions) -> str:
        types = registry.all_types()
        queues = "all" if options.queues is None else ", ".join(options.queues)
        if options.exclude_queues:
            queues += f" but {', '.join(options.exclude_queues)}"
        width = {False: f"{options.threads} threads", True: f"{options.async_concurrency} coroutines"}
        widths = [width[kind] for kind in sorted(registry.kinds() or {False})]
        names = ", ".join(one.name for one in types) or "none: no app has a jobs.py with @job"
        processes = "1 process" if options.processes == 1 else f"{options.processes} processes"
        return (
            f"django_jobqueue {__version__}, supervisor {os.getpid()} on {socket.gethostname()}\n"
            f"  database     {options.alias}\n"
            f"  queues       {queues}\n"
            f"  concurrency  {processes} of {' and '.join(widths)}\n"
            f"  lease        {options.lease:g} s, renewed every {options.heartbeat:g} s\n"
            f"  job types    {names}\n"
            "Stop with Ctrl-C; twice to stop at once."
        )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
