"""What travels with a job: hooks of the site, and traces. Language and time zone: test_surroundings.py."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from django_jobqueue import conf, telemetry
from django_jobqueue.context import ContextHook, hooks
from django_jobqueue.models import Job, JobStatus
from tests.execution.runner import Runner
from tests.tasks import sample

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
seen: list[Any] = []


class RequestId(ContextHook):
    """A hook as the documentation shows one."""

    key = "request_id"

    def capture(self, job_type: str) -> Any:
        return request_id.get()

    @contextlib.contextmanager
    def restored(self, value: Any, job: Any) -> Iterator[None]:
        token = request_id.set(value)
        try:
            yield
        except Exception as error:
            seen.append((job.job_type, error))
            raise
        finally:
            request_id.reset(token)


class Broken(ContextHook):
    """A hook that fails at both ends, and one value that is no JSON."""

    key = "broken"

    def capture(self, job_type: str) -> Any:
        if request_id.get() == "capture":
            raise RuntimeError("capture")
        return object() if request_id.get() == "json" else "a value"

    def restored(self, value: Any, job: Any) -> Any:
        raise RuntimeError("restored")


def use(*names: str) -> Any:
    return override_settings(
        JOBQUEUE={"CONTEXT_HOOKS": [f"tests.execution.test_context.{one}" for one in names]}
    )


@pytest.fixture(autouse=True)
def nothing_seen() -> Iterator[None]:
    yield
    seen.clear()
    request_id.set(None)


def note_request_id() -> str | None:
    return request_id.get()


async def note_request_id_async() -> str | None:
    return request_id.get()


def fail() -> None:
    raise LookupError("seen by the hook")


@pytest.mark.parametrize("handler", [note_request_id, note_request_id_async])
def test_what_a_hook_captured_is_there_when_the_handler_runs(
    runner: Runner, handler: Callable[[], Any]
) -> None:
    name = runner.handle(handler)
    with use("RequestId"):
        request_id.set("abc")
        with_id = Job.objects.enqueue(name)
        request_id.set(None)
        assert runner.attempt(with_id).result == "abc"
        without = Job.objects.enqueue(name)
        assert runner.attempt(without).result is None
    assert (with_id.context, without.context) == ({"request_id": "abc"}, {})


def test_a_hook_serves_tasks_too_and_leaves_their_own_facts_alone(runner: Runner) -> None:
    with use("RequestId"):
        request_id.set("abc")
        result = sample.failing.enqueue()
        runner.attempt(Job.objects.get(pk=result.id))

    [(job_type, error)] = seen
    assert (job_type, type(error)) == ("tests.tasks.sample.failing", ValueError)
    assert sample.failing.get_result(result.id).backend == "default"


def test_a_hook_is_asked_once_for_each_type_of_a_batch(runner: Runner) -> None:
    names = [runner.handle(note_request_id), runner.handle(note_request_id)]
    asked: list[str] = []

    class Counting(RequestId):
        def capture(self, job_type: str) -> Any:
            asked.append(job_type)
            return super().capture(job_type)

    globals()["Counting"] = Counting
    with use("Counting"):
        request_id.set("abc")
        jobs = Job.objects.enqueue_many([(names[n % 2], {}) for n in range(6)])

    assert asked == names
    assert [job.context for job in jobs] == [{"request_id": "abc"}] * 6


@pytest.mark.parametrize("where", ["capture", "json", "restored"])
def test_a_broken_hook_is_logged_and_the_job_goes_on_without_it(
    runner: Runner, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    name = runner.handle(note_request_id)
    with use("Broken", "RequestId"), caplog.at_level(logging.ERROR, "django_jobqueue"):
        request_id.set(where)
        job = runner.attempt(Job.objects.enqueue(name))

    assert (job.status, job.result) == (JobStatus.DONE, where)
    assert [line.getMessage() for line in caplog.records] == [
        f"The context hook 'broken' failed for a job of type {name}, left without it"
    ]


@pytest.mark.parametrize("wrong", ["path", [5], [""]])
def test_hooks_that_are_no_paths_are_a_problem_of_the_settings(wrong: Any) -> None:
    assert conf.problems({"CONTEXT_HOOKS": wrong})
    with override_settings(JOBQUEUE={"CONTEXT_HOOKS": wrong}), pytest.raises(ImproperlyConfigured):
        hooks()


# Traces.


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, ReadableSpan]]:
    """The spans that have ended, by name. A tracer of the process can be set once only, for all tests."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return lambda: {span.name: span for span in exporter.get_finished_spans()}


async def current_trace_async() -> int:
    return trace.get_current_span().get_span_context().trace_id % 1_000_000


def current_trace() -> int:
    return trace.get_current_span().get_span_context().trace_id % 1_000_000


def test_nothing_is_stored_where_nobody_has_set_up_tracing() -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    assert telemetry.OpenTelemetryHook().capture("tests:any") is None


@pytest.mark.parametrize("handler", [current_trace, current_trace_async])
def test_an_enqueue_and_a_run_are_a_span_each_and_the_run_is_linked(
    runner: Runner, spans: Callable[[], dict[str, ReadableSpan]], handler: Callable[[], Any]
) -> None:
    name = runner.handle(handler)
    with telemetry._tracer().start_as_current_span("request") as request:
        job = Job.objects.enqueue(name)
    job = runner.attempt(job)

    enqueue, run = spans()[f"enqueue {name}"], spans()[f"run {name}"]
    assert (enqueue.kind, run.kind) == (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER)
    assert enqueue.parent is not None
    assert enqueue.parent.span_id == request.get_span_context().span_id
    assert run.parent is None
    assert [link.context.span_id for link in run.links] == [enqueue.context.span_id]
    assert run.context.trace_id % 1_000_000 == job.result
    assert run.context.trace_id != enqueue.context.trace_id
    assert run.attributes is not None
    assert (run.attributes["messaging.message.id"], run.attributes["job.attempt"]) == (str(job.pk), 1)


def test_what_a_task_raises_is_on_the_span_of_its_attempt(
    runner: Runner, spans: Callable[[], dict[str, ReadableSpan]]
) -> None:
    runner.attempt(Job.objects.get(pk=sample.failing.enqueue().id))

    run = spans()["run tests.tasks.sample.failing"]
    assert run.status.status_code is trace.StatusCode.ERROR
    assert [event.attributes["exception.type"] for event in run.events if event.attributes] == ["ValueError"]
