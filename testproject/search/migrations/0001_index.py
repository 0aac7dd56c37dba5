"""The full-text index of each database, kept up to date by the database itself."""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

# Punctuation becomes white space first: PostgreSQL's parser would take asyncio.run for a host's name, one
# word that nobody who looks for "asyncio" finds.
_WORDS = "translate({}, '!\"#$%&''()*+,-./:;<=>?@[\\]^_`{{|}}~', repeat(' ', 32))"

POSTGRESQL = [
    """
    ALTER TABLE exploration_document ADD COLUMN search_vector tsvector GENERATED ALWAYS AS (
        setweight(to_tsvector('english', {title}), 'A') ||
        setweight(to_tsvector('english', {outline}), 'B') ||
        setweight(to_tsvector('english', {text}), 'D')
    ) STORED
    """.format(**{name: _WORDS.format(name) for name in ("title", "outline", "text")}),
    "CREATE INDEX search_document_vector ON exploration_document USING gin (search_vector)",
]
POSTGRESQL_BACK = ["ALTER TABLE exploration_document DROP COLUMN search_vector"]

# An index without a copy of the text. It must be told of the old text when a row goes or changes.
_FORGET = (
    "INSERT INTO search_index (search_index, rowid, title, outline, text) "
    "VALUES ('delete', old.id, old.title, old.outline, old.text);"
)
_LEARN = (
    "INSERT INTO search_index (rowid, title, outline, text) "
    "VALUES (new.id, new.title, new.outline, new.text);"
)
SQLITE = [
    "CREATE VIRTUAL TABLE search_index USING fts5(title, outline, text, content='exploration_document', "
    "content_rowid='id', tokenize='porter unicode61')",
    "INSERT INTO search_index (search_index) VALUES ('rebuild')",
    f"CREATE TRIGGER search_insert AFTER INSERT ON exploration_document BEGIN {_LEARN} END",
    f"CREATE TRIGGER search_delete AFTER DELETE ON exploration_document BEGIN {_FORGET} END",
    "CREATE TRIGGER search_update AFTER UPDATE OF title, outline, text ON exploration_document "
    f"BEGIN {_FORGET} {_LEARN} END",
]
SQLITE_BACK = [
    "DROP TRIGGER search_insert",
    "DROP TRIGGER search_delete",
    "DROP TRIGGER search_update",
    "DROP TABLE search_index",
]


def create(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _execute(schema_editor, POSTGRESQL if schema_editor.connection.vendor == "postgresql" else SQLITE)


def drop(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _execute(
        schema_editor, POSTGRESQL_BACK if schema_editor.connection.vendor == "postgresql" else SQLITE_BACK
    )


def _execute(schema_editor: BaseDatabaseSchemaEditor, statements: list[str]) -> None:
    for statement in statements:
        schema_editor.execute(statement, params=None)  # None: a % in it is just a %


class Migration(migrations.Migration):
    dependencies = [("exploration", "0001_initial")]

    operations = [migrations.RunPython(create, drop)]
