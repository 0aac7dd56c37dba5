"""What arguments a function takes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

# From Python 3.14 on, annotations are worked out when asked for; those under TYPE_CHECKING cannot be.
_UNEVALUATED: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    from annotationlib import Format

    _UNEVALUATED["annotation_format"] = Format.FORWARDREF


def function_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Its signature, without a look at what its annotations mean."""
    return inspect.signature(function, **_UNEVALUATED)
