"""How a job's values look on a page: everything escaped, huge values cut, nothing told by colour alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.utils import formats, timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .. import registry
from ..models import Job, JobStatus

#: Characters of a value that a page shows; more would make the browser wait.
VALUE_LIMIT = 20_000

#: What Django's own columns show where there is no value.
NOTHING = "-"

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
        return pretty_json(getattr(job, name))

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
    return cut(_DECEPTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


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
    """A badge: a word, a sign and a colour."""
    kind = JobStatus(job.status)
    return format_html(
        '<span class="jobqueue-status jobqueue-{}"><span aria-hidden="true">{}</span> {}</span>',
        kind.name.lower(), _SYMBOLS[kind], kind.label,
    )  # fmt: skip


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


@admin.display(description=_("progress"))
def progress(job: Job) -> SafeString | str:
    """What the handler last reported."""
    if job.progress is None:
        return job.progress_note or NOTHING
    percent = f"{job.progress:.0%}"
    return format_html(
        '<progress max="1" value="{}">{}</progress> {} {}',
        f"{job.progress:.3f}",
        percent,
        percent,
        job.progress_note,
    )


@admin.display(description=_("errors"))
def errors(job: Job) -> SafeString | str:
    """Every failed attempt, the last one first, its traceback folded."""
    if not job.errors:
        return NOTHING
    entries = ((_error(entry),) for entry in reversed(job.errors))
    return format_html('<ul class="jobqueue-errors">{}</ul>', format_html_join("", "<li>{}</li>", entries))


def _error(entry: Any) -> SafeString | str:
    if not isinstance(entry, Mapping):  # written by hand
        return pretty_json(entry)
    facts = gettext("Attempt %(attempt)s on worker %(worker)s") % {
        "attempt": entry.get("attempt", "?"),
        "worker": entry.get("worker") or "?",
    }
    times = format_html_join(" → ", "{}", ((_instant(entry.get(key)),) for key in ("started_at", "ended_at")))
    exception = format_html("<strong>{}</strong>: {}", entry.get("exception", "?"), entry.get("message", ""))
    return format_html('<p class="quiet">{}, {}</p><p>{}</p>{}', facts, times, exception, _traceback(entry))


def _instant(text: Any) -> SafeString | str:
    try:
        return instant(parse_datetime(text)) if text else NOTHING
    except (TypeError, ValueError):  # written by hand
        return str(text)


def _traceback(entry: Mapping[str, Any]) -> SafeString | str:
    trace = entry.get("traceback")
    if not trace:
        return ""
    return format_html("<details><summary>{}</summary>{}</details>", gettext("Traceback"), cut(str(trace)))
