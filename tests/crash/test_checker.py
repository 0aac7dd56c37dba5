"""Each rule of the checker breaks on what it is there for, and is content with what is right."""

from dataclasses import replace

from .checker import Evidence, check
from .ledger import OK, Enqueued, Fault, Ledger, Run
from .table import Change, Row, Table

JOB = "01890000-0000-7000-8000-000000000001"
RUN = Run(JOB, 1, 0, 10, 1, "crash:work", None, 5.0, 6.0, OK)
ROW = Row(JOB, 0, "done", 1, 3, 1, 0, 0, 0, 0, 1, True, False)
CHANGES = [Change(JOB, "pending", "running", 1), Change(JOB, "running", "done", 1)]
ENQUEUED = Enqueued(0, "committed", ["done"], "default", "crash:work")
PAUSE = Fault("SIGSTOP", 4.0, 7.0, [10], suspends=True, kills=False)


def broken(
    *,
    runs: tuple[Run, ...] = (RUN,),
    rows: tuple[Row, ...] = (ROW,),
    changes: list[Change] = CHANGES,
    enqueued: tuple[Enqueued, ...] = (ENQUEUED,),
    faults: tuple[Fault, ...] = (),
    effects: tuple[tuple[int, int], ...] = (),
) -> str:
    """What the checker says of this."""
    ledger = Ledger(list(runs), {one.n: one for one in enqueued}, list(faults))
    return "\n".join(check(Evidence(ledger, Table(list(rows), changes, list(effects)), lease=2.0)).broken)


def test_a_job_that_ran_once_and_is_done_breaks_nothing() -> None:
    assert broken() == ""


def test_a_committed_job_that_is_not_in_the_table_is_lost() -> None:
    assert "lost: job n=0 (crash:work) was committed" in broken(rows=(), runs=(), changes=[])


def test_a_job_of_a_rolled_back_transaction_neither_exists_nor_runs() -> None:
    said = broken(enqueued=(replace(ENQUEUED, fate="rolled back"),))
    assert "rolled back and is in the table" in said
    assert "rolled back and ran" in said


def test_a_job_that_is_left_running_is_stuck() -> None:
    row = replace(ROW, status="running", finished=False, leased=True)
    assert "stuck: " in broken(rows=(row,), changes=CHANGES[:1])


def test_a_job_that_ended_twice_is_noticed() -> None:
    assert "went from done to done" in broken(changes=[*CHANGES, Change(JOB, "done", "done", 1)])


def test_a_fence_that_goes_down_is_noticed() -> None:
    assert "fence 0 became 0" in broken(changes=[replace(CHANGES[0], fence=0), CHANGES[1]])


def test_two_runs_at_once_are_doubled_unless_the_first_was_held_up() -> None:
    second = replace(RUN, fence=2, pid=11, start=5.5, end=6.5)
    late = replace(ROW, fence=2, result=2, attempts=2, errors=1, crashes=1)
    assert "ran twice at once" in broken(runs=(RUN, second), rows=(late,))
    assert "ran twice at once" not in broken(runs=(RUN, second), rows=(late,), faults=(PAUSE,))


def test_a_pause_of_another_worker_is_no_excuse() -> None:
    second = replace(RUN, fence=2, pid=11, start=5.5, end=6.5)
    assert "ran twice at once" in broken(runs=(RUN, second), faults=(replace(PAUSE, pids=[12]),))


def test_jobs_of_one_lock_key_do_not_overlap() -> None:
    other = replace(RUN, job="another", pid=11, start=5.5, lock="key")
    assert "lock key key ran twice" in broken(runs=(replace(RUN, lock="key"), other))


def test_the_result_of_an_earlier_claim_is_noticed() -> None:
    assert "wrote over the claim 1" in broken(rows=(replace(ROW, result=0),))


def test_a_done_job_whose_last_run_did_not_return_is_noticed() -> None:
    assert "did not return" in broken(runs=(replace(RUN, verdict=None),))


def test_attempts_without_a_start_and_starts_without_an_attempt_are_noticed() -> None:
    assert "counted without a start" in broken(rows=(replace(ROW, attempts=2, errors=1),))
    runs = (replace(RUN, start=1.0, end=1.5, verdict="RuntimeError"), replace(RUN, fence=2))
    row = replace(ROW, fence=2, result=2)
    assert "1 attempts of 2 starts" in broken(runs=runs, rows=(row,))


def test_a_start_that_no_renewal_could_report_is_not_counted() -> None:
    """Cut off right after it started, and back before its end: by then the job runs elsewhere."""
    row = replace(ROW, fence=2, result=2)
    runs = (replace(RUN, start=3.9, end=9.0), replace(RUN, fence=2, pid=11, start=6.5, end=10.0))
    assert "1 attempts of 2 starts" in broken(runs=runs, rows=(row,))
    assert broken(runs=runs, rows=(row,), faults=(PAUSE,)) == ""


def test_a_worker_taken_for_lost_without_a_fault_is_noticed() -> None:
    assert "was taken for lost" in broken(rows=(replace(ROW, crashes=1),))


def test_an_effect_without_its_job_being_done_is_noticed() -> None:
    store = replace(ENQUEUED, type="crash:store")
    assert "effects of the claims []" in broken(enqueued=(store,))
    assert broken(enqueued=(store,), effects=((0, 1),)) == ""


def test_one_process_that_changes_the_order_is_noticed() -> None:
    fifo = tuple(replace(ENQUEUED, n=n, queue="fifo") for n in (0, 1))
    later = replace(RUN, job="later", n=1, start=4.0, end=4.5)
    assert "started job n=1 before n=0" in broken(runs=(later, RUN), enqueued=fifo)
