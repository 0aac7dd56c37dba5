"""The worker: what anybody would run beside a site, ``manage.py runworker``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from django.conf import settings

#: Seconds that it gets to leave in good order.
PATIENCE = 30


class Worker:
    """``runworker`` in a process of its own; its output goes to a file."""

    def __init__(self, processes: int) -> None:
        self._command = [
            sys.executable,
            str(settings.BASE_DIR / "manage.py"),
            *("runworker", "--processes", str(processes), "--threads", "4", "--poll-interval", "0.5"),
        ]
        # Closed, and so removed, in __exit__.
        self.log = tempfile.NamedTemporaryFile("w+", prefix="reading-room-", suffix=".log")  # noqa: SIM115

    def __enter__(self) -> Worker:
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            self._command,
            # Without DEBUG no reloader, and no text of every query kept.
            env=os.environ | {"JOBQUEUE_TEST_DEBUG": "0"},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us, and we tell it in our turn
        )
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.log.close()

    @property
    def exit_code(self) -> int | None:
        """With what it ended; None while it works."""
        return self._process.poll()

    def last_words(self, lines: int = 30) -> str:
        """The end of its output."""
        with open(self.log.name, errors="replace") as log:
            return "".join(log.readlines()[-lines:])
