"""``Queue.objects`` pauses and resumes; ``Worker.objects`` keeps the rows of the workers that are there."""

from typing import Any

import pytest
from pytest_django import Settings

from django_jobqueue.exceptions import InvalidOption, UnknownQueue
from django_jobqueue.managers import WorkerFacts
from django_jobqueue.models import Queue, Worker
from tests.moves.factories import ago, claim, enqueue, ids, seconds_from_now, statements

pytestmark = pytest.mark.django_db

DAY = 86_400


def facts(name: str, **others: Any) -> WorkerFacts:
    given: dict[str, Any] = {"host": "box", "pid": 7, "queues": None, "capacity": 8, "version": "1"}
    return WorkerFacts(name, **{**given, **others})


def paused() -> dict[str, bool]:
    return dict(Queue.objects.values_list("name", "paused"))


def test_a_queue_is_paused_and_resumed_as_often_as_one_likes() -> None:
    Queue.objects.pause("mail")
    Queue.objects.pause("mail")
    assert paused() == {"mail": True}
    Queue.objects.resume("mail")
    Queue.objects.resume("mail")
    Queue.objects.resume("other")
    assert paused() == {"mail": False, "other": False}


def test_what_is_enqueued_while_paused_waits() -> None:
    Queue.objects.pause("mail")
    job = enqueue(queue="mail")
    assert not claim(10)
    Queue.objects.resume("mail")
    assert ids(claim(10)) == [job.id]


def test_a_queue_that_is_not_declared_is_refused(settings: Settings) -> None:
    settings.JOBQUEUE |= {"QUEUES": ["default"]}
    for move in (Queue.objects.pause, Queue.objects.resume):
        with pytest.raises(UnknownQueue):
            move("mail")
    assert not paused()


@pytest.mark.parametrize("name", ["", "q" * 101, 5, "a\x00"], ids=repr)
def test_a_name_that_no_queue_can_have_is_refused(name: Any) -> None:
    with pytest.raises(InvalidOption):
        Queue.objects.pause(name)


def test_workers_are_there_from_their_first_beat_on() -> None:
    Worker.objects.beat([facts("a", queues=["mail"]), facts("b")])
    a, b = Worker.objects.order_by("id")
    assert (a.id, a.host, a.pid, a.queues, a.capacity, a.version) == ("a", "box", 7, ["mail"], 8, "1")
    assert b.queues is None
    assert all(-5 < seconds_from_now(time) <= 0 for time in (a.started_at, a.last_beat, b.last_beat))


def test_workers_that_are_known_beat_again_and_those_heard_of_lately_are_living() -> None:
    assert Worker.objects.beat_again({"a": 1.0}) == {}
    Worker.objects.beat([facts("b"), facts("a"), facts("silent")])
    Worker.objects.update(last_beat=ago(100))
    assert Worker.objects.living(30) == []
    with statements() as made:
        assert Worker.objects.beat_again({"b": 1.0, "a": -40.0, "c": 1.0}) == {"a": False, "b": False}
    assert len(made) == 1
    assert [worker_id for worker_id, _ in Worker.objects.living(30)] == ["a", "b"]


def test_a_beat_moves_only_the_time_of_the_last_beat() -> None:
    Worker.objects.beat([facts("a")])
    Worker.objects.update(started_at=ago(500), last_beat=ago(100))
    started = Worker.objects.get().started_at
    with statements() as made:
        Worker.objects.beat([facts("a"), facts("b")])
    assert len(made) == 1
    worker = Worker.objects.get(pk="a")
    assert worker.started_at == started
    assert -5 < seconds_from_now(worker.last_beat) <= 0


def test_nobody_beats_nothing() -> None:
    Worker.objects.beat([])
    assert not Worker.objects.exists()


def test_a_worker_that_leaves_is_forgotten() -> None:
    Worker.objects.beat([facts("a"), facts("b")])
    Worker.objects.forget("a")
    Worker.objects.forget("nobody")
    assert Worker.objects.get().id == "b"


def test_workers_silent_for_a_day_are_forgotten() -> None:
    Worker.objects.beat([facts("silent"), facts("there")])
    Worker.objects.filter(pk="silent").update(last_beat=ago(DAY + 60))
    Worker.objects.filter(pk="there").update(last_beat=ago(DAY - 60))
    Worker.objects.forget_silent()
    assert Worker.objects.get().id == "there"
