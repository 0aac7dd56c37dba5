"""What is found in a file, whatever its bytes are."""

from __future__ import annotations

import pytest

from testproject.exploration.reading import KINDS, read


def test_python_has_its_definitions_and_its_first_docstring_line_as_the_title() -> None:
    source = b'"""Ducks.\n\nMore."""\nclass Duck:\n    def quack(self): ...\n\nasync def feed(): ...\nx = 1\n'
    reading = read(source, "python")
    assert reading.title == "Ducks."
    assert reading.definitions == ["class Duck", "def Duck.quack", "def feed"]
    assert reading.outline == "class Duck\ndef Duck.quack\ndef feed"


@pytest.mark.parametrize(
    "source", ["print 'two'", "def f(:", "(" * 300, "x = " + "-" * 20_000 + "1", "\ufeffx = 1"]
)
def test_python_that_cannot_be_parsed_is_text(source: str) -> None:
    reading = read(source.encode(), "python")
    assert reading.definitions == []
    assert reading.words > 0


def test_markdown_headings_are_found_outside_code_blocks_only() -> None:
    text = "# One #\n\n```sh\n# a comment\n```\n\n## Two\n\nThree\n=====\n\n- item\n---\n"
    assert read(text.encode(), "markdown").headings == ["One", "Two", "Three"]


def test_rst_headings_are_underlined_at_least_as_long_as_they_are() -> None:
    text = "=====\nTitle\n=====\n\nPart\n----\n\nNo heading\n---\n\n    indented\n    --------\n"
    assert read(text.encode(), "rst").headings == ["Title", "Part"]


def test_links_are_counted_once_and_images_are_none() -> None:
    text = "[a](https://a.example/x) <https://b.example>. https://a.example/x ![no](pic.png) [d](doc.md)"
    assert sorted(read(text.encode(), "markdown").urls) == [
        "doc.md",
        "https://a.example/x",
        "https://b.example",
    ]


def test_figures_are_those_of_the_whole_file() -> None:
    reading = read("ä b\r\nc".encode(), "text")
    assert (reading.lines, reading.words, reading.bytes) == (2, 3, 7)


@pytest.mark.parametrize("kind", sorted(set(KINDS.values())))
@pytest.mark.parametrize(
    "content", [b"", b"\0\0", b"\xff\xfe\x00d", "\ud800".encode("utf-8", "surrogatepass"), b"\n"]
)
def test_any_bytes_are_read_to_text_that_databases_store(content: bytes, kind: str) -> None:
    reading = read(content, kind)
    assert "\0" not in reading.text
    assert reading.text.encode().decode() == reading.text
