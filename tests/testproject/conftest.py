"""The reading room's jobs, run for real: claimed, executed, settled, as a worker does it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import pytest
from pytest_django import Settings

from django_jobqueue.attempts import Attempt
from django_jobqueue.execution import execute
from django_jobqueue.managers.claim import ClaimRequest
from django_jobqueue.models import Job, JobStatus

WORKER = "a worker of the tests"


@pytest.fixture(autouse=True)
def media(settings: Settings, tmp_path: Path) -> Path:
    """Files go where the test's other things go."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def run_due(transactional_db: None) -> Callable[..., int]:
    """Runs the jobs that are due, and those that they enqueue, until none is; says how many ran."""

    def run(*, limit: int = 1_000) -> int:
        request = ClaimRequest(worker_id=WORKER, limit=1, lease=60)
        ran = 0
        while ran < limit and (claimed := Job.objects.claim_for_worker(request)):
            outcome = execute(Attempt(claimed[0], WORKER, monotonic()), Job.objects.db)
            if outcome is not None:
                Job.objects.settle(WORKER, [outcome])
            ran += 1
        return ran

    return run


def make_due() -> None:
    """What waits for its next attempt waits no more."""
    Job.objects.filter(status=JobStatus.PENDING).reschedule(timedelta(0))


class Request(NamedTuple):
    """What a receiver was sent."""

    path: str
    key: str
    body: bytes


class Receiver:
    """A real HTTP server that answers as told, in turn; the last answer again and again."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[int] = [200]
        self.headers: dict[str, str] = {}
        self.released = threading.Event()  # an answer of 0 is none until this is set
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.answer(self)

            do_GET = do_POST

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook/"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Note the request and answer it."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.requests.append(Request(handler.path, handler.headers.get("Idempotency-Key", ""), body))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if status == 0:
            self.released.wait()
            return
        handler.send_response(status)
        for name, value in {"Content-Length": "0", **self.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook of somebody else."""
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.05,))
    thread.start()
    yield receiver
    receiver.released.set()
    receiver.server.shutdown()
    thread.join()
    receiver.server.server_close()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on which nobody listens: ours, so nobody else can begin to."""
    with socket.socket() as taken:  # bound, not listening
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to explore: two packages and some loose files."""
    files = {
        "setup.py": '"""Sets up."""\nimport os\n\ndef main():\n    pass\n',
        "README.md": "# Herons\n\nThey fish. See [the pond](https://pond.example/map).\n\nLife\n----\n\nLong.\n",
        "birds/__init__.py": "",
        "birds/heron.py": (
            '"""A heron fishing."""\n\n\nclass Heron:\n    def fish(self):\n        return "carp"\n\n'
            "    async def wait(self): ...\n\n\ndef nest():\n    ...\n"
        ),
        "birds/deep/notes.rst": "Notes\n=====\n\nOn bitterns, herons too.\n\nSounds\n------\n\nBooms.\n",
        "frogs/pond.txt": "A pond at night. The heron is far.\nFrogs sing.",
        "frogs/odd.py": "print 'Python 2'\n",
        "frogs/picture.png": "not read",
        ".git/config.txt": "not read",
        "birds/__pycache__/x.py": "not read",
    }
    root = tmp_path / "shelf"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
