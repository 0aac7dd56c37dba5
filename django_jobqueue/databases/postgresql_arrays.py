"""Batches on PostgreSQL travel as the text of arrays, one array a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

#: The type of an array of each kind of column.
ARRAYS = {
    "id": "uuid[]",
    "int": "int[]",
    "float": "float8[]",
    "text": "text[]",
    "json": "jsonb[]",
    "time": "timestamptz[]",
}


def _plain_element(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _quoted_element(value: Any) -> str:
    if value is None:
        return "NULL"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


#: How a value of each kind is written inside the text of an array.
ELEMENTS: dict[str, Callable[[Any], str]] = {
    "id": attrgetter("hex"),
    "int": _plain_element,
    "float": _plain_element,
    "text": _quoted_element,
    "json": _quoted_element,
    "time": _quoted_element,
}


def array_text(kind: str, values: Iterable[Any]) -> str:
    """An array of these values as the server reads it."""
    return "{" + ",".join(map(ELEMENTS[kind], values)) + "}"
