"""JSON in and out: what goes in comes back unchanged, on both databases, or is refused by its path."""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import Any

from .exceptions import InvalidPayload, InvalidResult

#: Levels of nesting. SQLite's JSON functions stop at 1,000; anything this deep is a mistake.
MAX_DEPTH = 200

#: PostgreSQL writes floats from here on without a point or exponent.
FLOAT_EXACT = 1e16
#: Whole numbers up to here need no further look.
INT_PLAIN = 2**63

#: Without looking for circles: what is nested too deep has been refused before.
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode
#: Without the search for blanks around it, half the work of ``json.loads``: the database gives none.
_decode = json.JSONDecoder().raw_decode


def encode_payload(payload: Any, max_bytes: int) -> str:
    """The JSON text of a payload.

    Tuples become lists (JSON has no tuple); nothing else is changed. Raises ``InvalidPayload``, naming the
    path inside the payload, for anything that is not a JSON object of JSON values or is over ``max_bytes``.
    """
    if not isinstance(payload, dict):
        raise InvalidPayload(
            "payload", f"must be a dict (a JSON object), not {type(payload).__name__}. Name the values."
        )
    return _encoded(payload, "payload", max_bytes, InvalidPayload)


def encode_result(result: Any, max_bytes: int) -> str | None:
    """The JSON text of what a handler returned, None for None. Raises ``InvalidResult`` like the above.

    Only floats from 1e16 on are let through: PostgreSQL gives them back as whole numbers.
    """
    if result is None:
        return None
    return _encoded(result, "result", max_bytes, InvalidResult)


def decode(text: str) -> Any:
    """What ``encode_payload`` or ``encode_result`` was given."""
    return _decode(text)[0]


def _encoded(value: Any, path: str, max_bytes: int, error: type[InvalidPayload]) -> str:
    _check(value, path, 0, error)
    text = _encode(value)
    size = len(text) if text.isascii() else len(text.encode())
    if size > max_bytes:
        raise error(
            path,
            f"{size:,} bytes of JSON, over the limit of {max_bytes:,}. Store the data elsewhere and pass "
            f'its key, or raise JOBQUEUE["MAX_{path.upper()}_BYTES"].',
        )
    return text


def _check(value: Any, path: str, depth: int, error: type[InvalidPayload]) -> None:
    kind = type(value)
    if kind is dict and depth < MAX_DEPTH:  # what most are, and what is in them says the rest
        _check_inside(value, path, depth + 1, error)
        return
    if value is None or kind is bool or (kind is int and -INT_PLAIN < value < INT_PLAIN):
        return
    if isinstance(value, Enum):
        raise error(path, f"{value!r} would come back as a plain value. Pass its .value.")
    if isinstance(value, str):
        _check_text(value, path, error)
    elif isinstance(value, float):
        _check_float(value, path, error)
    elif isinstance(value, dict | list | tuple):
        if depth >= MAX_DEPTH:
            raise error(path, f"nested deeper than {MAX_DEPTH} levels.")
        _check_inside(value, path, depth + 1, error)
    elif isinstance(value, int):
        _check_int(value, path, error)
    else:
        raise error(
            path,
            f"{kind.__module__}.{kind.__qualname__} is not JSON. Pass text or numbers (for example "
            "value.isoformat(), str(value), a primary key).",
        )


def _check_inside(
    value: dict[Any, Any] | list[Any] | tuple[Any, ...], path: str, depth: int, error: type[InvalidPayload]
) -> None:
    if not isinstance(value, dict):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth, error)
        return
    for key, item in value.items():
        if _is_plain(key, item):
            continue
        if not isinstance(key, str) or isinstance(key, Enum):
            raise error(path, f"the key {key!r} is not text; JSON would change it. Use str(key).")
        _check_text(key, f"{path} key {clean_text(key)!r}", error)
        _check(item, f"{path}.{key}", depth, error)


def _is_plain(key: Any, item: Any) -> bool:
    """Whether nothing can be wrong with them: true of most, and found without naming them first."""
    if type(key) is not str or not key.isascii() or "\x00" in key:
        return False
    kind = type(item)
    if kind is int:
        return bool(-INT_PLAIN < item < INT_PLAIN)
    return item is None or kind is bool or (kind is str and item.isascii() and "\x00" not in item)


def _check_float(value: float, path: str, error: type[InvalidPayload]) -> None:
    if not math.isfinite(value):
        raise error(path, f"{value!r} is not a JSON number. Pass None or text instead.")
    if abs(value) >= FLOAT_EXACT and error is not InvalidResult:
        # A result may be rounded; refusing it would throw away a handler's work.
        raise error(path, f"{value!r} would come back from PostgreSQL as a whole number. Pass int or text.")


def _check_int(value: int, path: str, error: type[InvalidPayload]) -> None:
    try:
        str(int(value))
    except ValueError as problem:  # beyond Python's limit for turning numbers into text
        raise error(path, f"{problem}. Pass it as text in another base.") from None


def _check_text(text: str, path: str, error: type[InvalidPayload]) -> None:
    if "\x00" in text:
        raise error(path, "contains a NUL character, which PostgreSQL cannot store. Remove it.")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            raise error(
                path, f"contains a lone surrogate at position {problem.start}, which is not valid Unicode."
            ) from None


def clean_text(text: str, limit: int | None = None) -> str:
    """``text`` as every database can store it: NULs and lone surrogates escaped, cut in the middle."""
    text = text.replace("\x00", "\\x00")
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    if limit is not None and len(text) > limit:
        head = limit // 4
        cut = len(text) - limit
        text = f"{text[:head]}\n… {cut:,} characters left out …\n{text[-(limit - head) :]}"
    return text
