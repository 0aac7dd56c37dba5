"""Values that nobody should read: those under the keys in JOBQUEUE["REDACT"], wherever they turn up.

In JSON they are found by their key. In text (messages, tracebacks, log lines) they are found where the key
stands beside them (``password='…'``, ``"password": "…"``), and as the very values that the job's payload has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from . import conf

#: What stands in place of a hidden value.
HIDDEN = "••••••"

#: Shorter values are not looked for in text: they would be found inside innocent words.
SHORTEST = 4


def hides_anything() -> bool:
    """Whether any key is to be hidden."""
    return bool(conf.current().REDACT)


def redact(value: Any, positions: Sequence[str] = ()) -> Any:
    """A copy of a JSON value with what stands under hidden keys replaced; upper and lower case are alike.

    ``positions``: of a task's payload, the names of its ``args``.
    """
    keys = _keys()
    if not keys:
        return value
    found = _redacted(value, keys)
    if positions and isinstance(found["args"], list):
        found["args"] = [
            HIDDEN if name.casefold() in keys else one
            for one, name in zip_longest(found["args"], positions[: len(found["args"])], fillvalue="")
        ]
    return found


def redact_text(text: str, payload: Any = None, positions: Sequence[str] = ()) -> str:
    """Text without hidden values; those that ``payload``, the job's, has are looked for as they are."""
    if not hides_anything():
        return text
    named = [dict([one]) for one in zip(positions, payload["args"], strict=False)] if positions else []
    for secret in sorted(set(_secrets([payload, *named], _keys())), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _beside(tuple(sorted(_keys()))).sub(rf"\1{HIDDEN}", text)


def restore(edited: Any, original: Any) -> Any:
    """``edited`` with each placeholder turned back into what stands in its place in ``original``."""
    if edited == HIDDEN:
        return original
    if isinstance(edited, dict) and isinstance(original, Mapping):
        return {key: restore(item, original.get(key, HIDDEN)) for key, item in edited.items()}
    if isinstance(edited, list) and isinstance(original, list):
        padded: Iterable[Any] = [*original, *[HIDDEN] * (len(edited) - len(original))]
        return [restore(item, old) for item, old in zip(edited, padded, strict=False)]
    return edited


def _keys() -> frozenset[str]:
    return frozenset(key.casefold() for key in conf.current().REDACT)


def _redacted(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if str(key).casefold() in keys else _redacted(item, keys)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redacted(item, keys) for item in value]
    return value


def _secrets(value: Any, keys: frozenset[str], hidden: bool = False) -> Iterator[str]:
    """The texts and numbers under hidden keys, at any depth."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets(item, keys, hidden or str(key).casefold() in keys)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets(item, keys, hidden)
    elif hidden and not isinstance(value, bool) and value is not None and len(str(value)) >= SHORTEST:
        yield str(value)
        yield repr(value)[1:-1] if isinstance(value, str) else str(value)  # as it stands in a repr


@lru_cache(maxsize=8)
def _beside(keys: tuple[str, ...]) -> re.Pattern[str]:
    """A hidden key, then a colon or an equals sign, then its value: quoted, or up to the next delimiter."""
    names = "|".join(re.escape(key) for key in keys)
    key = rf"""(?<![\w-])['"]?(?:{names})['"]?"""
    value = r"""(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[^\s,;&)}\]'"]+)"""
    return re.compile(rf"({key}\s*[:=]\s*){value}", re.IGNORECASE)
