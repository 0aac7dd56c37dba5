"""What the benchmark is asked to do is checked before anything starts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import options
from tests.benchmarks.options import DATABASES, WORKLOADS, Options, make_parser, parse
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "reference" / "benchmark.md"


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        parse(arguments)
    assert left.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def test_nothing_given_is_everything_three_times() -> None:
    chosen = parse([])

    assert chosen == Options()
    assert (chosen.repeats, chosen.only, chosen.databases) == (3, WORKLOADS, DATABASES)
    assert (chosen.jobs_on("postgresql"), chosen.jobs_on("sqlite")) == (150_000, 100_000)


def test_options_are_read() -> None:
    chosen = parse(["--jobs", "500", "--batch", "500, 1,1", "--only", "drain,enqueue", "--rows", "1000"])

    assert chosen.jobs_on("sqlite") == 500
    assert chosen.batch == (1, 500)
    assert chosen.only == ("enqueue", "drain")
    assert chosen.rows == (1_000,)


def test_quick_is_small_but_what_is_said_counts() -> None:
    chosen = parse(["--quick", "--repeats", "2"])

    assert chosen.repeats == 2
    assert max(chosen.rows) <= 100_000
    assert chosen.jobs_on("postgresql") < 10_000


@pytest.mark.parametrize("name", ["jobs", "repeats", "batch", "rows"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1.5", "99999999"])
def test_numbers_out_of_range_are_refused(capsys: pytest.CaptureFixture[str], name: str, value: str) -> None:
    text = complaint(capsys, f"--{name}={value}")

    least, most = options.RANGES[name]
    assert f"--{name}" in text
    assert f"{value!r} must be a whole number from {least:,} to {most:,}. Write one, or leave" in text


def test_one_bad_number_among_good_ones_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'1000000' must be a whole number from 1 to 10,000." in complaint(capsys, "--batch=1,1000000")


@pytest.mark.parametrize(
    ("option", "kind", "known"),
    [
        ("--only", "workload", options.WORKLOADS),
        ("--databases", "database", options.DATABASES),
    ],
)
def test_unknown_names_are_refused_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str], option: str, kind: str, known: tuple[str, ...]
) -> None:
    text = complaint(capsys, option, f"{known[0]},nonsense")

    assert f"'nonsense' is no {kind}. Choose from {', '.join(known)}." in text


def test_rivals_are_those_that_there_is_code_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "known_rivals", lambda: ("huey", "celery"))

    assert parse(["--with", "celery,huey"]).rivals == ("huey", "celery")
    assert "'nonsense' is no rival. Choose from huey, celery." in complaint(capsys, "--with", "huey,nonsense")


def test_rivals_without_their_code_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "known_rivals", lambda: ())

    assert "is not there. Leave --with out." in complaint(capsys, "--with", "huey")


def test_rivals_and_a_server_need_postgresql(capsys: pytest.CaptureFixture[str]) -> None:
    text = complaint(capsys, "--databases", "sqlite", "--postgres", "postgresql://localhost/postgres")

    assert "Write --databases postgresql,sqlite." in text


def test_an_address_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'nonsense' is no address of a PostgreSQL server" in complaint(capsys, "--postgres", "nonsense")


def test_results_that_could_not_be_written_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert parse(["--json", str(tmp_path / "new.json")]).json == tmp_path / "new.json"

    assert "is a folder. Name a file" in complaint(capsys, "--json", str(tmp_path))
    assert "is in no folder that there is" in complaint(capsys, "--json", str(tmp_path / "no" / "new.json"))


def test_a_file_that_may_not_be_written_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write anything

    assert "may not be written." in complaint(capsys, "--json", str(tmp_path / "new.json"))


def test_a_word_that_is_no_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--job" in complaint(capsys, "--job", "100")


def test_the_command_leaves_with_the_line_and_code_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--jobs", "0"], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 2
    assert "--jobs" in done.stderr
    assert "'0' must be a whole number" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_server_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--postgres", f"host={tmp_path} dbname=postgres"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert "--postgres" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_page_tells_every_option_and_every_workload() -> None:
    told = set(re.findall(r"^\| `([\w-]+)", PAGE.read_text(), re.MULTILINE))
    known = {option for action in make_parser()._actions for option in action.option_strings}

    assert told == known - {"-h", "--help"} | set(WORKLOADS)
