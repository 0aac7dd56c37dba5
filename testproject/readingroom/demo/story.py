"""What happens in the demo, step by step, and whether it ended as it should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

from django_jobqueue.models import Job, JobStatus
from testproject.exploration.folders import plan, standard_library
from testproject.exploration.jobs import start_session
from testproject.exploration.models import ExplorationSession
from testproject.outbox.models import Delivery, OutboxMessage
from testproject.readingroom.jobs import clean_up
from testproject.reports.jobs import request_report
from testproject.reports.models import Report
from testproject.search.jobs import search

from .display import Display
from .site import Site
from .watch import Watch
from .worker import Worker

#: Seconds after which something must be wrong.
LIMIT = 110
#: Seconds between two looks at the jobs.
PAUSE = 0.15

QUERIES = ["event loop", "regular expression", '"abstract base class"', "parse xml", "daylight saving time"]


class Failed(Exception):
    """The demo did not end as it should."""


@dataclass
class Story:
    """The demo, told once."""

    folder: Path
    site: Site
    worker: Worker
    display: Display
    is_interrupted: Callable[[], bool]
    watch: Watch = field(default_factory=Watch)
    begun: float = field(default_factory=monotonic)
    session: ExplorationSession = field(init=False)
    reports: list[Report] = field(default_factory=list)

    def tell(self) -> None:
        """All five kinds, a retry, a dead letter and its repair. Raises ``Failed``."""
        self.explore()
        self.search_and_report()
        self.repair()

    def explore(self) -> None:
        """One job a package, and the cleanup of last season beside them."""
        self.session = start_session(self.folder)
        clean_up.enqueue(retention_days=30)
        self.display.say(f"Exploring {self.folder}: {len(plan(self.folder))} jobs, enqueued together")
        self.wait_until_quiet()

    def search_and_report(self) -> None:
        """Searches, and a report in each format whose news goes to receivers of all kinds."""
        queries = (
            QUERIES if self.folder == standard_library() else [part.package for part in plan(self.folder)]
        )
        search.enqueue_many({"query": query, "limit": 10} for query in queries)
        self.site.troubles.once("busy", "503 Service Unavailable")
        self.site.troubles.always("moved", "404 Not Found")
        for format, receiver in (("csv", "library"), ("json", "busy"), ("html", "moved")):
            filters = {"session_id": self.session.pk}
            self.reports.append(request_report(format, filters, self.site.webhook(receiver)))
        self.display.say(
            "Searching, and reporting to three webhooks: one is well, one busy (503), one gone (404)"
        )
        self.wait_until_quiet()

    def repair(self) -> None:
        """The receiver that was gone is back; its dead letter is sent again."""
        dead = Job.objects.filter(job_type="outbox", status=JobStatus.DEAD)
        if dead.count() != 1:
            raise Failed(f"One message should be a dead letter now; {dead.count()} are.")
        self.site.troubles.over("moved")
        call = "Job.objects.filter(job_type='outbox', status=JobStatus.DEAD).retry()"
        self.display.say(f"The receiver is back. {call}: {dead.retry()}")
        self.wait_until_quiet()

    def wait_until_quiet(self) -> None:
        """Show what happens until no job is left to run."""
        while True:
            if self.is_interrupted():
                raise KeyboardInterrupt
            events = self.watch.look()
            self.display.show(self.watch.figures, events)
            if not self.watch.active:
                return
            if self.worker.exit_code is not None:
                raise Failed(f"The worker has ended with exit code {self.worker.exit_code}.")
            if monotonic() - self.begun > LIMIT:
                raise Failed(f"{self.watch.active} jobs are not finished after {LIMIT} s.")
            sleep(PAUSE)

    def checks(self) -> list[tuple[str, bool]]:
        """What must be true in the end."""
        messages = list(OutboxMessage.objects.filter(report__in=self.reports))
        keys = {str(message.pk) for message in messages}
        return [
            ("every job is done", self._is_every_job_done()),
            ("every file was read once", self._is_every_file_read()),
            ("every report is a file", all(Path(report.file.path).stat().st_size for report in self._made())),
            ("a busy receiver was tried again", self._has_error(" 503 ", times=1)),
            ("a refusal was a dead letter, and repaired", self._has_error(" 404 ", times=1)),
            ("every message was delivered", len(messages) == 3 and all(one.delivered_at for one in messages)),
            ("every message arrived exactly once", self._arrived() == sorted(keys)),
            ("what was old is gone, and only that", list(ExplorationSession.objects.all()) == [self.session]),
        ]

    def _is_every_job_done(self) -> bool:
        return all(
            one.total and one.total == one.statuses[JobStatus.DONE] for one in self.watch.figures.values()
        )

    def _is_every_file_read(self) -> bool:
        wanted = sum(len(part.files(self.folder)) for part in plan(self.folder))
        results = Job.objects.filter(job_type="exploration:run").values_list("result", flat=True)
        passed_over = sum(result["unreadable"] for result in results if result)
        return 0 < wanted == self.session.documents.count() + passed_over

    def _made(self) -> list[Report]:
        asked = [report.pk for report in self.reports]
        return list(Report.objects.filter(pk__in=asked, made_at__isnull=False).order_by("pk"))

    def _has_error(self, text: str, *, times: int) -> bool:
        errors = [error for job in Job.objects.filter(job_type="outbox") for error in job.errors]
        return sum(text in error["message"] for error in errors) == times

    def _arrived(self) -> list[str]:
        return sorted(Delivery.objects.values_list("key", flat=True))

    def summary(self) -> list[str]:
        """What was done, in lines."""
        totals = self.session.documents.totals()
        lines = [f"{'kind':<18}{'jobs':>6}{'retries':>9}{'handler seconds':>17}"]
        for kind, figures in self.watch.figures.items():
            lines.append(f"{kind:<18}{figures.total:>6}{figures.retries:>9}{seconds_of(kind):>17.1f}")
        lines.append("")
        lines.append(
            f"{totals['files']:,} files read into as many documents: {totals['lines']:,} lines, "
            f"{totals['definitions']:,} definitions, {totals['headings']:,} headings, "
            f"{totals['links']:,} links."
        )
        retries = sum(figures.retries for figures in self.watch.figures.values())
        lines.append(
            f"Retries: {retries}; dead letters, repaired: 1; {monotonic() - self.begun:.1f} seconds in all."
        )
        lines += [f"Report: {report.file.path}" for report in self._made()]
        return lines


def seconds_of(kind: str) -> float:
    """How long the handlers of a kind ran, added up."""
    jobs = Job.objects.filter(job_type=kind, finished_at__isnull=False, run_started_at__isnull=False)
    spans = jobs.values_list("run_started_at", "finished_at")
    return sum((end - start).total_seconds() for start, end in spans)
