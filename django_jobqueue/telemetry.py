"""OpenTelemetry: a span for each enqueue, one for each run, and a link from the second to the first.

Used wherever the package ``opentelemetry-api`` is installed (the extra ``opentelemetry``); imports it, so
nothing else imports this module.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import propagate, trace

from .context import ContextHook

SYSTEM = {"messaging.system": "django_jobqueue"}


class OpenTelemetryHook(ContextHook):
    """The trace context travels in the job; the run is a trace of its own, linked to it.

    Of its own since it may come days later, and since several attempts may belong to one enqueue.
    """

    key = "trace"

    def capture(self, job_type: str) -> Any:
        """A span of kind PRODUCER under the current one; what is stored leads back to it."""
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return None  # nobody has set one: the package is there for somebody else
        carrier: dict[str, str] = {}
        attributes = {**SYSTEM, "messaging.operation.name": "enqueue", "job.type": job_type}
        with _tracer().start_as_current_span(
            f"enqueue {job_type}", kind=trace.SpanKind.PRODUCER, attributes=attributes
        ):
            propagate.inject(carrier)
        return carrier or None

    def restored(self, value: Any, job: Any) -> AbstractContextManager[Any]:
        """A span of kind CONSUMER around the handler, linked to the enqueue's. It records what is raised."""
        sender = trace.get_current_span(propagate.extract(value)).get_span_context()
        attributes = {
            **SYSTEM,
            "messaging.operation.name": "run",
            "messaging.message.id": str(job.id),
            "messaging.destination.name": job.queue,
            "job.type": job.job_type,
            "job.attempt": job.attempts,
        }
        return _tracer().start_as_current_span(
            f"run {job.job_type}",
            kind=trace.SpanKind.CONSUMER,
            attributes=attributes,
            links=[trace.Link(sender)] if sender.is_valid else [],
        )


def _tracer() -> trace.Tracer:
    return trace.get_tracer("django_jobqueue")
