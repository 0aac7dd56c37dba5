"""Probes of a real worker."""

import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes.workers import RunWorker
from tests.waiting import equals, eventually


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def ask(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_that_claims_is_ready_and_its_file_goes_with_it(
    start_worker: Callable[..., RunWorker], tmp_path: Path, processes: str
) -> None:
    port, file = free_port(), tmp_path / "health"
    worker = start_worker(
        "--processes", processes, "--health-address", f"127.0.0.1:{port}", "--health-file", str(file)
    )

    equals(200, lambda: ask(port, "/ready"))
    assert ask(port, "/live") == 200
    eventually(lambda: file.read_text() == "live ready\n")
    assert worker.stop() == 0
    assert not file.exists()
    assert ask(port, "/live") == 0
    assert worker.trouble == []


def test_a_worker_without_its_database_is_live_and_not_ready(start_worker: Callable[..., RunWorker]) -> None:
    port = free_port()
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    worker = start_worker("--health-address", f"127.0.0.1:{port}", DATABASE_URL=nowhere)
    equals(200, lambda: ask(port, "/live"))
    assert ask(port, "/ready") == 503
    assert worker.stop() == 0


def test_an_address_that_is_taken_is_told_at_the_start(start_worker: Callable[..., RunWorker]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        worker = start_worker("--health-address", address)

        assert worker.wait() == 1
    assert f"health_address='{address}' cannot be listened at" in worker.log
