"""A worker inside this process: start, pause, resume, wait_for_active, stop."""

import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from django.db import connection, connections

from django_jobqueue.models import Job
from django_jobqueue.models import Worker as WorkerRow
from django_jobqueue.worker import Worker
from django_jobqueue.worker.poller import Poller
from django_jobqueue.worker.settle import Settler
from tests.jobsapp.ledger import Ledger
from tests.waiting import equals, eventually, outlast
from tests.worker.handlers import DONE, PENDING, RUNNING, Handlers, fresh, standing, status, touches

Start = Callable[..., Worker]


def wait_jobs(count: int, gate: Path, **options: object) -> list[Job]:
    return Job.objects.enqueue_many([("tests:wait", {"gate": str(gate)})] * count, **options)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


def test_it_runs_what_is_due_and_what_comes(start_worker: Start, ledger: Ledger) -> None:
    touches(20)
    start_worker()
    equals({DONE: 20}, standing)
    touches(20)
    equals({DONE: 40}, standing)
    assert set(ledger.times_run().values()) == {1}


def test_a_claim_that_was_answered_late_is_given_back_and_starts_by_another_one(
    start_worker: Start, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease may be over before the first renewal, and others may have the job by then."""
    slow = [0.6]
    claim = Job.objects.__class__.claim_and_mark

    def claim_and_mark(jobs: Any, request: Any) -> Any:
        answer = claim(jobs, request)
        if answer[0] and slow:
            outlast(slow.pop())
        return answer

    monkeypatch.setattr(Job.objects.__class__, "claim_and_mark", claim_and_mark)
    [job] = touches(1)
    start_worker(lease=2)
    equals(DONE, lambda: status(job))
    assert not slow
    assert (fresh(job).attempts, fresh(job).fence) == (1, 2)
    assert set(ledger.times_run().values()) == {1}


def test_a_paused_worker_claims_nothing_and_gives_back_what_has_not_started(
    start_worker: Start, ledger: Ledger, gate: Path
) -> None:
    worker = start_worker(threads=2)
    running = wait_jobs(2, gate)
    equals(2, ledger.starts)

    worker.pause()
    later = touches(5)
    outlast(0.3)
    assert [status(job) for job in later] == [PENDING] * 5
    assert not worker.wait_for_active(timeout=0.1)
    gate.touch()
    assert worker.wait_for_active(timeout=20)
    assert worker.active == 0
    assert [status(job) for job in running + later] == [DONE] * 2 + [PENDING] * 5
    assert [fresh(job).attempts for job in later] == [0] * 5

    worker.resume()
    equals({DONE: 7}, standing)


def test_pause_gives_back_jobs_that_wait_for_a_thread(
    start_worker: Start, ledger: Ledger, gate: Path, tmp_path: Path
) -> None:
    worker = start_worker(threads=1)
    for _ in range(50):
        Job.objects.enqueue_many([("tests:nothing", {})] * 300)
        assert eventually(lambda: set(standing()) == {DONE})
        [first] = wait_jobs(1, gate, priority=1)
        behind = touches(10)
        equals(RUNNING, lambda first=first: status(first), every=0.002)
        if RUNNING in {status(job) for job in behind}:
            break
        gate.touch()
        eventually(lambda: set(standing()) == {DONE})
        gate.unlink()
    worker.pause()

    equals([PENDING] * 10, lambda: [status(job) for job in behind])
    assert [fresh(job).attempts for job in behind] == [0] * 10
    gate.touch()
    assert worker.wait_for_active(timeout=20)
    worker.resume()
    equals({DONE}, lambda: set(standing()))


def test_wait_for_active_is_false_at_the_timeout_and_true_when_nothing_runs(
    start_worker: Start, ledger: Ledger, gate: Path
) -> None:
    worker = start_worker()
    assert worker.wait_for_active(timeout=0)
    wait_jobs(1, gate)
    eventually(ledger.starts)

    begun = monotonic()
    assert not worker.wait_for_active(timeout=0.3)
    assert 0.3 <= monotonic() - begun < 5
    gate.touch()
    assert worker.wait_for_active(timeout=20)


def test_stop_waits_for_running_handlers_and_writes_their_outcomes(
    start_worker: Start, ledger: Ledger, gate: Path
) -> None:
    worker = start_worker()
    [job] = wait_jobs(1, gate)
    eventually(ledger.starts)
    opener = threading.Timer(0.3, gate.touch)
    opener.start()

    assert worker.stop(timeout=20)

    opener.join()
    assert (status(job), fresh(job).attempts) == (DONE, 1)
    assert not WorkerRow.objects.filter(pk=worker.id).exists()
    assert not jobqueue_threads()


def test_stop_with_a_job_that_does_not_end_is_false_and_leaves_it_to_the_lease(
    start_worker: Start, ledger: Ledger, gate: Path
) -> None:
    worker = start_worker(lease=1.5)
    [job] = wait_jobs(1, gate)
    eventually(ledger.starts)

    assert worker.stop(timeout=0.2) is False
    assert (status(job), fresh(job).worker_id) == (RUNNING, worker.id)
    other = start_worker(lease=1.5)
    equals(other.id, lambda: fresh(job).worker_id)
    gate.touch()
    equals(DONE, lambda: status(job))
    assert fresh(job).worker_id == other.id
    assert worker.stop(timeout=20)  # the handler of the first is over as well, and has written nothing
    assert len(ledger.runs(job)) == 2


def test_stop_gives_back_async_jobs_that_have_not_started(
    start_worker: Start, ledger: Ledger, gate: Path
) -> None:
    worker = start_worker(async_concurrency=3)
    jobs = Job.objects.enqueue_many([("tests:async_wait", {"gate": str(gate)})] * 6)
    equals(3, ledger.starts)
    threading.Timer(0.3, gate.touch).start()
    assert worker.stop(timeout=20)
    assert sorted(status(job) for job in jobs) == [PENDING] * 3 + [DONE] * 3
    assert sum(fresh(job).attempts for job in jobs) == 3


def test_a_worker_is_started_once(start_worker: Start) -> None:
    worker = start_worker()
    with pytest.raises(RuntimeError, match="Make a new Worker"):
        worker.start()


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_was_never_started_can_be_stopped() -> None:
    assert Worker().stop(timeout=1)


def test_stop_may_be_called_twice(start_worker: Start) -> None:
    worker = start_worker()
    assert worker.stop(timeout=20)
    assert worker.stop(timeout=20)


def test_it_leaves_no_connection_and_no_thread_behind(start_worker: Start, ledger: Ledger) -> None:
    Job.objects.enqueue_many([("tests:query", {})] * 30)
    before = sessions()
    worker = start_worker(threads=4)
    equals({DONE: 30}, standing)
    assert worker.stop(timeout=20)
    assert not jobqueue_threads()
    equals(before, sessions, within=2)


def test_leases_are_renewed_while_a_job_runs(start_worker: Start, ledger: Ledger, gate: Path) -> None:
    workers = [start_worker(lease=1.5) for _ in range(2)]
    [job] = wait_jobs(1, gate)
    eventually(ledger.starts)
    outlast(4)
    gate.touch()
    equals(DONE, lambda: status(job))
    assert (fresh(job).attempts, fresh(job).fence, len(ledger.runs())) == (1, 1, 1)
    assert {fresh(job).worker_id} < {worker.id for worker in workers}


def test_nobody_takes_jobs_back_before_a_heartbeat_has_passed_since_its_start(
    start_worker: Start, ledger: Ledger
) -> None:
    [job] = touches(1)
    Job.objects.claim(worker_id="living", lease=1)
    Job.objects.filter(pk=job.pk).update(lease_until="2020-01-01T00:00:00Z")  # as after a long outage

    begun = monotonic()
    start_worker(lease=4)
    [run] = eventually(lambda: ledger.runs(job))
    assert run.start - begun >= 1


def test_long_jobs_are_not_hoarded_while_another_worker_is_free(
    start_worker: Start, ledger: Ledger, gate: Path
) -> None:
    first = start_worker(threads=2)
    Job.objects.enqueue_many([("tests:nothing", {})] * 300)
    equals({DONE}, lambda: set(standing()))
    # It thinks that jobs are short, and takes many; they turn out to be long.
    jobs = wait_jobs(8, gate)
    equals(2, ledger.starts)
    start_worker(threads=6)

    equals(8, ledger.starts, within=10)
    gate.touch()
    equals(8, lambda: [status(job) for job in jobs].count(DONE))
    assert set(ledger.times_run().values()) == {1}
    assert sum(fresh(job).worker_id == first.id for job in jobs) == 2


def test_a_worker_serves_only_its_queues(start_worker: Start) -> None:
    [mail], [other], [late] = (touches(1, queue=queue) for queue in ("mail", "other", "late"))
    start_worker(queues=["mail", "late"], exclude_queues=["late"])
    equals(DONE, lambda: status(mail))
    assert [status(other), status(late)] == [PENDING, PENDING]


def test_a_retry_is_run_when_it_is_due_and_not_at_the_next_poll(
    start_worker: Start, handlers: Handlers
) -> None:
    times: list[float] = []

    def fails_once() -> None:
        times.append(monotonic())
        if len(times) == 1:
            raise ValueError

    name = handlers.add(fails_once, retry=lambda exception, job: 0.3)
    start_worker(poll_interval=30)
    job = Job.objects.enqueue(name)
    equals(DONE, lambda: status(job), within=10)
    assert 0.3 <= times[1] - times[0] < 3


def jobqueue_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("jobqueue-") and one.is_alive()]


def sessions() -> int:
    """Sessions of others on the test database, or open handles on its file."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            return int(cursor.fetchone()[0])
    connection.close()  # while one is open, SQLite keeps the files of all that were closed
    path = str(connections["default"].settings_dict["NAME"])
    links = (one for one in Path("/proc/self/fd").iterdir() if one.exists())
    return sum(str(one.readlink()) == path for one in links)


def test_a_claim_that_is_handed_over_late_is_not_taken_for_a_stray(
    start_worker: Start, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The machine may be so busy that seconds pass between the claim and the moment its jobs are known here.
    looks: list[float] = []
    late = threading.Event()
    look, hand_over = Settler._look, Poller._hand_over

    def counted(self: Settler, now: float) -> None:
        look(self, now)
        looks.append(now)
        if len(looks) >= 4:
            late.set()

    def delayed(self: Poller, attempts: Any) -> None:
        if attempts:
            late.wait(30)
        hand_over(self, attempts)

    monkeypatch.setattr(Settler, "_look", counted)
    monkeypatch.setattr(Poller, "_hand_over", delayed)
    job = Job.objects.enqueue("tests:touch")
    start_worker(threads=1)

    equals(DONE, lambda: status(job))
    assert (Job.objects.get(pk=job.pk).fence, len(ledger.runs())) == (1, 1)


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_with_durable_outcomes_a_job_starts_when_the_one_before_it_is_written(
    start_worker: Start, handlers: Handlers, kind: str
) -> None:
    def count_done() -> int:
        return Job.objects.filter(status=DONE).count()

    async def count_done_async() -> int:
        return await Job.objects.filter(status=DONE).acount()

    name = handlers.add(count_done if kind == "plain" else count_done_async)
    jobs = Job.objects.enqueue_many([(name, {})] * 50)
    start_worker(threads=1, async_concurrency=1, durable_outcomes=True)
    equals({DONE: 50}, standing)
    assert sorted(fresh(job).result for job in jobs) == list(range(50))
