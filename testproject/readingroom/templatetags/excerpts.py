from __future__ import annotations

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_MARKED = re.compile("«([^«»]*)»")


@register.filter
def marked(excerpt: str) -> SafeString:
    """An excerpt with its «words» marked. Escaped first: what is quoted here was written by anybody."""
    return mark_safe(_MARKED.sub(r"<mark>\1</mark>", escape(excerpt)))  # noqa: S308
