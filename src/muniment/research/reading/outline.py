"""The headings of an output: real ones, lines in bold, and plain lines that are a section's name ("References:")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muniment.research.reading.blocks import BOLD_LEVEL, Block
from muniment.research.reading.sections import Section, is_sources, section_kind
from muniment.research.reading.web import find_url

__all__ = ["Outline", "outline_of"]

_NAMED_LEVEL = 2
"""Of a line in bold, or a plain one, that is the name of a section."""
_OWN = frozenset({"sources", "gaps", "change note"})
"""Kinds that end whatever section they stand in, even where they are only a line."""
_PLAIN_CHARS_MAX = 40
_PARAGRAPH_CHARS_MIN = 60
_SIGNS = re.compile(r"[*_`#]+|\[\^?[\w,\s-]{1,20}\](?!\()")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")


class Outline(NamedTuple):
    blocks: list[Block]
    sections: tuple[Section, ...]
    titles: list[str]
    """For each block, the title of the heading it stands under."""
    listed: list[bool]
    """For each block, whether it stands in a list of sources."""


def outline_of(markdown: str, blocks: Sequence[Block]) -> Outline:
    real = [block for block in blocks if block.kind == "heading" and block.level < BOLD_LEVEL]
    structured = len(real) > 1 or any(block.level > 1 for block in real)
    named = [each for block in blocks for each in _with_names(markdown, block, structured=structured)]
    titled = any(block.kind == "heading" and block.level < BOLD_LEVEL for block in named)
    headings = {block.start for block in real}
    sections: list[Section] = []
    opened: list[int] = []
    before: list[int] | None = None  # what was open before a list of sources that only a line announces
    titles: list[str] = []
    listed: list[bool] = []
    for block in named:
        if block.kind == "heading":
            title = title_of(markdown, block)
            before = list(opened) if block.start not in headings and is_sources(title) else None
            while opened and sections[opened[-1]].level >= block.level:
                closed = opened.pop()
                sections[closed] = sections[closed]._replace(end=_line_start(markdown, block.start))
            opened.append(len(sections))
            sections.append(Section(title, block.level, _body_start(markdown, block.end), len(markdown)))
        elif before is not None and _is_paragraph(markdown, block):
            sections[opened[-1]] = sections[opened[-1]]._replace(end=_line_start(markdown, block.start))
            opened, before = before, None
        shown = [sections[at].title for at in opened if sections[at].level < BOLD_LEVEL or not titled]
        titles.append(shown[-1] if shown else "")
        listed.append(any(is_sources(sections[at].title) for at in opened))
    return Outline(named, tuple(sections), titles, listed)


def _is_paragraph(markdown: str, block: Block) -> bool:
    """Is it a paragraph of sentences, which no list of sources holds?"""
    text = markdown[block.start : block.end]
    long = block.kind == "prose" and block.apart and len(text) >= _PARAGRAPH_CHARS_MIN and text[-1] in ".。!！]】"
    return long and text[0] not in "[【" and find_url(text) is None


def title_of(markdown: str, block: Block) -> str:
    """A heading's words: without emphasis, marks and links, and without the colon at its end."""
    written = markdown[block.start : block.end]
    return " ".join(_SIGNS.sub("", _LINK.sub(r"\1", written)).split()).rstrip(" :：")


def _with_names(markdown: str, block: Block, *, structured: bool) -> Iterator[Block]:
    """A block, cut where one of its lines is the name of a section."""
    if block.kind == "heading":
        kind = section_kind(title_of(markdown, block)) if block.level == BOLD_LEVEL and not block.marker else None
        yield block._replace(level=_NAMED_LEVEL) if kind in _OWN or (kind and not structured) else block
        return
    if block.kind != "prose":
        yield block
        return
    lines = list(block.lines)
    begun = 0
    for at, (start, end) in enumerate(lines):
        if end - start <= _PLAIN_CHARS_MAX and _names_section(
            markdown[start:end], first=at == 0, structured=structured
        ):
            if at > begun:
                yield block._replace(lines=tuple(lines[begun:at]))
            yield Block("heading", ((start, end),), _NAMED_LEVEL)
            begun = at + 1
    if begun < len(lines):
        yield block._replace(lines=tuple(lines[begun:]), apart=block.apart or begun > 0)


def _names_section(line: str, *, first: bool, structured: bool) -> bool:
    announced = line.rstrip().endswith((":", "："))
    if not announced and not first:
        return False
    kind = section_kind(line)
    return kind in _OWN or (kind is not None and announced and not structured)


def _line_start(markdown: str, at: int) -> int:
    return markdown.rfind("\n", 0, at) + 1


def _body_start(markdown: str, at: int) -> int:
    end = markdown.find("\n", at)
    return len(markdown) if end < 0 else end + 1
