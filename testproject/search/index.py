"""Full-text search with what the database has: ``tsvector`` on PostgreSQL, FTS5 on SQLite.

Both keep their index themselves (a generated column, triggers: see the migration), stem English words,
weigh titles over outlines over text, and read the same query: every word must be there, words in quotes
beside each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection

from testproject.exploration.models import Document

#: Characters of an excerpt, about.
EXCERPT = 240

# Only the newest session of each folder: older ones have the same documents once more.
_NEWEST = "d.session_id IN (SELECT MAX(id) FROM exploration_explorationsession GROUP BY root)"

_POSTGRESQL = f"""
SELECT d.id, ts_rank(d.search_vector, query, 1) AS rank
FROM exploration_document d, websearch_to_tsquery('english', %s) query
WHERE d.search_vector @@ query AND {_NEWEST}
ORDER BY rank DESC, d.id LIMIT %s
"""  # noqa: S608 - a constant

# bm25() is the better the lower; the numbers weigh the columns.
_SQLITE = f"""
SELECT d.id, -bm25(search_index, 10, 4, 1) AS rank
FROM search_index JOIN exploration_document d ON d.id = search_index.rowid
WHERE search_index MATCH %s AND {_NEWEST}
ORDER BY rank DESC, d.id LIMIT %s
"""  # noqa: S608 - a constant

_TERM = re.compile(r'"([^"]*)"|(\S+)')
_NO_WORD = re.compile(r"[\W_]+")
_SUFFIX = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|ly|er|ion|ions)$")


@dataclass(frozen=True)
class Hit:
    """A document that was found. Higher ``rank`` is better; it compares within one search only."""

    document: int
    path: str
    package: str
    title: str
    rank: float
    excerpt: str


def find(query: str, limit: int) -> list[Hit]:
    """The best ``limit`` documents for what a person typed."""
    terms = list(terms_of(query))
    if not terms:
        return []
    ranks = _ranks(" ".join(f'"{term}"' for term in terms), limit)
    documents = Document.objects.only("path", "package", "title", "text").in_bulk(ranks)
    return [
        Hit(pk, found.path, found.package, found.title, round(rank, 6), excerpt(found.text, terms))
        for pk, rank in ranks.items()
        if (found := documents.get(pk))
    ]


def terms_of(query: str) -> Iterator[str]:
    """The words and phrases of a query, without anything that either database would take for an operator."""
    for phrase, word in _TERM.findall(query.replace("\0", "")):
        if term := _NO_WORD.sub(" ", phrase or word).strip():
            yield term


def excerpt(text: str, terms: list[str]) -> str:
    """The place in ``text`` where the terms stand closest to its beginning, the words marked «so»."""
    # The index stems, the text does not: look for words that begin like those searched for.
    stems = {_SUFFIX.sub("", word) for term in terms for word in term.lower().split()}
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, stems))})[^\W_]*", re.IGNORECASE)
    first = pattern.search(text)
    start = max(first.start() - EXCERPT // 3, 0) if first else 0
    cut = text[start : start + EXCERPT].replace("«", "<").replace("»", ">")
    marked = pattern.sub(lambda match: f"«{match[0]}»", cut)
    return ("… " if start else "") + " ".join(marked.split()) + (" …" if start + EXCERPT < len(text) else "")


def _ranks(match: str, limit: int) -> dict[int, float]:
    sql = _POSTGRESQL if connection.vendor == "postgresql" else _SQLITE
    with connection.cursor() as cursor:
        cursor.execute(sql, [match, limit])
        return dict(cursor.fetchall())
