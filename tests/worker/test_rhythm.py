"""How long an idle worker waits, and when it asks before it claims."""

import threading
from collections.abc import Callable
from time import monotonic

import pytest

from django_jobqueue.worker.options import WorkerOptions
from django_jobqueue.worker.rhythm import RELAXED, SHORT_STEP, Rhythm
from django_jobqueue.worker.turns import Turns
from django_jobqueue.worker.wakeup import Wakeup

pytestmark = pytest.mark.django_db


class Ears(Wakeup):
    """Hears what the test says."""

    def __init__(self, *, reliable: bool = True, certain: bool = True) -> None:
        super().__init__()
        self._reliable = reliable
        self.certain = certain

    @property
    def reliable(self) -> bool:
        return self._reliable


def rhythm(ears: Wakeup, due: Callable[[], float | None] = lambda: None, size: int = 1) -> Rhythm:
    return Rhythm(WorkerOptions(poll_interval=1.0, queues=["a"]), ears, Turns(lambda: (0, size)), due)


def never() -> float | None:
    raise AssertionError("the database was asked")


def test_a_worker_that_hears_looks_seldom_when_there_is_nothing() -> None:
    one = rhythm(Ears())
    assert 0.9 <= one.found_nothing(idle=True) <= 1.1
    one.wait(0.001, listen=True)
    for _ in range(3):
        assert one.nothing_due(idle=True)
        assert 0.9 * RELAXED <= one.pause() <= 1.1 * RELAXED


def test_without_ears_it_looks_once_in_a_poll_interval_and_asks_nothing() -> None:
    one = rhythm(Ears(reliable=False), never)
    for _ in range(3):
        one.wait(0.001, listen=True)
        assert not one.nothing_due(idle=True)
        assert 0.9 <= one.found_nothing(idle=True) <= 1.1


def test_without_ears_it_looks_in_short_steps_after_work() -> None:
    one = rhythm(Ears(reliable=False), never)
    assert one.found(all_there_is=True) == 0
    assert one.found_nothing(idle=True) == SHORT_STEP


def test_a_worker_that_is_not_idle_claims_without_asking() -> None:
    one = rhythm(Ears(), never)
    one.wait(0.001, listen=True)
    assert not one.nothing_due(idle=False)
    assert 0.9 <= one.found_nothing(idle=False) <= 1.1


def test_it_does_not_sleep_past_the_time_of_a_job_that_is_to_come() -> None:
    one = rhythm(Ears(), lambda: 0.3)
    assert 0.2 < one.found_nothing(idle=True) <= 0.3


def test_it_does_not_sleep_past_the_time_of_its_own_retry() -> None:
    one = rhythm(Ears())
    one.comes_back(0.3)
    for _ in range(2):  # a look before that time does not make it forget
        assert 0.1 < one.found_nothing(idle=True) <= 0.3
    one.wait(30, listen=True)
    assert one.found_nothing(idle=True) >= 0.9


def test_a_retry_that_is_told_while_it_waits_ends_the_wait_early() -> None:
    ears = Ears()
    one = rhythm(ears)
    begun = monotonic()
    settler = threading.Timer(0.05, one.comes_back, [0.1])
    settler.start()
    one.wait(30, listen=True)
    one.wait(one.found_nothing(idle=True), listen=True)
    assert monotonic() - begun < 10
    settler.join()


def test_what_is_due_and_not_given_out_is_claimed_once_in_a_poll_interval() -> None:
    one = rhythm(Ears(), lambda: -5.0)
    for _ in range(3):
        assert 0.9 <= one.found_nothing(idle=True) <= 1.1
        one.wait(0.001, listen=True)
        assert not one.nothing_due(idle=True)


def test_who_asked_and_was_too_slow_does_not_ask_again_and_looks_after_a_poll_interval() -> None:
    asked: list[float] = []
    one = rhythm(Ears(), lambda: asked.append(0.0) or 0.0)  # type: ignore[func-returns-value]
    one.wait(0.001, listen=True)
    assert not one.nothing_due(idle=True)
    assert 0.9 <= one.found_nothing(idle=True) <= 1.1
    assert len(asked) == 1


@pytest.mark.parametrize(("certain", "asked"), [(True, False), (False, True)])
def test_a_sign_that_may_mean_anything_is_a_reason_to_ask(certain: bool, asked: bool) -> None:
    ears = Ears(certain=certain)
    one = rhythm(ears)
    one.found_nothing(idle=True)
    ears.wake()
    one.wait(5, listen=True)
    assert one.nothing_due(idle=True) is asked


def test_after_a_full_claim_it_claims_again_at_once() -> None:
    one = rhythm(Ears(), never)
    assert one.found(all_there_is=False) == 0
    assert 0.9 <= one.found(all_there_is=True) <= 1.1


def test_of_many_workers_each_looks_seldom_after_work_too() -> None:
    assert rhythm(Ears(), never, size=50).found(all_there_is=True) >= 0.9 * RELAXED
