"""The workers' own connections notice a server that is gone without a word."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections

from django_jobqueue.databases.waking import ANY_QUEUE, wake_workers
from django_jobqueue.worker import WorkerOptions
from django_jobqueue.worker.service import use_own_connection
from django_jobqueue.worker.turns import Turns
from django_jobqueue.worker.wakeup import PostgreSQLWakeup
from tests.waiting import eventually

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def parameters(**options: Any) -> dict[str, str]:
    """Those of the connection of a worker's thread, if the project has these ``OPTIONS``."""
    answers: list[dict[str, str]] = []

    def run() -> None:
        mine = connections["default"]
        given = {**mine.settings_dict["OPTIONS"], **options}
        connections["default"] = type(mine)({**mine.settings_dict, "OPTIONS": given}, "default")
        use_own_connection("default")
        connections["default"].ensure_connection()
        answers.append(connections["default"].connection.info.get_parameters())
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return answers[0]


@contextmanager
def untouched_settings() -> Iterator[None]:
    before = repr(settings.DATABASES["default"]["OPTIONS"])
    yield
    assert repr(settings.DATABASES["default"]["OPTIONS"]) == before


def test_a_vanished_server_is_noticed_within_half_a_minute() -> None:
    with untouched_settings():
        found = {name: int(value) for name, value in parameters().items() if value.isdigit()}

    probing = found["keepalives_interval"] * found["keepalives_count"]
    assert 0 < found["keepalives_idle"] + probing <= 30
    assert 0 < found["tcp_user_timeout"] <= 30_000
    assert 0 < found["connect_timeout"] <= 30


def test_what_the_project_says_goes_before() -> None:
    assert parameters(keepalives_idle=77)["keepalives_idle"] == "77"
    assert parameters(connect_timeout=3)["connect_timeout"] == "3"


def test_connections_of_others_are_left_alone() -> None:
    use_own_connection("default")
    assert "tcp_user_timeout" in connections["default"].settings_dict["OPTIONS"]
    del connections["default"]
    assert "tcp_user_timeout" not in connections["default"].settings_dict["OPTIONS"]


def test_a_listener_that_hears_nothing_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    connection.ensure_connection()
    wakeup = PostgreSQLWakeup(WorkerOptions(lease=1), Turns(lambda: (0, 1)))
    try:
        eventually(lambda: wakeup.wait(0.1) is None or "Cannot LISTEN" in caplog.text)
        for _ in range(5):
            wakeup.wait(0.05)
    finally:
        wakeup.close()

    assert not wakeup.reliable
    assert caplog.text.count("Cannot LISTEN") == 1
    assert "pooler" in caplog.text


def test_a_listener_says_so_before_it_goes(tmp_path: Path) -> None:
    wakeup = PostgreSQLWakeup(WorkerOptions(lease=60), Turns(lambda: (0, 1)))
    wakeup.wait(0.1)
    wake_workers("default", {ANY_QUEUE: 1})
    eventually(lambda: wakeup.wait(0.1) and wakeup.reliable)

    with (tmp_path / "said").open("w") as said:
        connection.connection.pgconn.trace(said.fileno())
        wakeup.close()

    words = (tmp_path / "said").read_text()
    # The server logs it as FATAL if it has a word for one who is gone.
    assert 0 < words.index("UNLISTEN *") < words.index("Terminate")
