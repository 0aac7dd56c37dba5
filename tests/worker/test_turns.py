"""Whose turn it is when a NOTIFY comes, and what a NOTIFY says."""

from collections import Counter

import pytest

from django_jobqueue.databases import waking
from django_jobqueue.databases.waking import BURST, SLOTS, Limiter, Notice, read_notice
from django_jobqueue.worker.turns import FEW, HEAD_START, HEARERS, LEAST_SPREAD, MOST_SPREAD, SPREAD, Turns


def crowd(size: int) -> list[Turns]:
    return [Turns(lambda rank=rank: (rank, size)) for rank in range(size)]  # type: ignore[misc]


def notice(number: int, jobs: int = 1) -> Notice:
    return Notice("default", number, jobs, last=False)


def hearers(workers: list[Turns], told: Notice) -> list[Turns]:
    return [one for one in workers if told.slot is None or told.slot in one.slots]


def looking_at_once(workers: list[Turns], told: Notice) -> list[Turns]:
    return [one for one in hearers(workers, told) if one.delay(told) == 0]


@pytest.mark.parametrize("size", [0, 1, FEW])
def test_few_workers_or_ones_that_know_of_no_others_all_look_at_once(size: int) -> None:
    one = Turns(lambda: (0, size))
    assert one.slots == set(range(SLOTS))
    assert {one.delay(notice(n)) for n in range(100)} == {0.0}


@pytest.mark.parametrize("size", [FEW + 1, 5, 12, 50, 81, 333])
def test_a_single_job_is_the_turn_of_exactly_one_of_many_and_of_each_alike(size: int) -> None:
    workers = crowd(size)
    turns: Counter[int] = Counter()
    rounds = size * SLOTS
    for n in range(rounds):
        [chosen] = looking_at_once(workers, notice(n))
        turns[workers.index(chosen)] += 1
    assert len(turns) == size
    assert max(turns.values()) <= 4 * rounds / size


@pytest.mark.parametrize("size", [FEW + 1, 12, 50, 333])
def test_of_many_workers_some_hear_of_a_single_job_and_not_all(size: int) -> None:
    workers = crowd(size)
    for n in range(SLOTS):
        assert min(HEARERS, size) <= len(hearers(workers, notice(n))) <= max(2 * HEARERS, size // 8)


@pytest.mark.parametrize("jobs", [2, 7, 50, 1_000])
def test_as_many_look_at_once_as_there_are_jobs(jobs: int) -> None:
    workers = crowd(50)
    for n in range(100):
        assert len(looking_at_once(workers, notice(n, jobs))) == min(jobs, 50)


def test_the_others_look_after_a_head_start_within_a_time_for_each_worker() -> None:
    workers = crowd(20)
    delays = [one.delay(notice(0)) for one in hearers(workers, notice(0)) for _ in range(200)]
    late = [delay for delay in delays if delay]
    assert HEAD_START <= min(late) < HEAD_START + 0.2 * 20 * SPREAD
    assert HEAD_START + 0.8 * 20 * SPREAD < max(late) <= HEAD_START + 20 * SPREAD


@pytest.mark.parametrize(("found", "spread"), [(True, LEAST_SPREAD), (False, MOST_SPREAD)])
def test_the_time_of_the_others_follows_from_what_they_find(found: bool, spread: float) -> None:
    one = Turns(lambda: (1, 4))
    for _ in range(5):
        one.looked(found=found)
    late = [one.delay(notice(0, 2)) or one.delay(notice(2)) for _ in range(500)]
    assert 0.8 * 4 * spread < max(late) - HEAD_START <= 4 * spread


# What a NOTIFY says.


@pytest.mark.parametrize("queue", ["default", "with spaces 1 2", "1", "ünï", waking.ANY_QUEUE])
def test_a_notice_is_read_as_it_was_written(queue: str) -> None:
    told = Notice(queue, 2**31 - 1, 12, last=True)
    assert read_notice(told.as_text()) == told


@pytest.mark.parametrize("payload", ["", "default", "a b c d", "default 1 2", "q 1 2 -3", "q 1 ² 1"])
def test_other_words_are_no_notice(payload: str) -> None:
    assert read_notice(payload) is None


def test_the_last_word_for_now_says_so_and_the_next_makes_up_for_what_was_swallowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waking, "NOTIFY_INTERVAL", 600.0)
    limiter = Limiter()
    passed = [limiter.pass_through(1) for _ in range(BURST + 3)]
    assert passed == [(1, False)] * (BURST - 1) + [(1, True)] + [None] * 3
    monkeypatch.setattr(waking, "NOTIFY_INTERVAL", 1e-9)
    assert limiter.pass_through(10) == (13, False)
