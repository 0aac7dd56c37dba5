from django_jobqueue.states import ACTIVE, FINISHED, MOVES, JobStatus


def test_the_stored_numbers_never_change_their_meaning() -> None:
    assert {status.name: status.value for status in JobStatus} == {
        "PENDING": 1,
        "RUNNING": 2,
        "DONE": 3,
        "DEAD": 4,
        "CANCELLED": 5,
    }


def test_a_job_is_either_active_or_finished() -> None:
    assert set(JobStatus) == ACTIVE | FINISHED
    assert not ACTIVE & FINISHED
    assert {JobStatus.PENDING, JobStatus.RUNNING} == ACTIVE


def test_every_status_is_reached_from_nothing() -> None:
    reached: set[JobStatus | None] = {None}
    for _ in JobStatus:
        for sources, targets in MOVES.values():
            if sources & reached:
                reached |= targets
    assert reached == {None, *JobStatus}


def test_only_a_claim_makes_a_job_run() -> None:
    entries = {name for name, (sources, targets) in MOVES.items() if JobStatus.RUNNING in targets - sources}
    assert entries == {"claim"}


def test_nothing_leads_out_of_done_but_removal() -> None:
    assert {name for name, (sources, _) in MOVES.items() if JobStatus.DONE in sources} == {
        "discard",
        "prune",
    }


def test_the_moves_are_those_of_the_design() -> None:
    attempt = {"claim", "complete", "fail", "snooze", "release", "reap"}
    assert MOVES.keys() == attempt | {"enqueue", "cancel", "expire", "retry", "reschedule"} | {
        "discard",
        "prune",
    }


def test_labels_are_words_for_people() -> None:
    assert [str(status.label) for status in JobStatus] == ["pending", "running", "done", "dead", "cancelled"]
