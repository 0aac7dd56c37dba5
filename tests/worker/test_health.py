"""Live means that the loops that claim go round, ready that they get an answer."""

import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from django_jobqueue.exceptions import InvalidOption
from django_jobqueue.worker import Worker, WorkerOptions
from django_jobqueue.worker.board import SIZE, Board
from django_jobqueue.worker.health import PATIENCE, Health, Probes
from django_jobqueue.worker.shutdown import Exit, StopSignals
from django_jobqueue.worker.supervisor import MOST_IN_VAIN, Child, Supervisor
from tests.waiting import eventually

LATE = -PATIENCE - 1


def board() -> Board:
    return Board.new(bytearray(SIZE))


def looked(mine: Board, answered: bool, pause: float) -> None:
    mine.looked(answered)
    mine.comes_round(monotonic() + pause)


@pytest.mark.parametrize(
    ("answered", "pause", "live", "ready"),
    [(True, 1, True, True), (False, 1, True, False), (True, LATE, False, False), (False, LATE, False, False)],
)
def test_live_is_a_loop_that_goes_round_and_ready_one_that_gets_an_answer(
    answered: bool, pause: float, live: bool, ready: bool
) -> None:
    mine = board()
    looked(mine, answered, pause)
    health = Health(lambda: [mine])

    assert (health.live, health.ready) == (live, ready)


def test_one_process_whose_loop_stands_is_enough_for_a_restart_and_one_that_claims_to_be_ready() -> None:
    works, stands, starts = board(), board(), board()
    looked(works, True, 1)
    looked(stands, True, LATE)

    assert Health(lambda: [works, starts]).ready
    assert not Health(lambda: [works, stands]).live
    assert not Health(lambda: [works, stands]).ready


def test_a_worker_that_starts_is_live_and_not_ready() -> None:
    health = Health(lambda: [board()])

    assert health.live
    assert not health.ready


@pytest.mark.django_db(transaction=True)
def test_an_embedded_worker_tells_its_health(start_worker: Callable[..., Worker]) -> None:
    worker = start_worker()

    eventually(lambda: worker.health.ready)


# The probes.


@pytest.fixture
def probes(tmp_path: Path) -> Iterator[Callable[..., tuple[Probes, Board]]]:
    made = []

    def start(address: str | None = None, path: str | None = None) -> tuple[Probes, Board]:
        mine, probes = board(), Probes(address, path)
        probes.start(Health(lambda: [mine]))
        made.append(probes)
        return probes, mine

    yield start
    for one in made:
        one.close()


def get(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("bound", "host"), [("127.0.0.1:0", "127.0.0.1"), (":0", "localhost"), ("[::1]:0", "[::1]")]
)
def test_http_answers(probes: Callable[..., Any], bound: str, host: str) -> None:
    one, mine = probes(bound)
    port = one._server.server_port

    assert get(port, "/live", host) == (200, "ok\n")
    assert get(port, "/ready", host) == (503, "not ready\n")
    looked(mine, True, 1)
    assert get(port, "/ready", host) == (200, "ok\n")
    looked(mine, True, LATE)
    assert get(port, "/live", host) == (503, "not live\n")
    assert get(port, "/admin", host)[0] == 404


def test_the_file_tells_and_goes_with_the_worker(probes: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "health"
    one, mine = probes(path=str(path))

    one.tick()
    assert path.read_text() == "live\n"
    looked(mine, True, 1)
    eventually(lambda: one.tick() or path.read_text() == "live ready\n")
    looked(mine, True, LATE)
    before = path.stat().st_mtime_ns
    one.tick()
    assert path.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == [path]
    one.close()
    assert not path.exists()


def test_a_file_that_cannot_be_written_any_more_stops_no_worker(
    probes: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    one, _ = probes(path=str(folder / "health"))
    (folder / "health").unlink()
    folder.rmdir()

    one.tick()

    assert "Cannot write the health file" in caplog.text


@pytest.mark.parametrize("address", ["8081", "localhost", "localhost:x", "localhost:70000", "192.0.2.1:80"])
def test_an_address_that_is_none_is_refused_with_its_value(address: str) -> None:
    with pytest.raises(InvalidOption, match=f"health_address='{address}'"):
        Probes(address)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidOption, match="Choose a free port"):
            Probes(f"127.0.0.1:{port}")


def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="health_file="):
        Probes(path=str(tmp_path / "nowhere" / "health"))


# The exit code of a supervisor whose processes die at once.


class Dead:
    """A process that has ended."""

    pid = 1
    exitcode = 1


def died(supervisor: Supervisor, *, answered: bool) -> None:
    mine = board()
    if answered:
        looked(mine, True, 1)
    pipe: Any = SimpleNamespace(close=lambda: None)
    child = Child(Dead(), pipe, mine, started=float("inf"))
    supervisor._ended(child)


def test_a_supervisor_gives_up_when_no_process_lives_to_claim() -> None:
    supervisor = Supervisor(WorkerOptions(), StopSignals())
    for _ in range(MOST_IN_VAIN - 1):
        died(supervisor, answered=False)
    died(supervisor, answered=True)  # jobs that bring their processes down are another matter
    assert supervisor._in_vain == 0

    for _ in range(MOST_IN_VAIN):
        died(supervisor, answered=False)

    assert supervisor._stop() is Exit.UNABLE
