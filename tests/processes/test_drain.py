"""Many workers at once: each job runs exactly once, and nobody has anything to complain about."""

from collections.abc import Callable

import pytest

from tests.jobsapp.ledger import Ledger, overlaps
from tests.processes.jobs import DONE, ids, standing, touches
from tests.processes.workers import RunWorker
from tests.waiting import equals

pytestmark = pytest.mark.usefixtures("quiet_server")


@pytest.mark.parametrize(("commands", "processes"), [(1, 8), (4, 2)])
def test_eight_worker_processes_drain_4000_jobs_each_exactly_once(
    start_worker: Callable[..., RunWorker], ledger: Ledger, commands: int, processes: int
) -> None:
    jobs = touches(4_000)

    workers = [start_worker("--drain", "--processes", str(processes)) for _ in range(commands)]

    assert [worker.wait(60) for worker in workers] == [0] * commands
    assert standing() == {DONE: 4_000}
    assert ledger.times_run() == dict.fromkeys(ids(jobs), 1)
    assert ledger.ends() == 4_000
    assert [worker.trouble for worker in workers] == [[]] * commands
    started = [len(worker.worker_ids) for worker in workers]
    assert started == [processes] * commands


def test_eight_workers_never_run_two_jobs_of_one_lock_key_at_once(
    start_worker: Callable[..., RunWorker], ledger: Ledger
) -> None:
    keys = [f"key-{number}" for number in range(5)]
    for key in keys:
        touches(400, lock_key=key)

    workers = [start_worker("--processes", "4", "--threads", "2") for _ in range(2)]

    equals({DONE: 2_000}, standing, within=60, every=0.2)
    assert [worker.stop() for worker in workers] == [0, 0]
    runs = ledger.runs()
    assert len(runs) == 2_000
    assert {run.facts["key"] for run in runs} == set(keys)
    assert overlaps(runs, by="key") == []
    assert len(ledger.pids()) > 1
    assert [worker.trouble for worker in workers] == [[], []]
