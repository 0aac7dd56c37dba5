"""report:generate, with real files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from django_jobqueue.models import Job, JobStatus
from testproject.exploration.jobs import start_session
from testproject.exploration.models import FIGURES, Document, ExplorationSession
from testproject.outbox.models import OutboxMessage
from testproject.reports.chart import bars, tick_step
from testproject.reports.figures import COLUMNS
from testproject.reports.jobs import generate_report, request_report
from testproject.reports.models import Report

pytestmark = pytest.mark.django_db(transaction=True)

Run = Callable[..., int]


@pytest.fixture
def session(folder: Path, run_due: Run) -> ExplorationSession:
    session = start_session(folder)
    run_due()
    return session


class Page(HTMLParser):
    """The tags of a page, its texts, and whether every element was closed."""

    VOID = {"meta", "line", "rect", "link", "input", "br"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def made(format: str, run_due: Run, filters: dict[str, object] | None = None) -> tuple[Report, str]:
    report = request_report(format, filters or {})
    run_due()
    report.refresh_from_db()
    return report, Path(report.file.path).read_text()


@pytest.mark.usefixtures("session")
def test_a_csv_report_has_a_line_for_each_package(run_due: Run) -> None:
    _, text = made("csv", run_due)
    header, *rows = csv.reader(text.splitlines())
    assert tuple(header) == COLUMNS
    assert {row[0]: int(row[1]) for row in rows} == {".": 2, "birds": 3, "frogs": 2}
    assert sum(int(row[2]) for row in rows) == Document.objects.totals()["lines"]


def test_a_json_report_has_totals_packages_and_what_it_was_narrowed_to(
    session: ExplorationSession, run_due: Run
) -> None:
    _, text = made("json", run_due, {"session_id": session.pk, "kind": "python"})
    report = json.loads(text)
    assert report["filters"] == {"session_id": session.pk, "kind": "python"}
    assert report["totals"] == Document.objects.filter(kind="python").totals()
    assert [one["package"] for one in report["packages"]] == ["birds", ".", "frogs"]
    assert set(report["packages"][0]) == {"package", "files", *FIGURES}


@pytest.mark.usefixtures("session")
def test_an_html_report_is_a_whole_page_with_a_labelled_bar_for_each_package(run_due: Run) -> None:
    _, text = made("html", run_due)
    page = Page(text)
    assert page.open == []
    assert page.tags.count("svg") == 1
    assert page.tags.count("rect") == 3
    assert {"birds", "(top level)", "birds: 21 lines", "Lines by package"} <= set(page.texts)


@pytest.mark.parametrize("format", ["csv", "json", "html"])
def test_a_report_on_nothing_is_a_file_all_the_same(format: str, run_due: Run) -> None:
    report, text = made(format, run_due)
    assert text
    assert report.made_at


def test_what_was_read_is_escaped_in_the_page_and_harmless_in_a_spreadsheet(run_due: Run) -> None:
    session = ExplorationSession.objects.create(root="/x")
    for package in ("<script>alert(1)</script>", "=1+1"):
        Document.objects.create(session=session, path=package, package=package, lines=1)
    page = Page(made("html", run_due)[1])
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.texts
    assert "'=1+1" in {row[0] for row in csv.reader(made("csv", run_due)[1].splitlines())}


@pytest.mark.usefixtures("session")
def test_a_report_that_is_made_again_leaves_one_file(run_due: Run, media: Path) -> None:
    report, _ = made("csv", run_due)
    generate_report.enqueue(report_id=report.pk, format="csv", filters={"package": "frogs"})
    run_due()
    (file,) = (media / "reports").iterdir()
    assert len(file.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("format", "filters"),
    [("pdf", {}), ("csv", {"owner": 1}), ("csv", {"session_id": "x"}), ("csv", []), ("csv", {"id__gt": 0})],
)
def test_a_report_that_cannot_be_made_is_dead_at_once(format: str, filters: object, run_due: Run) -> None:
    report = Report.objects.create(format="csv")
    payload = {"report_id": report.pk, "format": format, "filters": filters}
    job = Job.objects.enqueue("report:generate", payload)
    run_due()
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.DEAD, 1)


def test_the_message_and_its_job_are_there_exactly_if_the_report_is(
    run_due: Run,
) -> None:
    report = request_report("csv", {}, "http://receiver.example/")
    assert run_due(limit=1) == 1
    report.refresh_from_db()
    message = OutboxMessage.objects.get()
    assert message.report == report
    assert message.body["file"] == report.file.name == f"reports/report-{report.pk}.csv"
    assert Job.objects.get(job_type="outbox").payload == {"message_id": str(message.pk)}


def test_a_report_whose_last_step_fails_leaves_neither_message_nor_job_nor_file_name(run_due: Run) -> None:
    report = request_report("csv", {}, "no address")
    assert run_due(limit=1) == 1
    report.refresh_from_db()
    assert not report.file
    assert not OutboxMessage.objects.exists()
    assert not Job.objects.filter(job_type="outbox").exists()
    assert Job.objects.get().errors[0]["exception"] == "ValueError"


def test_a_chart_fits_its_bars_and_has_few_round_ticks() -> None:
    chart = bars([("a", 1_234), ("a label that is far too long for its place", 617), ("none", 0)])
    assert chart.bars[0].end == chart.bars[0].width + chart.left
    assert chart.bars[1].width == pytest.approx(chart.bars[0].width / 2)
    assert chart.bars[1].short_label.endswith("…")
    assert [tick.value for tick in chart.ticks] == [0, 500, 1_000]
    assert [tick_step(most) for most in (0, 6, 7, 12, 13, 60, 999_999)] == [1, 1, 2, 2, 5, 10, 200_000]
