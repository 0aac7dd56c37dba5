"""``manage.py demo``."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from testproject.exploration.folders import packages, standard_library
from testproject.readingroom.demo import display, stage
from testproject.readingroom.demo.site import Site
from testproject.readingroom.demo.story import Failed, Story
from testproject.readingroom.demo.worker import Worker


class Command(BaseCommand):
    """The demo."""

    is_interrupted = False
    help = "Shows all five kinds of jobs at work; removes what the reading room's tables held before."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("--folder", type=Path, default=standard_library(), help="What to explore.")
        parser.add_argument("--processes", type=int, default=2, help="Worker processes (2).")
        parser.add_argument("--plain", action="store_true", help="Lines, even on a terminal.")
        parser.add_argument("--serve", action="store_true", help="Serve the site afterwards, until Ctrl-C.")
        parser.add_argument("--port", type=int, help="The site's port (8000 with --serve, else a free one).")

    def handle(self, **options: Any) -> None:
        """Tell the story; the exit code is 0 only if it ended as it should."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, leave)
        signal.signal(signal.SIGINT, self._interrupt)
        folder = options["folder"].resolve()
        if not folder.is_dir() or not packages(folder):
            raise CommandError(f"--folder {folder}: there is nothing to read.")
        port = options["port"] if options["port"] is not None else 8000 * options["serve"]
        site = self._site(port)  # before anything is removed: the port may be taken
        self.stdout.write("Preparing the database …")
        try:
            stage.prepare(folder)
        except OperationalError as problem:
            raise CommandError(f"The database cannot be used: {problem}") from problem
        try:
            with site, Worker(options["processes"]) as worker:
                self._tell(folder, site, worker, plain=options["plain"])
                if options["serve"]:
                    self._serve(site, worker)
                else:
                    self.stdout.write("Site and admin: the same with --serve (make demo SERVE=1)")
        except KeyboardInterrupt:
            leave(signal.SIGINT)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        # Remembered besides: Python drops an exception that is raised while it clears something away.
        self.is_interrupted = True
        raise KeyboardInterrupt

    def _site(self, port: int) -> Site:
        try:
            return Site(port)
        except OSError as problem:
            raise CommandError(f"Port {port}: {problem.strerror}. Name another with --port.") from problem

    def _tell(self, folder: Path, site: Site, worker: Worker, *, plain: bool) -> None:
        shown = display.choose(plain=plain)
        story = Story(folder, site, worker, shown, lambda: self.is_interrupted)
        try:
            with shown:
                story.tell()
        except Failed as problem:
            raise CommandError(f"{problem} The worker's last words:\n{worker.last_words()}") from problem
        self.stdout.write("\n" + "\n".join(story.summary()) + "\n\n")
        checks = story.checks()
        for text, is_true in checks:
            self.stdout.write(self.style.SUCCESS(f"✓ {text}") if is_true else self.style.ERROR(f"✗ {text}"))
        self.stdout.write("")
        if not all(is_true for _, is_true in checks):
            raise CommandError(
                f"The demo did not end as it should. The worker's last words:\n{worker.last_words()}"
            )

    def _serve(self, site: Site, worker: Worker) -> None:
        who = stage.admit_admin()
        self.stdout.write(f"Site:   {site.url}/")
        self.stdout.write(f"Admin:  {site.url}/admin/ (log in {who})")
        self.stdout.write(f"Worker: runs beside it; its log is {worker.log.name}")
        self.stdout.write("Stop with Ctrl-C.")
        self.stdout.flush()
        with suppress(KeyboardInterrupt):
            site.wait()


def leave(number: int, frame: FrameType | None = None) -> None:
    """Leave by way of every ``__exit__``, so that the worker and the site are stopped too."""
    sys.exit(128 + number)
