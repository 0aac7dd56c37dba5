"""From a file's bytes to what is known of it: figures, title, headings, definitions, links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

#: The file name under which Python sees other people's code; warnings about it are told apart by it.
SOURCE_NAME = "<explored>"

#: Which suffixes are read, and as what.
KINDS = {
    ".py": "python",
    ".pyi": "python",
    ".md": "markdown",
    ".markdown": "markdown",
    ".rst": "rst",
    ".txt": "text",
    ".html": "text",
    ".css": "text",
    ".js": "text",
    ".ts": "text",
    ".c": "text",
    ".h": "text",
    ".toml": "text",
    ".cfg": "text",
    ".ini": "text",
    ".sh": "text",
}

#: URLs kept of one document; all are counted.
URLS_KEPT = 100
LINE_LIMIT = 200

_URL = re.compile(r"https?://[^\s<>\"'`)\]}\\]+")
_MARKDOWN_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)[^)\n]*\)")
_MARKDOWN_HEADING = re.compile(r"^#{1,6} +(.+?)[ #]*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
# A line of one repeated punctuation mark: what reStructuredText and Markdown draw under (and over) a heading.
_UNDERLINE = re.compile(r"^([-=~^\"'*+#.:_`])\1{2,}$")


@dataclass
class Reading:
    """What one file holds."""

    kind: str
    text: str
    bytes: int
    title: str = ""
    headings: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)

    @property
    def lines(self) -> int:
        """Lines, the last one too where it does not end."""
        return self.text.count("\n") + (not self.text.endswith("\n") and bool(self.text))

    @property
    def words(self) -> int:
        """Words: what white space separates."""
        return len(self.text.split())

    @property
    def outline(self) -> str:
        """Headings and definitions, one a line."""
        return "\n".join([f"# {heading}" for heading in self.headings] + self.definitions)


def read(content: bytes, kind: str) -> Reading:
    """Take a file apart. Whatever its bytes are, this does not raise."""
    # NUL is the one character of valid UTF-8 that PostgreSQL does not store.
    text = content.decode("utf-8", "replace").replace("\0", "").replace("\r\n", "\n")
    reading = Reading(kind, text.removeprefix("\ufeff"), len(content))
    if kind == "python":
        _read_python(reading)
    elif kind == "markdown":
        reading.headings = [_cut(heading) for heading in markdown_headings(text)]
        reading.urls = [match[1] for match in _MARKDOWN_LINK.finditer(text)]
    elif kind == "rst" or (kind == "text" and _looks_like_rst(text)):
        reading.headings = [_cut(heading) for heading in rst_headings(text)]
    reading.urls = list(dict.fromkeys(reading.urls + [url.rstrip(".,;:") for url in _URL.findall(text)]))
    reading.title = reading.title or next(iter(reading.headings), "")
    return reading


def _read_python(reading: Reading) -> None:
    try:
        tree = ast.parse(reading.text, SOURCE_NAME)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # Python 2, a template, or meant to be wrong: still text to count and to search
    docstring = ast.get_docstring(tree) or ""
    reading.title = _cut(docstring.partition("\n")[0])
    reading.headings = [_cut(heading) for heading in rst_headings(docstring)]
    reading.definitions = list(definitions(tree))


def definitions(tree: ast.Module) -> Iterator[str]:
    """``class A``, ``def f``, ``def A.m``: what a module defines at its top and in its top classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield f"class {node.name}"
            yield from (f"def {node.name}.{inner.name}" for inner in node.body if _is_function(inner))
        elif _is_function(node):
            yield f"def {node.name}"


def _is_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def markdown_headings(text: str) -> Iterator[str]:
    """Headings with # and those underlined with = or -; not what looks like one inside a code block."""
    fence, before = "", ""
    for line in text.splitlines():
        if match := _FENCE.match(line):
            fence = "" if fence == match[1] else fence or match[1]
        elif not fence:
            if match := _MARKDOWN_HEADING.match(line):
                yield match[1]
            elif before and _UNDERLINE.match(line) and line[0] in "=-":
                yield before
        before = "" if fence or line.startswith((" ", "#", "-", "|")) else line.strip()


def rst_headings(text: str) -> Iterator[str]:
    """Lines that are underlined at least as long as they are."""
    before = ""
    for line in text.splitlines():
        stripped = line.rstrip()
        if (
            _UNDERLINE.match(stripped)
            and before
            and not _UNDERLINE.match(before)
            and len(stripped) >= len(before)
        ):
            yield before
        before = "" if line.startswith(" ") else stripped


def _looks_like_rst(text: str) -> bool:
    return ".. " in text or "::\n" in text


def _cut(text: str) -> str:
    return text.strip()[:LINE_LIMIT]
