"""The documentation against the code: what it lists is what there is, and its examples run."""

import ast
import asyncio
import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from argparse import SUPPRESS
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.core.management.base import BaseCommand
from django.dispatch import Signal

from django_jobqueue import checks, conf, exceptions, registry, signals
from django_jobqueue.backend import contract
from django_jobqueue.handlers import Handler, JobContext, job
from django_jobqueue.management.commands import jobqueue
from django_jobqueue.management.commands.runworker import Command
from django_jobqueue.managers import JobManager, QueueManager, StatisticManager, WorkerManager
from django_jobqueue.managers.preparing import EnqueueOptions
from django_jobqueue.models import Job, JobStatus, Queue, Worker
from django_jobqueue.retries import Retry
from django_jobqueue.states import MOVES
from django_jobqueue.statistics import CODES
from django_jobqueue.worker import WorkerOptions
from django_jobqueue.worker.shutdown import Exit
from tests.conftest import ROOT

DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
README = ROOT / "README.md"
PAGES = sorted(
    [README, ROOT / "CHANGELOG.md", *(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)]
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_TEST = re.compile(r"tests/[\w/]+\.py(?:::\w+)?")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return [body for kind, body in _FENCE.findall(text) if kind == language]


def rows(text: str) -> dict[str, list[str]]:
    """Every row of every table, by its first cell without backticks."""
    found = {}
    for line in text.splitlines():
        if line.startswith("| "):
            first, *cells = [cell.strip() for cell in line.strip("| ").replace("\\|", "/").split(" | ")]
            found[first.strip("`")] = cells
    return found


def value_of(cell: str) -> Any:
    """The Python value in a table's cell."""
    return eval(cell.strip("`"), {"timedelta": timedelta, "Retry": Retry})  # noqa: S307 - our own page


def sections(text: str) -> dict[str, str]:
    """What stands below each heading, up to the next one."""
    parts = re.split(r"^#+ (.+)$", _FENCE.sub("", text), flags=re.MULTILINE)
    return {title.strip("`"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}


# What there is, and what the reference says.


def test_every_setting_has_a_row_with_its_default_and_a_section() -> None:
    text = page("settings")
    told = {key: cells for key, cells in rows(text).items() if key.isupper()}

    assert told.keys() == set(conf.KEYS)
    assert {key: value_of(cells[-1]) for key, cells in told.items()} == vars(conf.JobQueueSettings())
    assert set(conf.KEYS) <= sections(text).keys()


def test_every_bound_of_a_setting_is_the_one_told() -> None:
    told = rows(page("settings"))

    for key, (least, most, _) in conf.RANGES.items():
        assert f"{least:,}\u2013{most:,}" in told[key][1], key  # an en dash


def test_every_worker_option_has_a_row() -> None:
    told = sections(page("settings"))["Worker options"]

    assert rows(told).keys() - {"option", "---"} == WorkerOptions.__dataclass_fields__.keys()


def options_of(parser: Any) -> set[str]:
    return {one for action in parser._actions if action.help is not SUPPRESS for one in action.option_strings}


def told_options(*names: str) -> set[str]:
    """Those that stand in the first cells of the tables of these sections."""
    told = sections(page("commands"))
    lines = [line for name in names for line in told[name].splitlines() if line.startswith("| `--")]
    return {option for line in lines for option in re.findall(r"`(--[\w-]+)", line.split(" | ")[0])}


def test_every_option_of_runworker_has_a_row_and_no_row_lacks_its_option() -> None:
    options = options_of(Command().create_parser("manage.py", "runworker"))

    assert told_options("runworker") == options - options_of(BaseCommand().create_parser("manage.py", "x"))


def test_every_subcommand_of_jobqueue_and_every_option_has_a_row_and_no_row_lacks_its_option() -> None:
    parser = jobqueue.Command().create_parser("manage.py", "jobqueue")
    [subcommands] = [action.choices for action in parser._actions if isinstance(action.choices, dict)]

    assert {f"jobqueue {name}" for name in subcommands} == {
        title for title in sections(page("commands")) if title.startswith("jobqueue ")
    }
    for name, subparser in subcommands.items():
        told = told_options(
            f"jobqueue {name}", *(["Which jobs"] if name in ("retry", "cancel", "prune") else [])
        )
        assert told == options_of(subparser) - {"-h", "--help", "--database"}, name


def test_every_alert_has_a_row() -> None:
    told = sections(page("commands"))["jobqueue status"]

    assert set(CODES) <= rows(told).keys()


def test_every_exit_code_has_a_row() -> None:
    told = re.findall(r"^\| (\d+) \| `(\w+)` \|", page("commands"), re.MULTILINE)

    assert {(int(number), name) for number, name in told} == {(code.value, code.name) for code in Exit}


def test_every_check_has_a_heading_and_no_heading_lacks_its_check() -> None:
    source = inspect.getsource(checks) + inspect.getsource(contract)
    ids = {f"jobqueue.{number}" for number in re.findall(r'"(?:jobqueue\.)?([EWI]\d{3})"', source)}
    told = {title for title in sections(page("checks")) if title.startswith("jobqueue.")}

    assert {title for title in told if "(removed)" not in title} == ids


def test_every_signal_has_a_row() -> None:
    names = {name for name, value in vars(signals).items() if isinstance(value, Signal)}

    assert {name for name in rows(page("signals")) if name.startswith("job_")} == names


def test_every_status_has_a_row_with_its_number() -> None:
    told = rows(page("statuses"))

    assert {status.name: told[status.name][0] for status in JobStatus} == {
        status.name: str(status.value) for status in JobStatus
    }


@pytest.mark.parametrize("move", MOVES)
def test_every_move_has_a_row_that_says_from_where_to_where(move: str) -> None:
    def names(statuses: frozenset[JobStatus | None]) -> set[str]:
        return {"no row" if status is None else status.name for status in statuses}

    told = rows(page("statuses"))[move]

    assert [set(cell.split(", ")) for cell in told[:2]] == [names(one) for one in MOVES[move]]


def public_methods(manager: type) -> list[tuple[str, Callable[..., Any]]]:
    """The methods that the package itself gives a manager."""
    found = inspect.getmembers(manager, inspect.isfunction)
    return [
        (name, method)
        for name, method in found
        if not name.startswith("_") and name != "get_queryset" and _is_ours(method)
    ]


def _is_ours(method: Callable[..., Any]) -> bool:
    return str(inspect.unwrap(method).__module__).startswith("django_jobqueue")


@pytest.mark.parametrize("manager", [JobManager, QueueManager, StatisticManager, WorkerManager])
def test_every_public_method_has_a_section_or_a_row_and_a_twin_is_told_with_its_twin(manager: type) -> None:
    told = sections(page("job-api"))
    listed = {cell.partition("(")[0].rpartition(".")[2] for cell in rows(page("job-api")) if "(" in cell}

    for name, _ in public_methods(manager):
        twin = told.get(name.removeprefix("a"), "")
        assert name in told or name in listed or f"`{name}`" in twin, name


def test_every_argument_of_a_move_is_told_in_its_section() -> None:
    told = sections(page("job-api"))

    for name, method in public_methods(JobManager):
        arguments = [one for one in inspect.signature(method).parameters if one not in ("self", "options")]
        for argument in arguments if name in told else []:
            assert re.search(rf"\b{argument}\b", told[name]), f"{name}({argument})"


def test_every_option_of_enqueue_has_a_row() -> None:
    told = rows(sections(page("job-api"))["enqueue"])

    assert told.keys() - {"argument", "---"} == {"job_type", "payload", *EnqueueOptions.__annotations__}


def test_every_option_of_job_has_a_row_with_its_default() -> None:
    told = rows(sections(page("handlers"))["@job"])
    parameters = inspect.signature(job).parameters

    assert told.keys() - {"option", "---"} == parameters.keys()
    for name, parameter in parameters.items():
        if parameter.default is not parameter.empty:
            assert value_of(told[name][1]) == parameter.default, name


def test_every_argument_of_retry_has_a_row_with_its_default() -> None:
    told = rows(sections(page("handlers"))["Retry"])

    assert {name: value_of(told[name][1]) for name in vars(Retry())} == vars(Retry())


@pytest.mark.parametrize(
    ("kind", "title"), [(JobContext, "JobContext"), (Handler, "What the decorator makes")]
)
def test_every_member_that_a_handler_sees_is_told(kind: type, title: str) -> None:
    told = sections(page("handlers"))[title]

    for name in vars(kind):
        if not name.startswith("_"):
            assert re.search(rf"\b{name}\b", told), name


def test_every_exception_is_told() -> None:
    text = page("handlers")
    classes = [
        one
        for one in vars(exceptions).values()
        if inspect.isclass(one) and one.__module__ == exceptions.__name__
    ]

    assert [
        one.__name__ for one in classes if f"`{one.__name__}" not in text and one.__name__ != "JobControl"
    ] == []


@pytest.mark.parametrize("model", [Job, Queue, Worker])
def test_every_field_has_a_row(model: type[Job | Queue | Worker]) -> None:
    told = rows(sections(page("model"))[model.__name__])

    assert told.keys() - {"field", "---"} == {field.name for field in model._meta.concrete_fields}


@pytest.mark.parametrize("place", ["README.md", "docs/quickstart.md", "docs/how-to/configure-sqlite.md"])
def test_the_options_for_sqlite_are_those_that_the_check_tells_to_paste(place: str) -> None:
    wanted = ast.literal_eval(f"{{{checks.SQLITE_OPTIONS}}}")["OPTIONS"]
    shown = [
        ast.literal_eval(node)
        for block in blocks((ROOT / place).read_text(), "python")
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Dict) and "init_command" in [getattr(key, "value", None) for key in node.keys]
    ]

    assert shown == [wanted]


# The pages themselves.


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings: as readers of Markdown make them, and as Sphinx does."""
    titles = sections(path.read_text())
    plain = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    return plain | {re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", path.read_text())):
        if link.startswith(("http:", "https:")):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_tests_that_are_named_exist(path: Path) -> None:
    for named in _TEST.findall(path.read_text()):
        file, _, function = named.partition("::")
        assert (ROOT / file).is_file(), named
        assert not function or f"def {function}(" in (ROOT / file).read_text(), named


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_python_in_pages_compiles_and_imports_what_there_is(path: Path) -> None:
    for block in blocks(path.read_text(), "python"):
        tree = ast.parse(block)
        compile(tree, name_of(path), "exec")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("django_jobqueue"):
                module = importlib.import_module(str(node.module))
                assert [one.name for one in node.names if not hasattr(module, one.name)] == [], block


def test_every_guarantee_names_a_test() -> None:
    promises = {
        title: body
        for title, body in sections((DOCS / "explanation/guarantees.md").read_text()).items()
        if title[0].isdigit()
    }

    assert len(promises) == 11
    assert [title for title, body in promises.items() if not _TEST.search(body)] == []


def test_the_readme_can_be_read_at_one_sitting() -> None:
    assert len(README.read_text().splitlines()) < 200


# The examples, run.


def steps(text: str, database: str) -> Iterator[tuple[str, str]]:
    """("file", text) for files of the example, ("run", line) for commands, in the order of the page."""
    for kind, body in _FENCE.findall(text):
        if kind == "sh":
            yield from (("run", line) for line in body.splitlines() if not line.startswith("pip "))
        elif kind == "python":
            note = body.splitlines()[0]
            if not note.endswith((": SQLite", ": PostgreSQL")) or note.lower().endswith(database):
                yield note.removeprefix("# ").split(",")[0], body


@pytest.fixture
def site_env(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The environment of a site that knows nothing of this one; on PostgreSQL, libpq's own variables."""
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    if request.config.option.database == "postgresql":
        cluster = request.getfixturevalue("postgres_cluster")
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE mysite")
        env |= {"PGHOST": str(cluster.folder), "PGUSER": "postgres"}
    return env


def test_the_example_of_the_readme_does_what_it_says(
    pytestconfig: pytest.Config, site_env: dict[str, str], tmp_path: Path
) -> None:
    part = README.read_text().split("## On your own site")[1].split("### Inside the web process")[0]
    promised = re.findall(r"prints `(.+?)`", part)
    printed = ""

    for what, text in steps(part, pytestconfig.option.database):
        if what == "run":
            printed = run(text, site_env, tmp_path)
        else:
            with (tmp_path / what).open("a") as file:
                file.write(f"\n{text}")

    assert [printed.strip().splitlines()[-1]] == promised
    assert (tmp_path / "users.csv").read_text().split() == ["name"]


def run(line: str, env: dict[str, str], folder: Path) -> str:
    program, *arguments = shlex.split(line)
    command = {"python": [sys.executable], "django-admin": [sys.executable, "-m", "django"]}[program]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert "WARNINGS" not in done.stderr, f"{line}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def own_types() -> Iterator[None]:
    """Types that an example registers are gone afterwards."""
    before = {one.name for one in registry.all_types()}
    yield
    for one in registry.all_types():
        if one.name not in before:
            registry.unregister(one.name)


@pytest.mark.django_db(transaction=True)
def test_the_helper_for_peoples_tests_runs_a_job(own_types: None) -> None:
    text = (DOCS / "how-to/test-your-code.md").read_text()
    example = next(block for block in blocks(text, "python") if "run_until_finished" in block)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, "test-your-code.md", "exec"), names)  # noqa: S102 - our own page

    found = names["run_until_finished"](names["greet"].enqueue(name="Ada"))

    assert (found.status, found.result) == (JobStatus.DONE, "Hello Ada.")


def test_the_lifespan_wrapper_starts_and_stops_the_worker_and_hands_on_the_rest() -> None:
    text = (DOCS / "how-to/embed-a-worker.md").read_text()
    example = next(block for block in blocks(text, "python") if "async def lifespan" in block)
    calls: list[str] = []
    names: dict[str, Any] = {}
    functions = [node for node in ast.parse(example).body if isinstance(node, ast.AsyncFunctionDef)]
    imports = "from asgiref.sync import sync_to_async\n"
    exec(imports + "\n".join(map(ast.unparse, functions)), names)  # noqa: S102 - our own page
    names["worker"] = SimpleNamespace(start=lambda: calls.append("start"), stop=lambda: calls.append("stop"))

    async def django_application(scope: Any, receive: Any, send: Any) -> None:
        calls.append(scope["type"])

    names["django_application"] = django_application
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        calls.append(message["type"])

    async def serve() -> None:
        await names["application"]({"type": "http"}, receive, send)
        await names["application"]({"type": "lifespan"}, receive, send)

    asyncio.run(serve())

    assert calls == ["http", "start", "lifespan.startup.complete", "stop", "lifespan.shutdown.complete"]
