"""An exception from outside arrives in the handler that it is meant for, or nowhere."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from django_jobqueue import interrupts
from django_jobqueue.exceptions import JobInterrupted, JobTimeout


class Attempt:
    """What of an attempt matters here."""

    def __init__(self) -> None:
        self.runner: int | None = None
        self.interruption: interrupts.Interruption | None = None
        self.inside = False
        self.outside = 0


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads change places as often as they can, so that every order of two lines comes up."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def perform(attempt: Attempt, steps: int) -> bool:
    """Run a handler of so many steps as ``execution`` does; whether it was interrupted."""
    try:
        attempt.runner = threading.get_ident()
        try:
            for _ in range(steps):
                time.monotonic()
        finally:
            attempt.runner = None
            if attempt.interruption is not None:
                interrupts.absorb(attempt.interruption)
    except JobInterrupted:
        return True
    return False


def test_whenever_it_is_sent_it_arrives_within_the_handler_or_not_at_all(eager_switching: None) -> None:
    current: list[Attempt] = []
    ended = threading.Event()
    sent = 0

    def interrupt_what_runs() -> None:
        nonlocal sent
        while not ended.is_set():
            if current and current[-1].interruption is None:
                sent += interrupts.interrupt(current[-1], JobTimeout())

    other = threading.Thread(target=interrupt_what_runs)
    other.start()
    arrived = 0
    try:
        for number in range(300_000):
            if number >= 3_000 and arrived:
                break
            attempt = Attempt()
            current[:] = [attempt]
            arrived += perform(attempt, number % 40)
            for _ in range(5):  # the worker's own code, and the next job: an exception here fails the test
                time.monotonic()
    finally:
        ended.set()
        other.join()

    assert 0 < arrived <= sent


def test_one_that_is_sent_as_the_handler_ends_does_not_arrive_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt = Attempt()
    running, ended, left = threading.Event(), threading.Event(), threading.Event()
    raise_in = interrupts._raise_in

    def raise_late(thread: int, kind: type[BaseException]) -> int:
        """Between the look at the runner and this, the handler ends; its thread goes on if it may."""
        ended.set()
        left.wait(0.3)
        return int(raise_in(thread, kind))

    monkeypatch.setattr(interrupts, "_raise_in", raise_late)
    escaped: list[BaseException] = []

    def work() -> None:
        try:
            attempt.runner = threading.get_ident()
            running.set()
            while not ended.is_set():
                time.sleep(0.001)
            attempt.runner = None
            while attempt.interruption is None:
                time.sleep(0.001)
            interrupts.absorb(attempt.interruption)
            left.set()
            for _ in range(100):  # the next job
                time.sleep(0.005)
        except JobInterrupted as exception:
            escaped.append(exception)

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    assert interrupts.interrupt(attempt, JobTimeout())
    thread.join()

    assert escaped == []


def test_under_a_tracer_the_thread_goes_on_after_an_interruption() -> None:
    """An exception that was taken back made Python 3.11 come back to the same line for ever."""
    arrived: list[bool] = []

    def work() -> None:
        interruption = interrupts.Interruption(JobTimeout())
        interruption.state = interrupts.SENT  # and it has arrived
        interrupts.absorb(interruption)
        sys.settrace(lambda *event: None)
        arrived.append(perform(Attempt(), 1))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert arrived == [False]


def test_a_handler_that_does_not_run_is_left_alone_and_may_be_interrupted_later() -> None:
    attempt = Attempt()

    assert not interrupts.interrupt(attempt, JobTimeout())
    assert attempt.interruption is None


def test_it_waits_until_the_thread_has_left_logging() -> None:
    gate, inside = threading.Event(), threading.Event()
    attempt = Attempt()
    ends: list[str] = []

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            inside.set()
            while not gate.is_set():
                time.sleep(0.001)
            ends.append("logged")

    logger = logging.Logger("slow")
    logger.addHandler(Slow())

    def _perform() -> None:
        with suppress(JobInterrupted):
            attempt.runner = threading.get_ident()
            logger.warning("while it logs")
            while True:
                time.sleep(0.001)
        ends.append("interrupted")

    thread = threading.Thread(target=_perform)
    thread.start()
    inside.wait()
    opener = threading.Timer(0.2, gate.set)
    opener.start()
    assert interrupts.interrupt(attempt, JobTimeout())
    thread.join()
    opener.join()

    assert ends == ["logged", "interrupted"]
