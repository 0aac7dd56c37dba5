"""Whatever a handler does to its connection, the next job on the same thread works."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, connections, transaction
from pytest_django import Settings

from tests.execution.runner import DONE, PENDING, Runner


def autocommit_off() -> None:
    transaction.set_autocommit(False)
    Group.objects.create(name="left open")


def raw_begin() -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO auth_group (name) VALUES ('left open')")


def atomic_entered() -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name="left open")


def atomic_entered_twice() -> None:
    transaction.atomic().__enter__()
    transaction.atomic().__enter__()
    Group.objects.create(name="left open")


def aborted() -> None:
    transaction.set_autocommit(False)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")
    except Exception:
        Group.objects.none()


def marked_for_rollback() -> None:
    transaction.atomic().__enter__()
    transaction.set_rollback(True)


def raw_closed() -> None:
    connection.ensure_connection()
    connection.connection.close()


def raw_closed_in_a_transaction() -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name="left open")
    connection.connection.close()


def forgotten() -> None:
    connection.ensure_connection()
    connection.connection.close()
    connection.connection = None


MISDEEDS = [
    autocommit_off,
    raw_begin,
    atomic_entered,
    atomic_entered_twice,
    aborted,
    marked_for_rollback,
    raw_closed,
    raw_closed_in_a_transaction,
    forgotten,
]


@pytest.mark.parametrize(("max_age", "health_checks"), [(0, False), (60, True), (None, False), (None, True)])
@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_the_next_job_on_the_same_thread_works(
    runner: Runner,
    monkeypatch: pytest.MonkeyPatch,
    misdeed: Callable[[], None],
    max_age: int | None,
    health_checks: bool,
) -> None:
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", max_age)
    monkeypatch.setitem(connections.settings["default"], "CONN_HEALTH_CHECKS", health_checks)

    runner.run(misdeed)

    job = runner.run(lambda: Group.objects.create(name="next").pk)
    # Without health checks Django does not look at a connection that is kept; one failure, and it does.
    if job.status == PENDING and misdeed in (raw_closed, forgotten) and not health_checks:
        job = runner.run(lambda: Group.objects.create(name="next").pk)
    assert job.status == DONE, job.last_error
    assert list(Group.objects.values_list("name", flat=True)) == ["next"]


@pytest.mark.parametrize("misdeed", MISDEEDS[:5])
def test_what_was_left_open_is_rolled_back_and_told_of(
    runner: Runner, caplog: pytest.LogCaptureFixture, misdeed: Callable[[], None]
) -> None:
    job = runner.run(misdeed)
    assert job.status == DONE
    assert not Group.objects.exists()
    assert f"Job {job.pk} ({job.job_type}) left a transaction open on the database 'default'" in caplog.text


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_transaction_on_another_database_does_not_survive_its_job_either(
    runner: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    def opens() -> None:
        transaction.atomic(using="other").__enter__()
        connections["other"].ensure_connection()

    assert runner.run(opens).status == DONE
    assert "on the database 'other'" in caplog.text
    assert not runner.in_thread(lambda: connections["other"].in_atomic_block)


@pytest.mark.parametrize(("max_age", "kept"), [(0, False), (60, True), (None, True)])
def test_connections_live_as_long_as_around_requests(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, max_age: int | None, kept: bool
) -> None:
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", max_age)
    seen: list[Any] = []

    def handler() -> None:
        Group.objects.count()
        seen.append(connection.connection)

    runner.run(handler)
    runner.run(handler)
    assert (seen[0] is seen[1]) is kept


def test_the_query_log_of_debug_does_not_grow(runner: Runner, settings: Settings) -> None:
    settings.DEBUG = True

    def handler() -> int:
        Group.objects.count()
        return len(connection.queries)

    lengths = [runner.run(handler).result for _ in range(5)]
    assert lengths == [lengths[0]] * 5 != [0] * 5
