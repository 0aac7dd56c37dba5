"""Seconds as people read them. The units are symbols, the same in every language."""

from __future__ import annotations

from django.utils import formats

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def span_text(seconds: float | None) -> str:
    """``450 ms``, ``3.2 s``, ``4 min 10 s``, ``2 h 5 min``, ``3 d 4 h``; a dash for None."""
    if seconds is None:
        return "-"
    seconds = max(seconds, 0.0)
    if seconds < 0.9995:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 9.95:
        return f"{formats.number_format(round(seconds, 1), 1)} s"
    whole = round(seconds)
    for place, (size, unit) in enumerate(_UNITS):
        if whole >= size:
            rest = whole % size
            if unit == "s" or not (rest := rest // _UNITS[place + 1][0]):
                return f"{whole // size} {unit}"
            return f"{whole // size} {unit} {rest} {_UNITS[place + 1][1]}"
    return f"{whole} s"
