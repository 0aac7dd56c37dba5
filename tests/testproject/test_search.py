"""search, on the real full-text index of each database."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from django_jobqueue.models import Job, JobStatus
from testproject.exploration.jobs import run_exploration, start_session
from testproject.exploration.models import Document, ExplorationSession
from testproject.search.index import excerpt, terms_of
from testproject.search.jobs import search

pytestmark = pytest.mark.django_db(transaction=True)

Run = Callable[..., int]


@pytest.fixture
def session(folder: Path, run_due: Run) -> ExplorationSession:
    session = start_session(folder)
    run_due()
    return session


def paths(query: str, limit: int = 10) -> list[str]:
    return [hit["path"] for hit in search(query, limit)["hits"]]


def test_a_job_of_the_search_has_the_hits_as_its_result(session: ExplorationSession, run_due: Run) -> None:
    job = search.enqueue(query="carp", limit=3)
    run_due()
    job.refresh_from_db()
    assert job.status == JobStatus.DONE
    (hit,) = job.result["hits"]
    document = session.documents.get(path="birds/heron.py")
    assert {name: hit[name] for name in ("document", "path", "package", "title")} == {
        "document": document.pk,
        "path": "birds/heron.py",
        "package": "birds",
        "title": "A heron fishing.",
    }
    assert "«carp»" in hit["excerpt"]
    assert hit["rank"] > 0


@pytest.mark.usefixtures("session")
def test_a_word_in_the_title_ranks_above_one_in_the_text() -> None:
    hits = search("heron", 10)["hits"]
    found = [hit["path"] for hit in hits]
    assert set(found) == {"birds/heron.py", "README.md", "birds/deep/notes.rst", "frogs/pond.txt"}
    assert set(found[:2]) == {"birds/heron.py", "README.md"}
    assert [hit["rank"] for hit in hits] == sorted((hit["rank"] for hit in hits), reverse=True)


@pytest.mark.usefixtures("session")
def test_words_are_found_in_other_forms_too() -> None:
    assert "frogs/pond.txt" in paths("singing frog")


@pytest.mark.usefixtures("session")
def test_every_word_must_be_there_and_a_phrase_as_it_is() -> None:
    assert paths("pond night") == ["frogs/pond.txt"]
    assert paths('"pond at night"') == ["frogs/pond.txt"]
    assert paths('"night pond"') == []
    assert paths("pond giraffe") == []


@pytest.mark.usefixtures("session")
def test_no_more_than_the_limit_are_found() -> None:
    assert paths("heron", 1) == paths("heron")[:1]


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(
    "query",
    [
        "",
        "  ",
        '"',
        '""',
        "'",
        "; DROP TABLE",
        "NOT",
        "AND OR",
        "a NEAR b",
        "*",
        "title:x",
        "-x",
        "(",
        "%s",
        "\0",
        "🐦",
        ":*&|!<->",
    ],
)
def test_whatever_is_typed_is_words_and_never_an_operator(query: str) -> None:
    assert isinstance(search(query, 5)["hits"], list)


@pytest.mark.parametrize(
    "payload", [{"query": "a", "limit": 0}, {"query": "a", "limit": 1_000}, {"query": 7}]
)
def test_a_search_that_makes_no_sense_is_dead_at_once(payload: dict[str, Any], run_due: Run) -> None:
    job = Job.objects.enqueue("search", payload)
    run_due()
    job.refresh_from_db()
    assert (job.status, job.attempts) == (JobStatus.DEAD, 1)


def test_what_changed_or_went_is_not_found_any_more(session: ExplorationSession) -> None:
    Document.objects.filter(path="birds/heron.py").update(text="now about geese")
    assert paths("carp") == []
    assert paths("geese") == ["birds/heron.py"]
    session.delete()
    assert paths("heron") == []


def test_of_two_sessions_of_a_folder_only_the_newest_is_searched(
    session: ExplorationSession, folder: Path, run_due: Run
) -> None:
    newer = start_session(folder)
    run_due()
    (hit,) = search("carp", 10)["hits"]
    assert newer.documents.filter(pk=hit["document"]).exists()


def test_code_is_found_by_the_parts_of_dotted_and_underlined_names(run_due: Run) -> None:
    session = ExplorationSession.objects.create(root=sysconfig.get_path("stdlib"))
    run_exploration.enqueue(session_id=session.pk, config={"package": "json"})
    run_due()
    assert "json/encoder.py" in paths("c_make_encoder")
    assert "json/decoder.py" in paths("JSONDecodeError")
    assert paths("JSONDecoder")[0] == "json/decoder.py"


def test_an_excerpt_shows_the_first_place_and_marks_every_form() -> None:
    text = "x " * 500 + "She was running. He runs « not »." + " y" * 500
    shown = excerpt(text, ["run"])
    assert "She was «running». He «runs» < not >." in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")


def test_terms_are_words_and_phrases_without_punctuation() -> None:
    assert list(terms_of('asyncio.run "in two-words" -x "" _ äh')) == [
        "asyncio run",
        "in two words",
        "x",
        "äh",
    ]


def test_the_index_can_be_taken_away_and_made_anew_from_what_is_there(session: ExplorationSession) -> None:
    call_command("migrate", "search", "zero", verbosity=0)
    call_command("migrate", "search", verbosity=0)
    assert paths("carp") == ["birds/heron.py"]
    assert session.documents.count() == 7
