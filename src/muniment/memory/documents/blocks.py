"""The blocks of a text: headings, fenced code and paragraphs, as spans of characters. Nothing is rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

__all__ = ["HEADING_CHARS_MAX", "Block", "front_title", "markdown_blocks", "plain_blocks"]

HEADING_CHARS_MAX = 200
"""Characters of a heading that stand in a path, at most. Its whole text is in its chunk."""
_FRONT_CHARS_MAX = 16_000

_LINE = re.compile(r"[^\r\n]+")
_BREAKS = ("", "\n", "\r", "\r\n")
"""What stands between two lines of one paragraph."""
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*$")
_NO_HEADING = re.compile(r"\s*(?:[-*+>|]|\d{1,9}[.)])")
"""Lines that a row of dashes does not make a heading: items, quotes, rows."""
_FENCE = re.compile(r"[ \t]{0,16}(`{3,}+(?=[^`]*$)|~{3,}+)")
_FRONT = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?---[ \t]*$", re.MULTILINE)
_FRONT_TITLE = re.compile(r"^title:[ \t]*([^\r\n]*)", re.MULTILINE)


class Block(NamedTuple):
    """A stretch of text that is best kept together; no white space at either end."""

    start: int
    end: int
    kind: Literal["heading", "fence", "prose"] = "prose"
    level: int = 0
    title: str = ""


def plain_blocks(text: str) -> Iterator[Block]:
    """Paragraphs: lines without a blank one between them."""
    start = end = 0
    for found in _LINE.finditer(text):
        if found[0].isspace():
            continue
        if end and not _adjoin(text, end, found.start()):
            yield _trimmed(text, start, end)
            start = found.start()
        elif not end:
            start = found.start()
        end = found.end()
    if end:
        yield _trimmed(text, start, end)


def _adjoin(text: str, end: int, start: int) -> bool:
    return start - end <= 2 and text[end:start] in _BREAKS


def markdown_blocks(text: str) -> Iterator[Block]:
    """Headings, fences and the paragraphs between them; front matter is a paragraph."""
    reader = _MarkdownReader(text)
    front = _front_matter(text)
    if front is not None:
        yield _trimmed(text, 0, front)
    for found in _LINE.finditer(text, front or 0):
        yield from reader.read(found.start(), found.end())
    yield from reader.finish()


def _front_matter(text: str) -> int | None:
    """Where the front matter ends, if the text begins with one."""
    found = _FRONT.match(text, 0, _FRONT_CHARS_MAX) if text.startswith("---") else None
    return None if found is None else found.end()


def front_title(text: str) -> str | None:
    """The title that the front matter gives."""
    front = _front_matter(text)
    found = None if front is None else _FRONT_TITLE.search(text, 0, front)
    return None if found is None else found[1].strip().strip("\"'").strip() or None


class _MarkdownReader:
    """Line by line: what is open is a paragraph or a fence, or nothing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = 0
        self._lines = 0
        """Of the open paragraph."""
        self._fence = ""
        """The mark that opened a fence."""

    def read(self, start: int, end: int) -> Iterator[Block]:
        line = self._text[start:end]
        if self._fence:
            self._end = end
            bare = line.strip()
            if len(bare) >= len(self._fence) and not bare.strip(self._fence[0]):
                yield from self.finish()
            return
        if line.isspace() or (self._lines and not _adjoin(self._text, self._end, start)):
            yield from self.finish()
            if line.isspace():
                return
        yield from self._open(line, start, end)

    def _open(self, line: str, start: int, end: int) -> Iterator[Block]:
        fence, heading = _FENCE.match(line), _HEADING.match(line)
        if fence is not None:
            yield from self.finish()
            self._fence, self._start, self._end = fence[1], start, end
        elif heading is not None:
            yield from self.finish()
            yield self._heading(start, end, len(heading[1]), line[heading.end() :])
        elif self._lines == 1 and (underline := _UNDERLINE.match(line)) and self._may_be_heading():
            title = self._text[self._start : self._end]
            yield self._heading(self._start, end, 1 if underline[1][0] == "=" else 2, title)
            self._lines = 0
        else:
            self._start = self._start if self._lines else start
            self._end, self._lines = end, self._lines + 1

    def _may_be_heading(self) -> bool:
        return _NO_HEADING.match(self._text, self._start, self._end) is None

    def _heading(self, start: int, end: int, level: int, title: str) -> Block:
        bare = title.strip()
        open_ended = bare.rstrip("#")
        if not open_ended or open_ended[-1] in " \t":
            bare = open_ended.rstrip()
        place = _trimmed(self._text, start, end)
        return Block(place.start, place.end, "heading", level, bare[:HEADING_CHARS_MAX])

    def finish(self) -> Iterator[Block]:
        """Close what is open: a fence that nobody closed goes on to the end."""
        if self._fence or self._lines:
            block = _trimmed(self._text, self._start, self._end)
            yield block._replace(kind="fence") if self._fence else block
        self._fence, self._lines = "", 0


def _trimmed(text: str, start: int, end: int) -> Block:
    """The stretch without white space at its ends; there is something else in it."""
    while text[start].isspace():
        start += 1
    while text[end - 1].isspace():
        end -= 1
    return Block(start, end)
