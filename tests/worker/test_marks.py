"""ScanMarks: which claims go on from where the last one got to, and when everything is looked at again."""

import math
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from django_jobqueue.databases.claiming import ClaimRequest, Mark
from django_jobqueue.managers.claim import ClaimedJob
from django_jobqueue.models import Job
from django_jobqueue.worker import Worker
from django_jobqueue.worker.marks import KEEP, LANES, LONGEST, PAUSE, PAUSE_WITH_KEYS, ScanMarks
from tests.moves.factories import ago
from tests.waiting import eventually
from tests.worker.handlers import DONE, Handlers, standing, touches


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def marks(clock: Clock) -> ScanMarks:
    return ScanMarks(clock)


def mark(queue: str = "default", priority: int = 0, second: int = 0) -> Mark:
    return Mark(queue, priority, datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC), uuid.uuid4())


def jobs(count: int, lock_key: str | None = None) -> list[ClaimedJob]:
    return [
        ClaimedJob(uuid.uuid4(), 1, "tests:touch", "default", 0, 1, 3, 0, lock_key, "{}", "{}")
        for _ in range(count)
    ]


def learn(
    marks: ScanMarks,
    *found: Mark,
    took: float = 0.01,
    count: int = 10,
    lock_key: str | None = None,
    suspects: bool = True,
) -> tuple[Mark, ...]:
    """A claim of up to ten that gave ``count`` jobs; what it began at."""
    begun = marks.ahead()
    request = ClaimRequest(worker_id="w", limit=10, lease=60, marks=begun, suspects=suspects)
    marks.learn(request, jobs(count, lock_key), found, took)
    return begun


def test_the_first_claim_is_whole_and_the_next_goes_on_from_the_last_job(marks: ScanMarks) -> None:
    here = mark()
    assert learn(marks, here) == ()
    assert marks.ahead() == (here,)


def test_a_marked_claim_moves_its_lane_and_leaves_the_others(marks: ScanMarks) -> None:
    a, b = mark("a"), mark("b")
    learn(marks, a, b)
    further = mark("a", second=1)
    learn(marks, further)
    assert set(marks.ahead()) == {further, b}


def test_one_queue_at_two_priorities_is_two_lanes(marks: ScanMarks) -> None:
    low, high = mark(priority=0), mark(priority=5)
    learn(marks, high, low)
    assert set(marks.ahead()) == {high, low}


@pytest.mark.parametrize(
    ("took", "pause"), [(0.001, 0.001 * PAUSE), (0.02, 0.02 * PAUSE), (0.3, LONGEST), (9.0, LONGEST)]
)
def test_everything_is_looked_at_again_after_a_multiple_of_what_that_takes_but_soon(
    marks: ScanMarks, clock: Clock, took: float, pause: float
) -> None:
    learn(marks, mark(), took=took)
    clock.now += pause * 0.99
    assert marks.ahead()
    clock.now += pause * 0.02
    assert marks.ahead() == ()


def test_marked_claims_put_the_next_look_at_everything_off_by_nothing(marks: ScanMarks, clock: Clock) -> None:
    learn(marks, mark(), took=0.3)
    for _ in range(4):
        clock.now += LONGEST / 5
        assert learn(marks, mark(), took=0.3)
    clock.now += LONGEST / 5
    assert marks.ahead() == ()


def test_after_a_marked_claim_there_is_patience_only_until_everything_is_looked_at(
    marks: ScanMarks, clock: Clock
) -> None:
    learn(marks, mark(), took=0.02)
    assert (marks.patience(), marks.saw_all) == (math.inf, True)
    learn(marks, count=0)
    assert not marks.saw_all
    assert marks.patience() == pytest.approx(0.2)
    clock.now += 0.3
    assert marks.patience() == 0
    assert learn(marks, count=0) == ()
    assert marks.patience() == math.inf


def test_a_lane_that_gives_nothing_keeps_its_mark_for_a_while(marks: ScanMarks, clock: Clock) -> None:
    here, busy = mark(), mark("busy")
    learn(marks, here, busy)
    began = clock.now
    while clock.now <= began + KEEP - LONGEST:
        clock.now += LONGEST
        assert learn(marks, busy, took=9) == ()
        assert set(learn(marks, count=0)) == {here, busy}
    clock.now += LONGEST
    learn(marks, busy, took=9)
    assert learn(marks, count=0) == (busy,)


def test_a_look_at_everything_may_set_a_mark_back(marks: ScanMarks, clock: Clock) -> None:
    learn(marks, mark(second=30))
    clock.now += LONGEST
    back = mark(second=1)
    learn(marks, back)
    assert marks.ahead() == (back,)


def test_without_marks_every_claim_is_whole(marks: ScanMarks) -> None:
    for _ in range(3):
        assert learn(marks) == ()
        assert marks.saw_all


def test_of_many_lanes_those_that_gave_jobs_lately_are_remembered(marks: ScanMarks) -> None:
    old, busy = mark("old"), mark("busy")
    learn(marks, busy, old)
    learn(marks, mark("busy", second=1))
    learn(marks, *(mark(f"q{n}") for n in range(LANES - 1)))
    assert len(marks.ahead()) == LANES
    assert {one.queue for one in marks.ahead()} >= {"busy"}
    assert old not in marks.ahead()


def test_lock_keys_ask_for_a_look_at_everything_soon(marks: ScanMarks, clock: Clock) -> None:
    learn(marks, mark(), took=0.02, lock_key="k")
    clock.now += 0.02 * PAUSE_WITH_KEYS * 1.01
    assert marks.ahead() == ()


def test_so_does_a_lock_key_that_was_freed(marks: ScanMarks, clock: Clock) -> None:
    learn(marks, mark(), took=0.02)
    clock.now += 0.02 * PAUSE_WITH_KEYS * 1.01
    assert marks.ahead()
    marks.key_freed()
    assert marks.ahead() == ()
    learn(marks, mark(), took=0.02)
    marks.key_freed()
    assert marks.ahead()  # not again before this one has had its time


def test_nothing_is_taken_from_behind_a_suspect_that_waits_for_a_calm_worker(marks: ScanMarks) -> None:
    learn(marks, mark())
    learn(marks, mark(), suspects=False)
    assert marks.ahead()
    marks = ScanMarks()
    learn(marks, mark(), count=9, suspects=False)
    assert marks.ahead() == ()


# In a worker.


@pytest.mark.django_db(transaction=True)
def test_what_no_claim_from_the_marks_can_see_is_found_while_a_backlog_lasts(
    start_worker: Callable[..., Worker], handlers: Handlers
) -> None:
    hidden = {"urgent", "elsewhere", "old"}
    ran: set[str] = set()

    def note(name: str) -> None:
        if not ran:
            Job.objects.enqueue(name_of_type, {"name": "urgent"}, priority=50)
            elsewhere = Job.objects.enqueue(name_of_type, {"name": "elsewhere"}, queue="elsewhere")
            old = Job.objects.enqueue(name_of_type, {"name": "old"})
            Job.objects.filter(pk__in=[old.pk, elsewhere.pk]).update(run_after=ago(3600))
        ran.add(name)
        if name == "plain" and not ran > hidden:
            Job.objects.enqueue(name_of_type, {"name": "plain"})  # it lasts until all of them ran

    name_of_type = handlers.add(note)
    Job.objects.enqueue_many([(name_of_type, {"name": "plain"})] * 500)
    start_worker(threads=1)

    eventually(lambda: ran > hidden)
    eventually(lambda: set(standing()) == {DONE})


@pytest.mark.django_db(transaction=True)
def test_a_drain_ends_only_after_a_look_at_everything(
    start_worker: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_jobqueue.worker.marks.PAUSE", 1e9)
    monkeypatch.setattr("django_jobqueue.worker.marks.LONGEST", 2.0)
    touches(1_000, queue="first", priority=1)
    touches(5, queue="second")
    worker = start_worker(threads=1, drain=True)

    eventually(worker.poller.drained.is_set)
    assert standing() == {DONE: 1_005}
