"""The parts of a worker by themselves: Board, Holdings, Pace, Backoff, Wakeup."""

import threading
import uuid
from time import monotonic
from typing import Any

import pytest
from django.db import DatabaseError, connection

from django_jobqueue.attempts import Attempt
from django_jobqueue.managers.claim import ClaimedJob
from django_jobqueue.models import Job
from django_jobqueue.worker.board import SIZE, SLOTS, Board
from django_jobqueue.worker.holdings import Holdings
from django_jobqueue.worker.options import WorkerOptions
from django_jobqueue.worker.pool import MOST_AHEAD, Pace
from django_jobqueue.worker.service import Backoff, Service
from django_jobqueue.worker.turns import Turns
from django_jobqueue.worker.wakeup import Wakeup, make_wakeup


def attempt(claimed: float | None = None, fence: int = 1) -> Attempt:
    job = ClaimedJob(uuid.uuid4(), fence, "tests:touch", "default", 0, 1, 3, 0, None, "{}", "{}")
    return Attempt(job, "me", monotonic() if claimed is None else claimed)


# Board.


def test_a_board_tells_what_has_started_and_for_how_long() -> None:
    memory = bytearray(SIZE)
    board, other_side = Board(memory), Board(memory)
    job_id = uuid.uuid4()
    slot = board.take()
    assert other_side.started() == []
    board.start(slot, job_id, monotonic() - 5)

    [(found, age)] = other_side.started()
    assert found == job_id
    assert 5 <= age < 10
    board.give(slot)
    assert other_side.started() == []


def test_a_board_has_a_slot_for_each_job_held_and_no_more() -> None:
    board = Board.new(bytearray(SIZE))
    slots = [board.take() for _ in range(SLOTS)]
    assert (board.free, len(set(slots))) == (0, SLOTS)
    with pytest.raises(IndexError):
        board.take()
    board.give(slots[0])
    assert board.take() == slots[0]


def test_a_board_counts_the_lapses_before_a_renewal() -> None:
    board = Board.new(bytearray(SIZE))
    start, lapses = board.renewal
    assert lapses == 0
    board.renewed(start + 5, start + 5.1, lease=10)
    assert board.renewal == (start + 5, 0)
    board.renewed(start + 14.9, start + 15.1, lease=10)  # sent in time, answered too late to be sure
    assert board.renewal == (start + 14.9, 1)


def test_a_board_tells_the_place_among_the_workers() -> None:
    memory = bytearray(SIZE)
    board = Board.new(memory)
    assert board.crowd == (0, 0)
    Board(memory).placed(7, 50)
    board.renewed(monotonic(), monotonic(), lease=10)
    assert (board.crowd, board.started(), board.left_with(0)) == ((7, 50), [], False)


# Holdings.


def board_of(age: float) -> Board:
    """The board of a worker that was last renewed, or started, so many seconds ago."""
    board = Board.new(bytearray(SIZE))
    board.renewed(monotonic() - age, monotonic() - age, lease=1)
    return board


def test_a_job_may_start_while_its_lease_is_known_to_hold() -> None:
    holdings = Holdings(board_of(age=10.5), lease=10)
    fresh, old = attempt(), attempt(monotonic() - 11)
    holdings.add([fresh, old])
    assert holdings.is_held(fresh)
    assert not holdings.is_held(old)

    holdings.board.renewed(monotonic() - 1, monotonic() - 1, 10)
    assert holdings.is_held(old)


def test_after_a_lapse_nothing_starts_until_the_table_was_asked() -> None:
    holdings = Holdings(Board.new(bytearray(SIZE)), lease=10)
    kept, lost = attempt(), attempt()
    holdings.add([kept, lost])
    now = monotonic()
    holdings.board.renewed(now - 30, now - 30, 10)
    holdings.board.renewed(now, now, 10)
    assert holdings.in_doubt
    assert not holdings.is_held(kept)

    holdings.compare([kept, lost], 1, {kept.job.id: (1, False)})
    holdings.remove([lost])
    assert not holdings.in_doubt
    assert holdings.is_held(kept)
    assert (kept.lost, lost.lost) == (False, True)
    assert not holdings.wait_until_held(lost, threading.Event())


def test_another_fence_is_another_claim() -> None:
    holdings = Holdings(Board.new(bytearray(SIZE)), lease=10)
    stale = attempt(fence=1)
    holdings.add([stale])
    holdings.compare(holdings.attempts(), 0, {stale.job.id: (2, False)})
    assert stale.lost


def test_a_claim_that_was_under_way_when_the_table_was_asked_is_not_lost() -> None:
    holdings = Holdings(Board.new(bytearray(SIZE)), lease=10)
    asked = holdings.attempts()
    sent_before = attempt(claimed=monotonic() - 1)
    holdings.add([sent_before])
    holdings.compare(asked, 0, {})
    assert not sent_before.lost
    assert holdings.is_held(sent_before)


def test_a_claim_that_is_handed_over_after_a_lapse_does_not_start_until_the_table_was_asked() -> None:
    holdings = Holdings(Board.new(bytearray(SIZE)), lease=10)
    late = attempt()  # its claim was sent before the lapse
    now = monotonic()
    holdings.board.renewed(now - 30, now - 30, 10)
    holdings.board.renewed(now, now, 10)
    holdings.compare(holdings.attempts(), holdings.lapses, {})  # the others were asked about already
    holdings.add([late])
    assert holdings.in_doubt
    assert not holdings.is_held(late)


def test_a_cancel_is_noted() -> None:
    holdings = Holdings(Board.new(bytearray(SIZE)), lease=10)
    one = attempt()
    holdings.add([one])
    holdings.compare([one], 0, {one.job.id: (1, True)})
    assert one.context().cancelled


def test_waiting_for_a_renewal_ends_with_the_worker() -> None:
    holdings = Holdings(board_of(age=5), lease=1)
    one, stop = attempt(monotonic() - 5), threading.Event()
    threading.Timer(0.1, stop.set).start()
    assert not holdings.wait_until_held(one, stop)


def test_slots_come_back_when_jobs_are_settled() -> None:
    holdings = Holdings(Board.new(bytearray(SIZE)), lease=10)
    some = [attempt() for _ in range(3)]
    holdings.add(some)
    holdings.begin(some[0])
    assert (len(holdings), holdings.room, holdings.ids) == (3, SLOTS - 3, {one.job.id for one in some})
    assert not holdings.wait_until_empty(0)

    holdings.remove(some)
    holdings.remove(some)
    assert (len(holdings), holdings.room, holdings.board.started()) == (0, SLOTS, [])
    assert holdings.wait_until_empty(0)


# Pace.


def test_nothing_waits_until_it_is_known_how_long_jobs_run() -> None:
    assert Pace().ahead(8) == 0


@pytest.mark.parametrize(
    ("seconds", "width", "ahead"), [(10, 8, 0), (1, 8, 0), (0.05, 8, 16), (0, 8, MOST_AHEAD)]
)
def test_as_many_wait_as_start_within_a_tenth_of_a_second(seconds: float, width: int, ahead: int) -> None:
    pace = Pace()
    pace.ran(seconds)
    assert pace.ahead(width) == ahead


def test_one_job_that_was_held_up_does_not_make_the_others_long_ones() -> None:
    pace = Pace()
    for _ in range(100):
        pace.ran(20e-6)
    pace.ran(0.2)
    assert pace.ahead(8) == MOST_AHEAD


def test_when_jobs_turn_out_long_a_dozen_of_them_tell() -> None:
    pace = Pace()
    pace.ran(20e-6)
    for _ in range(15):
        pace.ran(0.2)
    assert pace.ahead(8) <= 8


# Backoff.


def test_pauses_grow_to_their_bound_and_begin_anew_after_success(caplog: pytest.LogCaptureFixture) -> None:
    backoff = Backoff("trying", 2.0)
    pauses = [backoff.failed(DatabaseError("away")) for _ in range(40)]
    assert 0.1 <= pauses[0] <= 0.2
    assert all(1 <= pause <= 2 for pause in pauses[5:])
    assert len(set(pauses[5:])) > 30  # workers do not come back in step
    assert "The database failed while trying" in caplog.text

    backoff.worked()
    assert "The database is back: trying goes on after 40 failures" in caplog.text
    assert backoff.failed(DatabaseError("away")) <= 0.2


#: What each process of a worker tries, and the longest pause of each: claim, write, renew, take care, wait.
TRIED = (5.0, 5.0, 3.75, 7.5, 5.0)


def an_hour_of_outage(most: float, *, works_between: bool) -> int:
    """Try and fail for an hour of simulated time; how often."""
    now, tries = 0.0, 0
    backoff = Backoff("trying", most, clock=lambda: now)
    while now < 3_600:
        now += backoff.failed(DatabaseError("away"))
        tries += 1
        if works_between:
            backoff.worked()
    backoff.worked()
    return tries


@pytest.mark.parametrize("works_between", [False, True])
def test_an_hour_without_a_database_writes_few_lines(
    caplog: pytest.LogCaptureFixture, works_between: bool
) -> None:
    tries = sum(an_hour_of_outage(most, works_between=works_between) for most in TRIED)

    assert tries > 2_000
    assert 5 <= len(caplog.records) < 200


def test_trouble_after_a_time_of_calm_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    backoff = Backoff("trying", 5.0, clock=lambda: now)
    for _ in range(100):
        now += backoff.failed(DatabaseError("away"))
    backoff.worked()
    caplog.clear()

    now += 600
    backoff.failed(DatabaseError("away again"))

    assert "away again" in caplog.text


# Service.


class Waits(Service):
    def run(self) -> None:
        self.stopping.wait(30)


class Dies(Service):
    def run(self) -> None:
        raise RuntimeError("a bug")


def test_a_service_may_be_stopped_before_its_start_and_twice() -> None:
    deaths: list[str] = []
    service = Waits("waits", deaths.append)
    assert service.stop(1)
    service = Waits("waits", deaths.append)
    service.start()
    assert service.stop(5)
    assert service.stop(5)
    assert deaths == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_death_of_a_service_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    died = threading.Event()
    service = Dies("dies", lambda name: died.set())
    service.start()
    assert died.wait(5)
    assert service.stop(5)
    assert "The worker's dies stopped by an error" in caplog.text


# Wakeup.


def wakeup_for(queues: list[str], **options: Any) -> Wakeup:
    return make_wakeup(WorkerOptions(queues=queues, **options), Turns(lambda: (0, 0)))


@pytest.fixture(params=["plain", "database"])
def wakeup(request: pytest.FixtureRequest, transactional_db: None) -> Any:
    wakeup = Wakeup() if request.param == "plain" else wakeup_for(["a", "b"])
    yield wakeup
    wakeup.close()


def test_a_wait_ends_at_its_time(wakeup: Wakeup) -> None:
    wakeup.wait(0.01)  # the first may say "look once"
    begun = monotonic()
    assert wakeup.wait(0.2) is False
    assert 0.2 <= monotonic() - begun < 5


def test_a_word_from_within_ends_a_wait_or_the_next(wakeup: Wakeup) -> None:
    wakeup.wait(0.01)
    threading.Timer(0.1, wakeup.wake).start()
    begun = monotonic()
    assert wakeup.wait(30)
    wakeup.wake()
    assert wakeup.wait(30, listen=False)
    assert monotonic() - begun < 10


@pytest.mark.django_db(transaction=True)
def test_a_new_job_ends_a_wait() -> None:
    waited: list[bool] = []
    listening, done = threading.Event(), threading.Event()

    def listener() -> None:
        wakeup = wakeup_for(["a"])
        wakeup.wait(0.01)
        listening.set()
        waited.append(wakeup.wait(30))
        wakeup.close()
        connection.close()
        done.set()

    thread = threading.Thread(target=listener)
    thread.start()
    assert listening.wait(10)
    Job.objects.enqueue("tests:touch", queue="a")
    assert done.wait(10)
    thread.join()
    assert waited == [True]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_job_of_another_queue_does_not_end_a_wait() -> None:
    wakeup = wakeup_for(["a"])
    wakeup.wait(0.01)
    Job.objects.enqueue("tests:touch", queue="b")
    assert wakeup.wait(0.3) is False
    wakeup.close()


def test_a_first_renewal_after_a_whole_lease_leaves_doubt() -> None:
    # A process that was stopped before its first renewal has as little right to its jobs as a later one.
    board = Board.new(bytearray(SIZE))
    holdings = Holdings(board, lease=2)
    started, _ = board.renewal
    one = attempt()
    holdings.add([one])

    board.renewed(started + 3, started + 3, 2)

    assert holdings.in_doubt
    assert not holdings.is_held(one)
