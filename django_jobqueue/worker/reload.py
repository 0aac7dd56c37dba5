"""``--reload``: a parent that watches the code and starts the supervisor anew, gracefully, when it changes.

The supervisor keeps its main thread, where signals arrive; Django's own way of running the program in a
second thread would take that from it. The files to watch and the way to see changes are Django's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from django.apps import apps
from django.utils import autoreload

from .shutdown import Exit, StopSignals, die_with_parent

#: In the environment of the supervisor that a reloader has started: the reloader's process id.
INSIDE = "DJANGO_JOBQUEUE_RELOADER"


class Reloader(autoreload.StatReloader):
    """Notes that a file has changed, instead of leaving the process."""

    changed: Path | None = None

    @staticmethod
    def is_inside() -> bool:
        """Whether this process was started by a reloader; it then ends with it."""
        parent = os.environ.get(INSIDE)
        if parent is None:
            return False
        die_with_parent(int(parent))
        return True

    def watch_apps(self) -> None:
        """Watch every Python file of the project's own apps, also those not imported here."""
        for config in apps.get_app_configs():
            path = Path(config.path)
            if "site-packages" not in path.parts and "dist-packages" not in path.parts:
                self.watch_dir(path, "**/*.py")

    def notify_file_changed(self, path: str | os.PathLike[str]) -> None:
        """Called by ``tick`` for each file that is new or other than before."""
        self.changed = Path(path)

    def ticks(self) -> Iterator[Path | None]:
        """Once a second: a file that changed, or None."""
        for _ in self.tick():
            yield self.changed
            self.changed = None


def restart_on_change(say: Callable[[str], object]) -> int:
    """Run this very command again and again, until it ends by itself or a signal; its exit code.

    A supervisor that cannot start (a syntax error, say) is tried again after the next change.
    """
    signals = StopSignals()
    signals.install()
    reloader = Reloader()
    reloader.watch_apps()
    process: subprocess.Popen[bytes] | None = _start()
    for changed in reloader.ticks():
        if signals.asked:
            return _end(process, signals)
        if process is not None and process.poll() is not None:
            code, process = process.returncode, None
            if code != Exit.FAILED:
                return code
            say("The worker could not start; it is tried again when a file changes.")
        if changed is not None:
            say(f"{changed} has changed: the worker stops gracefully and starts again.")
            _end(process, signals)
            process = _start()
    return Exit.DONE


def _start() -> subprocess.Popen[bytes]:
    # In a process group of its own: Ctrl-C reaches the reloader alone, which passes it on, once for once.
    return subprocess.Popen(  # noqa: S603 - this very command
        autoreload.get_child_arguments(), env={**os.environ, INSIDE: str(os.getpid())}, process_group=0
    )


def _end(process: subprocess.Popen[bytes] | None, signals: StopSignals) -> int:
    """Stop a supervisor gracefully and wait for it; pass on each further signal."""
    if process is None:
        return Exit.DONE
    passed_on = 0
    while process.poll() is None:
        if passed_on < max(signals.count, 1):
            process.terminate()
            passed_on += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)
    return process.returncode
