"""--max-jobs and --max-memory: processes are replaced, and no job notices."""

from collections import Counter
from collections.abc import Callable

import pytest

from django_jobqueue.models import Job
from tests.jobsapp.ledger import Ledger
from tests.processes.jobs import DONE, ids, standing, touches
from tests.processes.workers import RunWorker
from tests.waiting import equals

pytestmark = pytest.mark.usefixtures("quiet_server")


def test_a_process_is_replaced_after_max_jobs_and_no_job_is_lost(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    jobs = touches(100)
    worker = start_worker("--max-jobs", "40")

    equals({DONE: 100}, standing)
    assert ledger.times_run() == dict.fromkeys(ids(jobs), 1)
    by_process = Counter(run.pid for run in ledger.runs())
    assert sorted(by_process.values()) == [20, 40, 40]
    assert worker.stop() == 0
    assert worker.trouble == []


def test_a_process_is_replaced_when_it_has_more_than_max_memory(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    worker = start_worker("--max-memory", "300").ready()
    [before] = worker.children
    Job.objects.enqueue("tests:grow", {"mebibytes": 350})
    equals(2, lambda: len(worker.worker_ids))
    jobs = touches(20)

    equals({DONE: 21}, standing)
    assert ledger.times_run() == Counter({run.job: 1 for run in ledger.runs()})
    assert {run.pid for job in jobs for run in ledger.runs(job)} == set(worker.children) != {before}
    assert worker.stop() == 0
    assert worker.trouble == []
