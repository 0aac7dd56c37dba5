"""How a job's values look on a page: everything escaped, huge values cut, nothing told by colour alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import registry
from ..databases.controlling import ORIGINAL_PAYLOAD
from ..models import Job, JobStatus
from ..redaction import redact, redact_text
from ..retries import Retry

#: Characters of a value that a page shows; more would make the browser wait.
VALUE_LIMIT = 20_000

#: What Django's own columns show where there is no value.
NOTHING = "-"

#: The times of a row that change while its job lives.
CHANGING_TIMES = ("run_after", "run_started_at", "finished_at")

Column = Callable[[Job], Any]

_SYMBOLS = {
    JobStatus.PENDING: "○",
    JobStatus.RUNNING: "▶",
    JobStatus.DONE: "✓",
    JobStatus.DEAD: "✕",
    JobStatus.CANCELLED: "⊘",
}

#: Characters that reorder or hide the text around them; JSON may write them as escapes just as well.
_DECEPTIVE = re.compile("[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def time_column(name: str) -> Column:
    """A column for the instant in the field ``name``."""

    @admin.display(description=_label(name))
    def column(job: Job) -> str:
        return instant(getattr(job, name))

    column.__name__ = name
    return column


def json_column(name: str) -> Column:
    """A column for the JSON in the field ``name``."""

    @admin.display(description=_label(name))
    def column(job: Job) -> str:
        value = getattr(job, name)
        if name == "context":
            value = {key: item for key, item in value.items() if key != ORIGINAL_PAYLOAD}
        return pretty_json(hidden_payload(job, value) if name == "payload" else redact(value))

    column.__name__ = f"{name}_json"
    return column


def _label(name: str) -> Any:
    field: Any = Job._meta.get_field(name)
    return field.verbose_name


def instant(value: datetime | None) -> SafeString | str:
    """An instant in the current zone, in one unambiguous width, with seconds."""
    if value is None:
        return NOTHING
    local = timezone.localtime(value) if timezone.is_aware(value) else value
    return format_html(
        '<time datetime="{}"><span>{}</span> <span>{}</span></time>',
        local.isoformat(), f"{local:%Y-%m-%d}", f"{local:%H:%M:%S}",
    )  # fmt: skip


def pretty_json(value: Any) -> SafeString | str:
    """A JSON value over several lines."""
    if value is None:
        return NOTHING
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return format_html("<p>{}</p>", gettext("Nested too deeply to be shown."))
    return cut(readable(text))


def cut(text: str) -> SafeString:
    """Text as it is, with a note in place of what would be too much for a page."""
    shown = format_html('<pre class="jobqueue-text" tabindex="0">{}</pre>', text[:VALUE_LIMIT])
    if len(text) <= VALUE_LIMIT:
        return shown
    note = gettext("Cut here: %(shown)s of %(all)s characters are shown.") % {
        "shown": formats.number_format(VALUE_LIMIT, force_grouping=True),
        "all": formats.number_format(len(text), force_grouping=True),
    }
    return format_html('{}<p class="help">{}</p>', shown, note)


@admin.display(description=_("status"))
def status(job: Job) -> SafeString:
    """A badge: a word, a sign and a colour; and how far a running job has come."""
    kind = JobStatus(job.status)
    badge = format_html(
        '<span class="jobqueue-status jobqueue-{}"><span aria-hidden="true">{}</span> {}</span>',
        kind.name.lower(), _SYMBOLS[kind], kind.label,
    )  # fmt: skip
    if kind is JobStatus.RUNNING and job.progress is not None:
        return format_html('{} <span class="jobqueue-bar">{}</span>', badge, bar(job.progress))
    return badge


@admin.display(description=_("queue"))
def lane(job: Job) -> SafeString | str:
    """The queue, and the priority where it is not the usual one."""
    if job.priority == 0:
        return job.queue
    words = gettext("priority %(priority)d") % {"priority": job.priority}
    return format_html('{} <span class="quiet">{}</span>', job.queue, words)


@admin.display(description=_("attempts"))
def attempts(job: Job) -> str:
    """Those that were started, of those there may be."""
    return f"{job.attempts} / {job.max_attempts}"


@admin.display(description=_("handler"))
def handler(job: Job) -> str:
    """The function that serves the type, if this process knows one."""
    known = registry.find(job.job_type)
    if known is None:
        return gettext("None is registered in this process: removed, or served by other code.")
    return f"{known.function.__module__}.{known.function.__qualname__}"


@admin.display(description=_("retry"))
def retry_rule(job: Job) -> str:
    """When the type is tried again after a failure."""
    known = registry.find(job.job_type)
    if known is None:
        return NOTHING
    policy = known.policy_for(job)
    return str(policy) if isinstance(policy, Retry) else getattr(policy, "__qualname__", "?")


@admin.display(description=_("options"))
def handler_options(job: Job) -> str:
    """What else the type says of its handler."""
    known = registry.find(job.job_type)
    if known is None:
        return NOTHING
    said = [name for name in ("is_async", "atomic", "takes_context", "isolated") if getattr(known, name)]
    limit = known.limit_in(json.dumps(job.context))
    said += [
        f"{word}: {value:g} s"
        for word, value in (("timeout", limit), ("expires_after", known.lifetime))
        if value
    ]
    said += [f"max_memory: {known.max_memory} MiB"] if known.max_memory else []
    said += [f"dedupe: {known.dedupe.policy}"] if job.dedupe_key else []
    return ", ".join([*said, *(f"never_retry: {one.__qualname__}" for one in known.never_retry)]) or NOTHING


@admin.display(description=_("progress"))
def progress(job: Job) -> SafeString | str:
    """What the handler last reported."""
    note = told(job, job.progress_note)
    if job.progress is None:
        return note or NOTHING
    return format_html("{} {}", bar(job.progress), note)


def bar(share: float) -> SafeString:
    """A share as a bar and in words."""
    percent = f"{share:.0%}"
    return format_html(
        '<progress max="1" value="{}" aria-label="{}">{}</progress> {}',
        f"{share:.3f}", gettext("progress"), percent, percent,
    )  # fmt: skip


@admin.display(description=_("last error"))
def last_error(job: Job) -> str:
    """The message of the last failure."""
    return told(job, job.last_error) or NOTHING


@admin.display(description=_("original payload"))
def original_payload(job: Job) -> SafeString | str:
    """What the payload was before a person gave the job another."""
    return pretty_json(hidden_payload(job, job.context.get(ORIGINAL_PAYLOAD)))


def error(entry: Mapping[str, Any], job: Job) -> SafeString | str:
    """A failed attempt: exception, message and, folded, the traceback."""
    message = told(job, str(entry.get("message", "")))
    exception = format_html("<strong>{}</strong>: {}", entry.get("exception", "?"), message)
    return format_html("<p>{}</p>{}", exception, _traceback(str(entry.get("traceback") or ""), job))


def _traceback(trace: str, job: Job) -> SafeString | str:
    if not trace:
        return ""
    shown = cut(told(job, trace))
    return format_html("<details><summary>{}</summary>{}</details>", gettext("Traceback"), shown)


def told(job: Job, text: str) -> str:
    """What a job's code said, readable, without the values that are hidden."""
    return readable(redact_text(text, job.payload, registry.positions(job.job_type, job.payload)))


def hidden_payload(job: Job, payload: Any) -> Any:
    """A payload of the job's type without the values that are hidden."""
    return redact(payload, registry.positions(job.job_type, payload))


def readable(text: str) -> str:
    """Text with the characters that reorder or hide what stands around them written out."""
    return _DECEPTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
