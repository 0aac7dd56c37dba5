"""System checks, the installer's interface: the fact, the line to paste or to run, and where to read on.

Ids never change their meaning and are never used again; ``docs/reference/checks.md`` has a heading for each.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands
from django.db import DEFAULT_DB_ALIAS, connections

from . import conf, registry
from .databases import SUPPORTED, is_supported

TAG = "jobqueue"

#: Seconds that a writer on SQLite should wait for the one before it, at least; also SQLite's own default.
BUSY_TIMEOUT = 5
SQLITE_VERSION = (3, 35)

SQLITE_OPTIONS = (
    '"OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, '
    '"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"}'
)


def error(number: str, fact: str, hint: str) -> Error:
    """An error of ours."""
    return Error(fact, hint=_with_anchor(hint, number), id=f"jobqueue.{number}")


def warning(number: str, fact: str, hint: str) -> Warning:
    """A warning of ours."""
    return Warning(fact, hint=_with_anchor(hint, number), id=f"jobqueue.{number}")


def _with_anchor(hint: str, number: str) -> str:
    return f"{hint} See docs/reference/checks.md#jobqueue-{number.lower()}"


@register(TAG)
def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """``settings.JOBQUEUE`` itself."""
    hint = "Correct JOBQUEUE in the settings; nothing of the queue works until then."
    return [error("E001", fact, hint) for fact in conf.problems(getattr(settings, "JOBQUEUE", {}))]


@register(TAG)
def check_database(**kwargs: Any) -> list[CheckMessage]:
    """Whether the queue can live where the settings put it; opens no connection."""
    alias = _alias()
    if alias is None:
        return []
    if alias not in connections:
        known = ", ".join(repr(name) for name in connections)
        fact = f"The queue's database is {alias!r}, which is not in DATABASES ({known})."
        hint = f'Add it there, or name another one: JOBQUEUE = {{"DATABASE": "{DEFAULT_DB_ALIAS}"}}.'
        return [error("E002", fact, hint)]
    try:
        connection = connections[alias]
    except (ImproperlyConfigured, ImportError) as problem:  # its driver is not installed
        return [_unsupported(alias, str(problem).splitlines()[0])]
    if not is_supported(connection):
        return [_unsupported(alias, f"it is {connection.display_name}")]
    return [*_BY_VENDOR[connection.vendor](connection), *_elsewhere(alias)]


def _unsupported(alias: str, why: str) -> Error:
    return error(
        "E003",
        f"The queue cannot live on the database {alias!r}: {why.rstrip('.')}. It needs {SUPPORTED}.",
        'Put it on one of these: JOBQUEUE = {"DATABASE": "<alias>"}.',
    )


def _elsewhere(alias: str) -> Iterator[CheckMessage]:
    if alias != DEFAULT_DB_ALIAS:
        yield warning(
            "W008",
            f"The queue is on the database {alias!r}. A job enqueued in a transaction of another database is "
            "written after that commits, and is lost if the process ends between the two.",
            'Put it beside your models (JOBQUEUE["DATABASE"], DATABASE_ROUTERS), or accept it: '
            'SILENCED_SYSTEM_CHECKS = ["jobqueue.W008"].',
        )


def _postgresql(connection: Any) -> Iterator[CheckMessage]:
    from django.db.backends.postgresql import psycopg_any

    if not psycopg_any.is_psycopg3:
        yield error(
            "E004",
            f"The queue's database {connection.alias!r} is reached by psycopg2; the queue needs psycopg 3.",
            'Run pip install "psycopg[binary]": Django prefers it wherever it is installed.',
        )


def _sqlite(connection: Any) -> Iterator[CheckMessage]:
    version = connection.Database.sqlite_version_info
    if version < SQLITE_VERSION:
        yield error(
            "E005",
            f"This Python's SQLite is {'.'.join(map(str, version))}; the queue needs 3.35 or newer.",
            'Use a newer Python, or PostgreSQL: JOBQUEUE = {"DATABASE": "<alias>"}.',
        )
    if connection.is_in_memory_db():
        yield warning(
            "W001",
            f"The queue's database {connection.alias!r} is in memory: worker processes cannot see its jobs.",
            f'Give it a file: "NAME": BASE_DIR / "db.sqlite3" in DATABASES["{connection.alias}"].',
        )
    else:
        yield from _sqlite_options(connection.alias, connection.settings_dict["OPTIONS"])


def _sqlite_options(alias: str, options: dict[str, Any]) -> Iterator[CheckMessage]:
    where = f"SQLite as the queue's database {alias!r}"
    hint = f'In DATABASES["{alias}"] write {SQLITE_OPTIONS}.'
    start = str(options.get("init_command") or "")
    if not _asks_for_wal(start):
        yield warning("W002", f"{where} is not set to WAL: readers and writers block each other.", hint)
    if str(options.get("transaction_mode") or "").upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        fact = f'{where} has no transaction_mode "IMMEDIATE": "database is locked" comes without a wait.'
        yield warning("W003", fact, hint)
    timeout = options.get("timeout", BUSY_TIMEOUT)
    if timeout < BUSY_TIMEOUT and "busy_timeout" not in start.lower():
        fact = f"{where} waits for other writers for {timeout:g} s only, not for {BUSY_TIMEOUT} s or more."
        yield warning("W004", fact, hint)


def _asks_for_wal(init_command: str) -> bool:
    return re.search(r"journal_mode\s*[=(]\s*['\"]?wal\b", init_command, re.IGNORECASE) is not None


_BY_VENDOR: dict[str, Callable[[Any], Iterator[CheckMessage]]] = {
    "postgresql": _postgresql,
    "sqlite": _sqlite,
}


@register(TAG)
def check_types(**kwargs: Any) -> list[CheckMessage]:
    """The options of the registered job types against the settings."""
    alias = _alias()
    if alias is None:
        return []
    types = registry.all_types()
    looks = (_undeclared_queue, lambda one: _atomic(one, alias), _isolated)
    return [message for one in types for look in looks for message in look(one)]


def _undeclared_queue(one: registry.JobType) -> Iterator[CheckMessage]:
    declared = conf.current().QUEUES
    if declared is not None and one.queue not in declared:
        yield error(
            "E007",
            f"The type {one.name!r} has the queue {one.queue!r}, which is not declared, so that each call "
            "that makes such a job is refused.",
            f'Add "{one.queue}" to JOBQUEUE["QUEUES"], or give the type another queue: '
            f'@job("{one.name}", queue="{next(iter(declared))}").',
        )


def _atomic(one: registry.JobType, alias: str) -> Iterator[CheckMessage]:
    if not one.atomic:
        return
    if alias != DEFAULT_DB_ALIAS:
        yield error(
            "E006",
            f"The type {one.name!r} is atomic, but the queue is on the database {alias!r}: what its handler "
            f"writes on {DEFAULT_DB_ALIAS!r} is not committed together with its completion.",
            f'Take atomic=True off @job("{one.name}") and make the handler safe to repeat, or put the queue '
            f"on {DEFAULT_DB_ALIAS!r}.",
        )
    elif not _locks_rows(alias):
        yield warning(
            "W007",
            f"The type {one.name!r} is atomic, and on SQLite nothing else can write while its handler runs."
            + _outlasts_lease(one),
            f'Keep the handler short, take atomic=True off @job("{one.name}"), or accept it: '
            'SILENCED_SYSTEM_CHECKS = ["jobqueue.W007"].',
        )


def _outlasts_lease(one: registry.JobType) -> str:
    lease, limit = conf.current().LEASE, one.limit or 0.0
    fact = f" Its timeout of {limit:g} s is longer than LEASE ({lease:g} s): no lease is renewed meanwhile."
    return fact if limit > lease else ""


def _isolated(one: registry.JobType) -> Iterator[CheckMessage]:
    if one.isolated and importlib.util.find_spec("pebble") is None:
        fact = f"The type {one.name!r} is isolated, and the library that keeps its processes is missing."
        yield error("E008", fact, 'Run pip install "django-jobqueue[isolation]".')


def _locks_rows(alias: str) -> bool:
    try:
        return bool(connections[alias].features.has_select_for_update)
    except (ImproperlyConfigured, ImportError):  # E003 says so
        return True


@register(TAG)
def check_site(**kwargs: Any) -> list[CheckMessage]:
    """What stands around the queue: the admin's filters, the name of the worker's command, the platform."""
    return [*_rangefilter(), *_shadowed_command(), *_platform()]


def _rangefilter() -> Iterator[CheckMessage]:
    if apps.is_installed("django.contrib.admin") and not apps.is_installed("rangefilter"):
        yield warning(
            "W005",
            "The admin filters jobs by django-admin-rangefilter, which is not in INSTALLED_APPS: its "
            "templates and translations are not found.",
            'Add "rangefilter" to INSTALLED_APPS.',
        )


def _shadowed_command() -> Iterator[CheckMessage]:
    owner = get_commands().get("runworker", "django_jobqueue")
    if owner != "django_jobqueue":
        yield warning(
            "W006",
            f'"manage.py runworker" is the command of {owner}, which stands before "django_jobqueue" in '
            "INSTALLED_APPS.",
            'Start workers with "manage.py jobqueue_worker", which is the same command.',
        )


def _platform() -> Iterator[CheckMessage]:
    if os.name != "posix":
        yield warning(
            "W009",
            '"manage.py runworker" needs a POSIX system, and this is none.',
            "Run one in the web process: from django_jobqueue.worker import Worker; Worker().start().",
        )


@register(Tags.database)  # not our own tag too: a check of that must not open a connection
def check_tables(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """What only the database itself can tell: run by ``migrate`` and by ``check --database <alias>``."""
    alias = _alias()
    if alias is None or alias not in (databases or ()) or not is_supported(connections[alias]):
        return []
    connection: Any = connections[alias]
    return [*_missing_tables(connection), *_journal_mode(connection)]


def _missing_tables(connection: Any) -> Iterator[CheckMessage]:
    if sys.argv[1:2] == ["migrate"]:  # it checks first, and is about to make them
        return
    present = set(connection.introspection.table_names())
    models = apps.get_app_config("django_jobqueue").get_models()
    missing = sorted(model._meta.db_table for model in models if model._meta.db_table not in present)
    if missing:
        option = "" if connection.alias == DEFAULT_DB_ALIAS else f" --database {connection.alias}"
        yield warning(
            "W010",
            f"The database {connection.alias!r} has no table {', '.join(missing)}.",
            f"Run manage.py migrate django_jobqueue{option}.",
        )


def _journal_mode(connection: Any) -> Iterator[CheckMessage]:
    """Whether a SQLite file is in WAL where the settings ask for it (if they do not, W002 has said so)."""
    asked = _asks_for_wal(str(connection.settings_dict["OPTIONS"].get("init_command") or ""))
    if not asked or connection.is_in_memory_db():
        return
    with connection.cursor() as cursor:
        mode = cursor.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "wal":
        yield warning(
            "W011",
            f"The SQLite file of the database {connection.alias!r} is in journal mode {mode!r}, although the "
            "settings ask for WAL: its file system does not allow it.",
            "Move the file to a local disk; network file systems cannot share memory between processes.",
        )


def _alias() -> str | None:
    """The alias of the queue's database; None while the settings are wrong (E001 says how)."""
    if conf.problems(getattr(settings, "JOBQUEUE", {})):
        return None
    from .managers.base import queue_alias
    from .models import Job

    return queue_alias(Job)
