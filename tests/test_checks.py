"""The system checks: one test an id, the exact ids, and a site that is as it should be."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.checks import CheckMessage, Tags, run_checks
from django.core.management import get_commands
from django.db import connections
from django.db.backends.postgresql import psycopg_any
from pytest_django import Settings

from django_jobqueue import checks, registry
from django_jobqueue.registry import JobType
from tests.conftest import ROOT

GOOD_SQLITE = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}

Database = Callable[..., None]


def found(databases: list[str] | None = None) -> dict[str, CheckMessage]:
    """What our checks say, by id; no id twice."""
    tags = [checks.TAG, *([Tags.database] if databases else [])]
    messages = run_checks(tags=tags, databases=databases)
    messages = [one for one in messages if str(one.id).startswith("jobqueue.") and not one.is_silenced()]
    by_id = {str(message.id): message for message in messages}
    assert len(by_id) == len(messages)
    return by_id


@pytest.fixture(autouse=True)
def site_as_it_should_be(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_types", {})
    settings.JOBQUEUE = {}
    settings.SILENCED_SYSTEM_CHECKS = ["jobqueue.W008"]


@pytest.fixture
def database(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A function that puts the queue on a database made of these settings. Nobody has to connect to it."""

    def place(engine: str, name: str = "", **options: Any) -> None:
        entry = {"ENGINE": engine, "NAME": name, "OPTIONS": options}
        configured = connections.configure_settings({"default": {}, "placed": entry})
        monkeypatch.setitem(connections.settings, "placed", configured["placed"])
        settings.JOBQUEUE = {"DATABASE": "placed"}

    yield place
    if hasattr(connections._connections, "placed"):
        connections["placed"].close()
        del connections["placed"]


def register(name: str, **options: Any) -> None:
    """Make a type known, for this test."""
    registry.register(JobType(name=name, function=found, **options))


def test_jobqueue_E001_names_each_problem_of_the_settings(settings: Settings) -> None:
    settings.JOBQUEUE = {"THREAD": 3}
    [(number, message)] = found().items()
    assert number == "jobqueue.E001"
    assert "unknown key 'THREAD'" in message.msg
    settings.JOBQUEUE = {"THREAD": 3, "LEASE": -1}
    assert [one.id for one in checks.check_settings()] == ["jobqueue.E001"] * 2


def test_jobqueue_E002_names_an_alias_that_is_no_database(settings: Settings) -> None:
    settings.JOBQUEUE = {"DATABASE": "jobs"}
    [(number, message)] = found().items()
    assert number == "jobqueue.E002"
    assert "'jobs', which is not in DATABASES ('default', 'other')" in message.msg
    assert '"DATABASE": "default"' in str(message.hint)


def test_jobqueue_E003_names_what_is_supported_where_the_database_is_another(database: Database) -> None:
    database("django.db.backends.dummy")
    [(number, message)] = found().items()
    assert number == "jobqueue.E003"
    assert "it is unknown. It needs PostgreSQL 14 or newer with psycopg 3, and SQLite 3.35" in message.msg


@pytest.mark.parametrize("engine", ["mysql", "oracle"])
def test_jobqueue_E003_comes_also_where_the_driver_is_not_installed(database: Database, engine: str) -> None:
    database(f"django.db.backends.{engine}", "jobs")
    [(number, message)] = found().items()
    assert number == "jobqueue.E003"
    assert "It needs PostgreSQL 14 or newer with psycopg 3" in message.msg


def test_jobqueue_E004_asks_for_psycopg_3(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database("django.db.backends.postgresql", "jobs")
    assert found() == {}
    monkeypatch.setattr(psycopg_any, "is_psycopg3", False)
    [(number, message)] = found().items()
    assert number == "jobqueue.E004"
    assert 'pip install "psycopg[binary]"' in str(message.hint)


def test_jobqueue_E005_names_the_version_of_an_old_sqlite(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database("django.db.backends.sqlite3", "jobs.sqlite3", **GOOD_SQLITE)
    monkeypatch.setattr(sqlite3.dbapi2, "sqlite_version_info", (3, 34, 1))
    [(number, message)] = found().items()
    assert number == "jobqueue.E005"
    assert "SQLite is 3.34.1" in message.msg


def test_jobqueue_E006_refuses_atomic_types_when_the_queue_is_elsewhere(settings: Settings) -> None:
    settings.JOBQUEUE = {"DATABASE": "other"}
    register("tests:plain")
    register("tests:atomic", atomic=True)
    [(number, message)] = found().items()
    assert number == "jobqueue.E006"
    assert "'tests:atomic' is atomic, but the queue is on the database 'other'" in message.msg


def test_jobqueue_E007_names_a_type_whose_queue_is_not_declared(settings: Settings) -> None:
    register("tests:mail", queue="mail")
    register("tests:any", queue="any")
    settings.JOBQUEUE = {"QUEUES": ["any"]}
    [(number, message)] = found().items()
    assert number == "jobqueue.E007"
    assert 'Add "mail" to JOBQUEUE["QUEUES"]' in str(message.hint)


def test_jobqueue_W001_says_that_workers_do_not_see_a_database_in_memory(database: Database) -> None:
    database("django.db.backends.sqlite3", ":memory:")
    assert set(found()) == {"jobqueue.W001"}


def _only(database: Database, **changed: Any) -> tuple[str, CheckMessage]:
    database("django.db.backends.sqlite3", "jobs.sqlite3", **{**GOOD_SQLITE, **changed})
    [item] = found().items()
    return item


@pytest.mark.parametrize("command", ["", "PRAGMA journal_mode = DELETE;", "PRAGMA journal_mode=WALRUS;"])
def test_jobqueue_W002_gives_the_line_for_wal(database: Database, command: str) -> None:
    number, message = _only(database, init_command=command)
    assert number == "jobqueue.W002"
    assert checks.SQLITE_OPTIONS in str(message.hint)
    assert 'DATABASES["placed"]' in str(message.hint)


@pytest.mark.parametrize("mode", [None, "DEFERRED"])
def test_jobqueue_W003_gives_the_line_for_immediate(database: Database, mode: str | None) -> None:
    number, message = _only(database, transaction_mode=mode)
    assert number == "jobqueue.W003"
    assert checks.SQLITE_OPTIONS in str(message.hint)


def test_jobqueue_W004_gives_the_line_for_a_timeout_that_is_long_enough(database: Database) -> None:
    number, message = _only(database, timeout=1.5)
    assert number == "jobqueue.W004"
    assert "for 1.5 s only" in message.msg
    assert checks.SQLITE_OPTIONS in str(message.hint)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"transaction_mode": "immediate"},
        {"transaction_mode": "EXCLUSIVE"},
        {"init_command": "pragma journal_mode = 'wal'"},
        {"timeout": 1, "init_command": "PRAGMA journal_mode(WAL); PRAGMA busy_timeout=9000;"},
    ],
)
def test_other_ways_to_write_good_options_are_understood(database: Database, options: dict[str, Any]) -> None:
    database("django.db.backends.sqlite3", "jobs.sqlite3", **{**GOOD_SQLITE, **options})
    assert found() == {}


def test_the_line_to_paste_is_the_one_that_satisfies_the_checks(database: Database) -> None:
    options = eval(f"{{{checks.SQLITE_OPTIONS}}}")["OPTIONS"]  # noqa: S307 (our own text)
    database("django.db.backends.sqlite3", "jobs.sqlite3", **options)
    assert found() == {}


def test_jobqueue_W005_gives_the_line_for_rangefilter(settings: Settings) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "rangefilter"]
    [(number, message)] = found().items()
    assert number == "jobqueue.W005"
    assert 'Add "rangefilter" to INSTALLED_APPS' in str(message.hint)


def test_a_site_without_the_admin_needs_no_rangefilter(settings: Settings) -> None:
    left_out = ("rangefilter", "django.contrib.admin")
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app not in left_out]
    assert checks.check_site() == []


def test_jobqueue_W006_says_which_app_shadows_runworker(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = tmp_path / "shadow" / "management" / "commands"
    commands.mkdir(parents=True)
    for folder in (commands, commands.parent, commands.parent.parent):
        (folder / "__init__.py").touch()
    (commands / "runworker.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    ours = settings.INSTALLED_APPS
    settings.INSTALLED_APPS = [*ours, "shadow"]
    get_commands.cache_clear()
    assert found() == {}
    settings.INSTALLED_APPS = ["shadow", *ours]
    get_commands.cache_clear()
    [(number, message)] = found().items()
    get_commands.cache_clear()
    assert number == "jobqueue.W006"
    assert "is the command of shadow" in message.msg
    assert "manage.py jobqueue_worker" in str(message.hint)


def test_jobqueue_E008_says_what_isolated_types_need(monkeypatch: pytest.MonkeyPatch) -> None:
    register("tests:isolated", isolated=True)
    assert found() == {}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert set(found()) == {"jobqueue.E008"}


@pytest.mark.sqlite
def test_jobqueue_W007_warns_of_atomic_types_on_sqlite() -> None:
    register("tests:atomic", atomic=True)
    [(number, message)] = found().items()
    assert number == "jobqueue.W007"
    assert "'tests:atomic' is atomic" in message.msg


@pytest.mark.sqlite
def test_an_atomic_type_on_sqlite_that_may_outlast_a_lease_is_told_so() -> None:
    register("tests:atomic", atomic=True, timeout=61)
    assert "timeout of 61 s is longer than LEASE (60 s)" in found()["jobqueue.W007"].msg
    register("tests:atomic", atomic=True, timeout=60)
    assert "LEASE" not in found()["jobqueue.W007"].msg


@pytest.mark.postgresql
def test_atomic_types_are_fine_on_postgresql() -> None:
    register("tests:atomic", atomic=True)
    assert found() == {}


def test_jobqueue_W008_says_what_another_database_costs(database: Database, settings: Settings) -> None:
    settings.SILENCED_SYSTEM_CHECKS = []
    database("django.db.backends.postgresql", "jobs")
    messages = {message.id: message for message in checks.check_database()}
    assert set(messages) == {"jobqueue.W008"}
    assert "written after that commits" in messages["jobqueue.W008"].msg


def test_jobqueue_W009_sends_others_than_posix_to_the_embedded_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "os", SimpleNamespace(name="nt"))
    [(number, message)] = found().items()
    assert number == "jobqueue.W009"
    assert "Worker().start()" in str(message.hint)


@pytest.mark.parametrize("alias", ["default", "other"])
@pytest.mark.django_db(databases=["default", "other"], transaction=True)
def test_jobqueue_W010_gives_the_command_that_makes_the_tables(settings: Settings, alias: str) -> None:
    settings.JOBQUEUE = {"DATABASE": alias}
    with connections[alias].cursor() as cursor:
        cursor.execute("ALTER TABLE django_jobqueue_worker RENAME TO away")
        try:
            messages = {message.id: message for message in checks.check_tables(databases=[alias])}
        finally:
            cursor.execute("ALTER TABLE away RENAME TO django_jobqueue_worker")
    [(number, message)] = messages.items()
    assert number == "jobqueue.W010"
    assert message.msg == f"The database {alias!r} has no table django_jobqueue_worker."
    option = "" if alias == "default" else " --database other"
    assert f"Run manage.py migrate django_jobqueue{option}. " in str(message.hint)


def test_migrate_does_not_complain_of_what_it_is_about_to_make(tmp_path: Path) -> None:
    output = _manage("migrate", "django_jobqueue", DATABASE_URL=f"sqlite:///{tmp_path}/new.sqlite3")
    assert "Applying django_jobqueue.0001_initial... OK" in output
    assert "jobqueue.W010" not in output


def test_jobqueue_W011_says_when_a_file_is_not_in_wal_after_all(tmp_path: Path) -> None:
    """In a small site of its own, whose file goes back from WAL as it would on a network file system."""
    options = GOOD_SQLITE | {"init_command": "PRAGMA journal_mode=WAL; PRAGMA journal_mode=DELETE;"}
    entry = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "jobs.sqlite3"),
        "OPTIONS": options,
    }
    script = f"""
import django
from django.conf import settings
from django.core.management import call_command
settings.configure(INSTALLED_APPS=["django_jobqueue"], DATABASES={{"default": {entry!r}}})
django.setup()
call_command("migrate", verbosity=0)
call_command("check", databases=["default"])
"""
    output = _python("-c", script)
    assert re.findall(r"jobqueue\.\w+", output) == ["jobqueue.W011"]
    assert "in journal mode 'delete', although the settings ask for WAL" in output


@pytest.mark.django_db(databases=["default", "other"])
def test_the_tables_are_looked_at_only_when_their_database_is_asked_for() -> None:
    assert found(databases=["default"]) == {}
    assert checks.check_tables(databases=None) == checks.check_tables(databases=["other"]) == []


def test_wrong_settings_bring_no_other_complaint_and_no_exception(settings: Settings) -> None:
    settings.JOBQUEUE = {"DATABASE": "jobs", "THREAD": 3}
    assert set(found(databases=["default"])) == {"jobqueue.E001"}


def test_the_check_of_the_whole_site_is_clean() -> None:
    output = _manage("check", "--fail-level", "WARNING")
    assert "no issues" in output


def test_every_id_in_the_code_has_a_test_here_and_an_anchor() -> None:
    source = Path(checks.__file__).read_text()
    ids = set(re.findall(r'"([EW]\d{3})"', source))
    tested = set(re.findall(r"def test_jobqueue_([EW]\d{3})_", Path(__file__).read_text()))
    assert ids == tested
    message = checks.error("E001", "fact", "hint.")
    assert message.hint == "hint. See docs/reference/checks.md#jobqueue-e001"


def _manage(*arguments: str, **environment: str) -> str:
    return _python(str(ROOT / "testproject" / "manage.py"), *arguments, **environment)


def _python(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
