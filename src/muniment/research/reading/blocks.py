"""Markdown as blocks: headings, paragraphs, list items, table rows, quotes. Any text is some Markdown; one pass.

Only what says something is kept: code, rules and blank lines are not. A block is spans of the text, never a copy of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

__all__ = ["BOLD_LEVEL", "Block", "BlockKind", "read_blocks"]

BlockKind = Literal["prose", "bullet", "heading", "table", "quote"]
BOLD_LEVEL = 7
"""Of a line in bold that stands for a heading: below every real one."""

_TITLE_CHARS_MAX = 200
_LINE = re.compile(r"(?m)^([^\S\n]*+)(\S[^\n]*+)")
_FENCE = re.compile(r"(`{3,}+|~{3,}+)([^`\n]*+)")
_ATX = re.compile(r"(#{1,6}+)(?:\s++|\Z|(?<=##)(?=[^\s#]))")
_MARKER = re.compile(
    r"(?:[-*+•◦▪‣·●○■□–]|\d{1,3}+[.)]|[(（]\d{1,3}+[)）]|[a-zA-Z][.)]|[ivx]{1,5}[.)])(?=\s)\s++"
    r"|(?:\d{1,3}+[、．]|[（(][一二三四五六七八九十]{1,3}[)）]|[①-⑳])\s*+"
)
_TASK = re.compile(r"\[[ xX]\]\s++")
_QUOTE = re.compile(r"(?:>[ \t]*+)++")
_DELIMITER_ROW = re.compile(r"[\s|:-]*+\Z")
_BOLD_LINE = re.compile(r"(\*\*|__)(?!\s)((?:(?!\1).)++)\1\s*+[:：]?\Z")
_TREE = "│├└┌┬┼─╰╭║╠╚"
_STOPS = ".!?。！？;；…"


class Block(NamedTuple):
    """A block by the spans of its lines, without indent, list marker and quote marks."""

    kind: BlockKind
    lines: tuple[tuple[int, int], ...]
    level: int = 0
    """Of a heading."""
    marker: str = ""
    """Of a list item: "-", "3.", …"""
    apart: bool = True
    """A blank line, or anything that is no paragraph, stands before it."""

    @property
    def start(self) -> int:
        return self.lines[0][0]

    @property
    def end(self) -> int:
        return self.lines[-1][1]


def read_blocks(markdown: str) -> list[Block]:
    """All blocks, in their order."""
    return _Reader(markdown).read()


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    indented: bool
    apart: bool
    """After a blank line."""


class _Reader:
    def __init__(self, markdown: str) -> None:
        self._markdown = markdown
        self._blocks: list[Block] = []
        self._open: list[tuple[int, int]] = []
        """Lines of the paragraph, list item or quote that may go on."""
        self._kind: BlockKind = "prose"
        self._marker = ""
        self._apart = True
        self._in_table = False

    def read(self) -> list[Block]:
        for line in _without_code(list(self._lines())):
            if line.apart:
                self._close()
            self._take(line)
        self._close()
        return self._blocks

    def _lines(self) -> Iterator[_Line]:
        last = 0
        for found in _LINE.finditer(self._markdown):
            text = found[2].rstrip()
            start = found.start(2)
            apart = self._markdown.count("\n", last, start) > 1
            last = start + len(text)
            yield _Line(start, last, text, bool(found[1]), apart)

    def _close(self) -> None:
        if self._open:
            self._blocks.append(Block(self._kind, tuple(self._open), 0, self._marker, self._apart))
        self._open, self._in_table = [], False

    def _begin(self, kind: BlockKind, start: int, end: int, marker: str = "", *, apart: bool = True) -> None:
        self._close()
        if start < end:
            self._open, self._kind, self._marker, self._apart = [(start, end)], kind, marker, apart

    def _add(self, block: Block) -> None:
        self._close()
        if block.start < block.end:
            self._blocks.append(block)

    def _take(self, line: _Line) -> None:
        first = line.text[0]
        if first == "#" and (found := _ATX.match(line.text)):
            self._heading(line, found.end(), len(found[1]))
        elif first in "=-*_" and _is_rule(line.text):
            self._rule(line)
        elif first == ">":
            self._quote(line)
        elif first in "|" + _TREE or (self._in_table and "|" in line.text):
            self._row(line)
        elif "|" in line.text and "-" in line.text and self._open and _DELIMITER_ROW.match(line.text):
            self._header_row()
        elif first in "*_" and (bold := _BOLD_LINE.match(line.text)) and _is_title(bold[2]):
            self._bold(line, 0, bold)
        elif found := _MARKER.match(line.text):
            self._item(line, found)
        elif self._open and self._kind != "quote":
            self._open.append((line.start, line.end))
        else:
            self._begin("prose", line.start, line.end, apart=line.apart or not self._open)

    def _heading(self, line: _Line, at: int, level: int) -> None:
        title = line.text[at:]
        bare = title.rstrip("#")
        kept = bare.rstrip() if bare != title and (not bare or bare[-1].isspace()) else title
        self._add(Block("heading", ((line.start + at, line.start + at + len(kept)),), level))

    def _rule(self, line: _Line) -> None:
        """A line of dashes under a line of words makes it a heading; under a sentence, or alone, it is a rule."""
        words = self._kind == "prose" or self._marker[:1].isdecimal()
        if len(self._open) == 1 and words and line.text[0] in "=-":
            start, end = self._open[0]
            double = line.text[0] == "="
            if end - start <= _TITLE_CHARS_MAX and (double or self._markdown[end - 1] not in _STOPS):
                self._open = []
                self._add(Block("heading", ((start, end),), 1 if double else 2))
                return
        self._close()

    def _quote(self, line: _Line) -> None:
        prefix = _QUOTE.match(line.text)
        start = line.start + (prefix.end() if prefix else 0)
        if start >= line.end:
            self._close()
        elif self._open and self._kind == "quote":
            self._open.append((start, line.end))
        else:
            marker = _MARKER.match(line.text, start - line.start)
            self._begin("quote", line.start + marker.end() if marker else start, line.end)

    def _row(self, line: _Line) -> None:
        self._close()
        self._in_table = line.text[0] not in _TREE
        if not _DELIMITER_ROW.match(line.text):
            start, end = line.start, line.end
            signs = "| \t" + _TREE
            while start < end and self._markdown[start] in signs:
                start += 1
            while end > start and self._markdown[end - 1] in signs:
                end -= 1
            if start < end:
                self._blocks.append(Block("table", ((start, end),)))

    def _header_row(self) -> None:
        """The line above was the head of a table that has no bars at its ends."""
        head = self._open.pop()
        self._close()
        if "|" in self._markdown[head[0] : head[1]]:
            self._blocks.append(Block("table", (head,)))
        else:
            self._begin("prose", *head)
            self._close()
        self._in_table = True

    def _bold(self, line: _Line, at: int, found: re.Match[str]) -> None:
        self._add(Block("heading", ((line.start + at, line.start + at + len(found[0])),), BOLD_LEVEL))

    def _item(self, line: _Line, found: re.Match[str]) -> None:
        at = found.end()
        if task := _TASK.match(line.text, at):
            at = task.end()
        bold = _BOLD_LINE.match(line.text, at)
        if bold and _is_title(bold[2]):
            self._bold(line, at, bold)
            return
        apart = line.apart or not self._open
        self._begin("bullet", line.start + at, line.end, found[0].strip(), apart=apart)


def _is_rule(text: str) -> bool:
    signs = set(text) - {" ", "\t"}
    return len(signs) == 1 and (len(text) >= 3 or text[0] == "=")


def _is_title(words: str) -> bool:
    """Words in bold on a line of their own: a heading, unless they are a sentence."""
    return len(words) <= _TITLE_CHARS_MAX and words.rstrip()[-1:] not in _STOPS


def _without_code(lines: list[_Line]) -> list[_Line]:
    """Without fenced code. A fence that is never closed is none, and one around the whole output is seen through."""
    fences = {
        at: found for at, line in enumerate(lines) if line.text[0] in "`~" and (found := _FENCE.fullmatch(line.text))
    }
    if not fences:
        return lines
    wrapper = _wrapper(lines, fences)
    longest = {"`": 0, "~": 0}
    closable: set[int] = set()
    for at in sorted(fences.keys() - wrapper, reverse=True):
        sign, run = fences[at][1][0], len(fences[at][1])
        if run <= longest[sign]:
            closable.add(at)
        if not fences[at][2].strip():
            longest[sign] = max(longest[sign], run)
    kept: list[_Line] = []
    fence = ""
    for at, line in enumerate(lines):
        found = fences.get(at) if at not in wrapper else None
        if found is None:
            if not fence and at not in wrapper:
                kept.append(line if at - 1 not in fences else line._replace(apart=True))
        elif fence:
            if found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif at in closable:
            fence = found[1]
    return kept


def _wrapper(lines: list[_Line], fences: dict[int, re.Match[str]]) -> set[int]:
    """The pair of fences around an output that is handed over as a block of Markdown."""
    opening = next((at for at, found in fences.items() if found[2].strip().lower() in ("markdown", "md")), None)
    last = len(lines) - 1
    if opening is None or last <= opening or last not in fences or fences[last][2].strip():
        return set()
    return {opening, last}
