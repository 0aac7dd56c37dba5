"""What a task does in a worker, and what its result says of it: each attempt, each failure, each time."""

import logging
import sys
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import override_settings
from django.utils import timezone, translation
from django.utils.log import RequireDebugTrue

from django_jobqueue.backend import JobQueueBackend, signals
from django_jobqueue.compat import TASKS_LOGGER, TaskContext, TaskResultStatus, task_finished, task_started
from django_jobqueue.models import Job, JobStatus
from tests.execution.runner import WORKER
from tests.tasks import sample

READY, RUNNING, FAILED, SUCCESSFUL = TaskResultStatus


@pytest.mark.parametrize("task", [sample.noop, sample.noop_async])
def test_a_task_runs_and_its_result_is_successful(run: Any, task: Any) -> None:
    result = run(task.enqueue(1, two=3))

    assert (result.status, result.return_value, result.attempts) == (SUCCESSFUL, None, 1)
    assert (result.is_finished, result.errors, result.worker_ids) == (True, [], [WORKER])
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at


@pytest.mark.parametrize("task", [sample.echo, sample.echo_async])
def test_arguments_arrive_and_values_come_back(run: Any, task: Any) -> None:
    result = run(task.enqueue(1, (2, "ä"), three={"4": None}))

    assert result.return_value == {"args": [1, [2, "ä"]], "kwargs": {"three": {"4": None}}}


def test_what_the_contract_lets_through_arrives_as_json_has_it(run: Any) -> None:
    result = sample.echo.enqueue({1: b"text", None: range(2)}, TaskResultStatus.READY)

    assert result.args == [{"1": "text", "null": [0, 1]}, "READY"]
    assert run(result).return_value["args"] == result.args


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (sample.failing, ValueError),
        (sample.failing_async, ValueError),
        (sample.complex_exception, ValueError),
        (sample.complex_result, TypeError),
        (sample.exiting, SystemExit),
        (sample.interrupted, KeyboardInterrupt),
    ],
)
def test_a_failure_is_told_by_class_and_traceback(run: Any, task: Any, kind: type) -> None:
    result = run(task.enqueue())

    assert (result.status, result.attempts, result.is_finished) == (FAILED, 1, True)
    [error] = result.errors
    assert error.exception_class is kind
    assert error.traceback.startswith("Traceback")
    assert error.traceback.rstrip().splitlines()[-1].startswith(kind.__name__)
    with pytest.raises(ValueError, match="Task failed"):
        result.return_value  # noqa: B018
    assert result.started_at <= result.finished_at


@pytest.mark.parametrize("task", [sample.fails_twice, sample.fails_twice_async])
def test_each_failed_attempt_has_its_error_and_each_attempt_its_worker(run: Any, task: Any) -> None:
    result = task.enqueue()
    states = []
    for _ in range(3):
        run(result)
        states.append((result.status, result.attempts, len(result.errors), result.is_finished))

    assert states == [(READY, 1, 1, False), (READY, 2, 2, False), (SUCCESSFUL, 3, 2, True)]
    assert result.worker_ids == [WORKER] * 3
    assert [one.traceback.rstrip().splitlines()[-1] for one in result.errors] == [
        "LookupError: attempt 1",
        "LookupError: attempt 2",
    ]
    assert result.return_value == 3
    assert result.started_at < result.last_attempted_at < result.finished_at


def test_a_running_attempt_sees_those_before_it(run: Any) -> None:
    result = sample.fails_twice.enqueue()
    for _ in range(3):
        run(result)

    first, second, third = sample.seen
    assert [one.status for one in sample.seen] == [RUNNING] * 3
    assert [one.attempts for one in sample.seen] == [1, 2, 3]
    assert [len(one.errors) for one in sample.seen] == [0, 1, 2]
    assert {one.enqueued_at for one in sample.seen} == {result.enqueued_at}
    assert first.started_at == first.last_attempted_at
    assert third.started_at == second.started_at == result.started_at
    assert third.errors == result.errors


def test_a_retry_that_waits_is_ready_and_tells_both_times(run: Any) -> None:
    result = run(sample.backs_off.enqueue())
    job = Job.objects.get(pk=result.id)

    assert (result.status, result.attempts, result.finished_at) == (READY, 1, None)
    assert result.started_at == result.last_attempted_at == job.run_started_at
    assert timedelta(seconds=80) < job.run_after - timezone.now() <= timedelta(seconds=90)
    with pytest.raises(ValueError, match="has not finished yet"):
        result.return_value  # noqa: B018


@pytest.mark.parametrize("task", [sample.backs_off, sample.backs_off_async])
def test_the_back_off_function_gets_the_exception_and_the_result(run: Any, task: Any) -> None:
    result = run(task.enqueue())

    [(exception, given)] = sample.asked
    assert isinstance(exception, LookupError)
    assert (given.id, given.status, given.attempts) == (result.id, RUNNING, 1)
    assert given.task == result.task == task


def test_a_back_off_of_the_call_goes_before_that_of_the_task(run: Any) -> None:
    result = run(sample.backs_off.using(backoff=sample.give_up).enqueue())

    assert (result.status, result.attempts, sample.asked) == (FAILED, 1, [])


def test_an_exception_that_is_never_retried_ends_the_task(run: Any) -> None:
    result = run(sample.refused.enqueue())

    assert (result.status, result.attempts) == (FAILED, 1)


def test_an_atomic_task_leaves_nothing_of_a_failed_attempt(run: Any) -> None:
    result = run(sample.half_done.enqueue())

    assert (result.status, Group.objects.count()) == (FAILED, 0)


def test_a_task_with_context_sees_its_result_and_reports_progress(runner: Any) -> None:
    result = sample.look.enqueue()
    job = Job.objects.get(pk=result.id)
    progress: list[Any] = []
    runner.attempt(job, before_settling=lambda attempt: progress.append((attempt.progress, attempt.note)))
    result.refresh()
    context, given = sample.seen

    assert isinstance(context, TaskContext)
    assert (context.attempt, context.cancelled, result.return_value) == (1, False, result.id)
    assert (given.id, given.status, given.worker_ids) == (result.id, RUNNING, [WORKER])
    assert (given.enqueued_at, given.task, given.backend) == (result.enqueued_at, sample.look, "default")
    assert progress == [(0.25, "a quarter")]


def test_language_and_time_zone_go_with_the_task(run: Any) -> None:
    with translation.override("de"), timezone.override("Asia/Kolkata"):
        result = sample.surroundings.enqueue()

    assert run(result).return_value == ["de", "Asia/Kolkata"]


@pytest.mark.parametrize(
    ("what", "status", "attempts"), [("retry", READY, 1), ("snooze", READY, 0), ("dead", FAILED, 1)]
)
def test_a_task_steers_its_job_by_raising(
    run: Any, what: str, status: TaskResultStatus, attempts: int
) -> None:
    result = run(sample.steering.enqueue(what))

    assert (result.status, result.attempts, len(result.errors)) == (status, attempts, attempts)
    due = Job.objects.get(pk=result.id).run_after - timezone.now()
    assert (due > timedelta(seconds=80)) is (status == READY)


# The signals of tasks, and Django's log.


@pytest.mark.parametrize(
    ("task", "final"),
    [(sample.answer, SUCCESSFUL), (sample.failing, FAILED), (sample.failing_async, FAILED)],
)
def test_the_signals_come_in_order_with_the_backend_class_and_what_it_is_then(
    run: Any, heard: list[Any], task: Any, final: TaskResultStatus
) -> None:
    result = run(task.enqueue())

    assert [(name, sender) for name, sender, _ in heard] == [
        (name, JobQueueBackend) for name in ("task_enqueued", "task_started", "task_finished")
    ]
    assert [one.id for _, _, one in heard] == [result.id] * 3
    assert [one.status for _, _, one in heard] == [READY, RUNNING, final]
    finished = heard[2][2]
    assert finished.is_finished
    assert [one.traceback for one in finished.errors] == [one.traceback for one in result.errors]
    assert finished._return_value == result._return_value
    assert finished.started_at <= finished.finished_at


def test_a_task_that_will_be_tried_again_has_not_finished(run: Any, heard: list[Any]) -> None:
    result = sample.fails_twice.enqueue()
    for _ in range(3):
        run(result)

    assert [name for name, _, _ in heard] == ["task_enqueued", *["task_started"] * 3, "task_finished"]
    assert heard[-1][2].attempts == 3


def test_a_failure_is_told_inside_its_except_and_before_it_is_written(run: Any) -> None:
    told: list[Any] = []

    def note(task_result: Any, **kwargs: Any) -> None:
        told.append((sys.exc_info()[0], JobStatus(Job.objects.get(pk=task_result.id).status)))

    task_finished.connect(note)
    try:
        run(sample.failing.enqueue())
        run(sample.failing_async.enqueue())
        run(sample.answer.enqueue())
    finally:
        task_finished.disconnect(note)

    assert told == [(ValueError, JobStatus.RUNNING)] * 2 + [(None, JobStatus.RUNNING)]


def test_a_receiver_in_a_worker_that_raises_is_logged_and_breaks_nothing(
    run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(**kwargs: Any) -> None:
        raise RuntimeError("a broken receiver")

    for signal in (task_started, task_finished):
        signal.connect(broken)
    try:
        with caplog.at_level(logging.ERROR, "django_jobqueue.signals"):
            result = run(sample.answer.enqueue())
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(broken)

    assert result.status == SUCCESSFUL
    ours = [one for one in caplog.records if one.name == "django_jobqueue.signals"]
    assert [(one.levelname, result.id in one.getMessage()) for one in ours] == [("ERROR", True)] * 2


class Listener(logging.Handler):
    """Notes lines, where its filters let it."""

    def __init__(self, level: int, *filters: logging.Filter) -> None:
        super().__init__(level)
        self.filters = list(filters)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    ("level", "filters"), [(logging.INFO, []), (logging.ERROR, []), (logging.INFO, [RequireDebugTrue()])]
)
def test_a_line_that_no_handler_would_let_out_is_not_made_and_every_other_is(
    run: Any, debug: bool, level: int, filters: list[logging.Filter]
) -> None:
    logger = logging.getLogger(TASKS_LOGGER)
    listener = Listener(level, *filters)
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        with override_settings(DEBUG=debug):
            run(sample.answer.enqueue())
            asked = signals.is_heard(logging.INFO)
    finally:
        logger.removeHandler(listener)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True

    heard = level == logging.INFO and (debug or not filters)
    assert (asked, len(listener.lines)) == (heard, 2 if heard else 0)


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("task", [sample.answer, sample.failing, sample.failing_async])
def test_djangos_own_log_lines_are_written(
    run: Any, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, task: Any, watched: bool
) -> None:
    if watched:
        request.getfixturevalue("heard")
    with caplog.at_level(logging.DEBUG, TASKS_LOGGER):
        result = run(task.enqueue())

    lines = [record for record in caplog.records if record.name == TASKS_LOGGER]
    final = result.status
    level = "ERROR" if final == FAILED else "INFO"
    assert [(one.levelname, one.getMessage()) for one in lines] == [
        ("DEBUG", f"Task id={result.id} path={task.module_path} enqueued backend=default"),
        ("INFO", f"Task id={result.id} path={task.module_path} state=RUNNING"),
        (level, f"Task id={result.id} path={task.module_path} state={final}"),
    ]
    assert bool(lines[2].exc_info and lines[2].exc_info[0]) == (final == FAILED)
