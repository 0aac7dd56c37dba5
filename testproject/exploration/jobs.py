"""``exploration:run``: reads one part of a folder and stores its documents."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from django.db import transaction

from django_jobqueue import DeadJob, job
from django_jobqueue.handlers import JobContext

from .folders import MAX_BYTES, Part, package_of, plan
from .models import FIGURES, TEXT_LIMIT, Document, ExplorationSession
from .reading import KINDS, URLS_KEPT, read

#: Documents in one write: short transactions leave SQLite's one writer to others, too.
CHUNK = 20

_UPDATED = ["package", "kind", "title", "outline", "text", "urls", *FIGURES]


def part_key(session_id: int, config: dict[str, Any]) -> str:
    """At most one active job for a part of a session."""
    part = json.dumps(config, sort_keys=True)
    return f"exploration:{session_id}:{hashlib.sha256(part.encode()).hexdigest()[:16]}"


@job(
    "exploration:run",
    queue="exploration",
    dedupe_key=part_key,
    never_retry=[ExplorationSession.DoesNotExist],
    takes_context=True,
)
def run_exploration(context: JobContext, session_id: int, config: dict[str, Any]) -> dict[str, int]:
    """Read the files of one part of the session's folder; ``config`` says which (see ``Part``).

    May run twice, as any job: a document is updated if it is there already.
    """
    session = ExplorationSession.objects.get(pk=session_id)
    root = Path(session.root)
    try:
        files = Part.from_config(config).files(root)
    except (ValueError, TypeError, FileNotFoundError, NotADirectoryError) as problem:
        raise DeadJob(str(problem)) from problem
    figures: Counter[str] = Counter(files=0, unreadable=0)
    documents: list[Document] = []
    for file in context.track(files, note=str(config.get("package") or root.name)):
        if context.cancelled:
            break  # what is stored stays; another run would only update it
        document = explore(session, root, file)
        figures["files" if document else "unreadable"] += 1
        if document is not None:
            documents.append(document)
            figures.update({name: getattr(document, name) for name in FIGURES})
        if len(documents) >= CHUNK:
            store(documents)
            documents = []
    store(documents)
    return dict(figures)


def explore(session: ExplorationSession, root: Path, file: Path) -> Document | None:
    """The document that a file makes; None if it cannot be read or is too large to be reading matter."""
    try:
        if file.stat().st_size > MAX_BYTES:
            return None
        reading = read(file.read_bytes(), KINDS[file.suffix.lower()])
    except OSError:
        return None  # gone or locked away since it was listed
    return Document(
        session=session,
        package=_clean(package_of(root, file))[:255],
        path=_clean(file.relative_to(root).as_posix())[-1_000:],
        kind=reading.kind,
        title=reading.title,
        outline=reading.outline[:TEXT_LIMIT],
        text=reading.text[:TEXT_LIMIT],
        urls=reading.urls[:URLS_KEPT],
        lines=reading.lines,
        words=reading.words,
        bytes=reading.bytes,
        headings=len(reading.headings),
        definitions=len(reading.definitions),
        links=len(reading.urls),
    )


def store(documents: list[Document]) -> None:
    """Write documents; one that its session has already is updated."""
    Document.objects.bulk_create(
        documents, update_conflicts=True, unique_fields=["session", "path"], update_fields=_UPDATED
    )


def start_session(root: Path) -> ExplorationSession:
    """A new session, and a job for each part of its folder: all in one transaction, so both or neither."""
    parts = plan(root)
    with transaction.atomic():
        session = ExplorationSession.objects.create(root=str(root))
        run_exploration.enqueue_many({"session_id": session.pk, "config": part.as_config()} for part in parts)
    return session


def _clean(name: str) -> str:
    # File names are bytes; what is no UTF-8 in them cannot be stored as text.
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
