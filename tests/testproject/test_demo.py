"""manage.py demo: the real command, a real worker, a small folder."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from django.contrib.auth.models import User

from django_jobqueue.models import Job, JobStatus
from testproject.outbox.models import Delivery
from testproject.readingroom.demo.site import Troubles
from testproject.readingroom.demo.watch import Watch
from testproject.search.jobs import search
from tests.conftest import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

#: Seconds after which the demo must have come to its end.
LIMIT = 100


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "testproject" / "manage.py"), "demo", "--processes", "1", *arguments]


@contextmanager
def started(arguments: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command(*arguments), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def lines_until(process: subprocess.Popen[str], wanted: str) -> str:
    """What it writes up to a line that contains ``wanted``."""
    assert process.stdout
    seen = ""
    for line in process.stdout:
        seen += line
        if wanted in line:
            return seen
    raise AssertionError(f"{wanted!r} never came:\n{seen}")


def test_the_demo_shows_all_five_kinds_a_retry_and_a_repaired_dead_letter(
    worker_env: dict[str, str], folder: Path
) -> None:
    done = subprocess.run(
        command("--folder", str(folder)), env=worker_env, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.count("✓") == 8
    assert "✗" not in done.stdout
    assert re.search(r"retry +outbox .*503", done.stdout)
    assert re.search(r"dead +outbox .*404", done.stdout)
    assert ".retry(): 1 done" in done.stdout
    assert done.stdout.count("201 Created (after 1 failed)") == 2
    counts = Job.objects.counts("job_type")
    assert {kind: one[JobStatus.DONE] for kind, one in counts.items()} == {
        "exploration:run": 3,
        "search": 3,
        "report:generate": 3,
        "outbox": 3,
        "cleanup:old-data": 1,
    }
    assert Delivery.objects.count() == 3
    assert not User.objects.exists()


def test_a_second_demo_begins_afresh_and_serves_the_site_until_it_is_stopped(
    worker_env: dict[str, str], folder: Path
) -> None:
    search.enqueue(query="from the last time")
    with started(["--folder", str(folder), "--serve", "--port", "0"], worker_env) as process:
        text = lines_until(process, "Stop with Ctrl-C.")
        assert "log in as admin with the password admin" in text
        (url,) = re.findall(r"Site: +(\S+)", text)
        assert "7 documents" in get(url)
        assert "Log in" in get(f"{url}admin/login/")
        (worker,) = [
            child for child in psutil.Process(process.pid).children() if "runworker" in child.cmdline()
        ]
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 128 + signal.SIGTERM
        assert not worker.is_running()
    assert Job.objects.filter(job_type="search").count() == 3
    assert User.objects.get().check_password("admin")


def get(url: str) -> str:
    """A page, asked of the server at that address and no proxy."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=LIMIT)
    connection.request("GET", parts.path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_an_empty_folder_is_refused_before_anything_is_removed(
    worker_env: dict[str, str], tmp_path: Path
) -> None:
    search.enqueue(query="still here")
    done = subprocess.run(
        command("--folder", str(tmp_path)), env=worker_env, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 1
    assert "there is nothing to read" in done.stderr
    assert Job.objects.exists()


def test_what_happened_is_told_once() -> None:
    watch = Watch()
    search.enqueue(query="heron")
    assert watch.look() == []
    (job,) = Job.objects.claim(worker_id="w")
    Job.objects.fail(job, OSError("no luck"))
    (event,) = watch.look()
    assert (event.what, event.kind) == ("retry", "search")
    assert "no luck" in event.text
    assert watch.look() == []
    assert watch.active == 1
    assert watch.figures["search"].retries == 1


def test_a_receiver_in_trouble_answers_in_the_sites_stead() -> None:
    answered: list[str] = []

    def site(environ: object, start_response: object) -> list[bytes]:
        answered.append("the site")
        return []

    def ask(path: str) -> None:
        troubles(
            {"PATH_INFO": path, "wsgi.input": BytesIO()}, lambda status, headers: answered.append(status)
        )

    troubles = Troubles(site)
    troubles.once("busy", "503 Busy")
    troubles.always("moved", "404 Moved")
    for _ in range(2):
        ask("/webhook/busy/")
        ask("/webhook/moved/")
    troubles.over("moved")
    ask("/webhook/moved/")
    assert answered == ["503 Busy", "404 Moved", "the site", "404 Moved", "the site"]


def test_a_port_that_is_taken_is_refused_before_anything_is_removed(
    worker_env: dict[str, str], folder: Path, closed_port: int
) -> None:
    search.enqueue(query="still here")
    done = subprocess.run(
        command("--folder", str(folder), "--port", str(closed_port)),
        env=worker_env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 1
    assert f"Port {closed_port}" in done.stderr
    assert Job.objects.exists()


def test_ctrl_c_stops_the_demo_and_its_worker_and_is_no_success(
    worker_env: dict[str, str], folder: Path
) -> None:
    with started(["--folder", str(folder)], worker_env) as process:
        lines_until(process, "Exploring")
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 128 + signal.SIGINT
        assert children
        assert not any(child.is_running() for child in children)


def test_a_demo_whose_worker_dies_says_so_and_is_no_success(worker_env: dict[str, str], folder: Path) -> None:
    with started(["--folder", str(folder)], worker_env) as process:
        text = lines_until(process, "Exploring")
        for child in psutil.Process(process.pid).children():
            child.kill()
        text += process.communicate()[0]
        assert process.returncode == 1
        assert "The worker has ended with exit code -9." in text
