"""Lists of sources: entries under a heading, footnotes, link definitions; and which mark means which entry.

A key belongs to the entry that is written with it. An entry without a number has no number: its place gives it none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from muniment.research.reading.blocks import Block
from muniment.research.reading.web import find_url

__all__ = ["Entry", "Reference", "References", "read_entries"]


class Reference(NamedTuple):
    """An entry of a list of sources. One without a key goes by its address or, failing that, by its words."""

    key: str
    url: str | None
    title: str | None


class Entry(NamedTuple):
    """A reference where it stands."""

    reference: Reference
    start: int
    end: int
    form: Literal[0, 1, 2]
    """How its key is written: not at all, as the number of a list item, or in brackets as marks are."""


_KEY = re.compile(
    r"\[(\d{1,4})\](?:\s*[:.：]?\s*)|\[(\^[^\[\]\s]{1,60})\]\s*[:：]?\s*|\[([^\[\]\s]{1,60})\](?:\s*[:：]\s*|\s+(?=\S))"
    r"|【(\d{1,4})】\s*[:：]?\s*|(\d{1,3})[.)、．]\s*"
)
_DEFINITION = re.compile(r"\[(?:\^[^\[\]\s]{1,60}\]\s*[:：]|[^\[\]\n]{1,60}\]:\s+<?(?:https?://|www\.))", re.IGNORECASE)
_NUMBERED = re.compile(r"\[\d{1,4}\](?!\s*[\[(,;，；、.。])")
_ORDERED = re.compile(r"[(（]?(\d{1,3})[.)、．）]")
_CELL = re.compile(r"\[?(\d{1,4})\]?\s*\|")
_LINK = re.compile(r"\[([^\[\]]{1,500})\]\(")
_ADDRESS = re.compile(r"<?\b(?:https?://|www\.)\S*", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:(?:available|retrieved|accessed|from|at|url|link|doi|online|网址|链接|地址|访问(?:于|日期)?|获取自|"
    r"来源)\s*+(?:[:：]\s*+)?)+\Z",
    re.IGNORECASE,
)
_EDGES = '"“” \t\n-–—|:：,，;；·•*_<>()（）[]'
_TITLE_CHARS_MAX = 300


class References:
    """Entries by key.

    Of equal keys those in brackets count before the numbers of list items, those with an address before those without.
    Where several are left, as with a list under each chapter, a mark means the next one behind it, else the last.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        best: dict[str, tuple[int, bool]] = {}
        for entry in entries:
            key = _folded(entry.reference.key)
            best[key] = max(best.get(key, (0, False)), _worth(entry))
        self._places: dict[str, list[int]] = {}
        self._urls: dict[str, list[str | None]] = {}
        self.by_key: dict[str, Reference] = {}
        for entry in entries:
            key = _folded(entry.reference.key)
            if _worth(entry) == best[key]:
                self.by_key.setdefault(entry.reference.key, entry.reference)
                if entry.form:
                    self._places.setdefault(key, []).append(entry.start)
                    self._urls.setdefault(key, []).append(entry.reference.url)

    def knows(self, key: str) -> bool:
        return self._find(key) is not None

    def url_of(self, key: str, at: int) -> str | None:
        found = self._find(key)
        if found is None:
            return None
        place = bisect_left(self._places[found], at)
        return self._urls[found][min(place, len(self._urls[found]) - 1)]

    def _find(self, key: str) -> str | None:
        plain = _folded(key)
        for form in (plain, plain[1:] if plain.startswith("^") else f"^{plain}"):
            if form in self._places:
                return form
        return None


def _worth(entry: Entry) -> tuple[int, bool]:
    return entry.form, entry.reference.url is not None


def _folded(key: str) -> str:
    return str(int(key)) if key.isascii() and key.isdigit() else key.casefold()


def read_entries(markdown: str, blocks: Sequence[Block], listed: Sequence[bool]) -> tuple[list[Entry], list[bool]]:
    """The entries, and which blocks hold nothing else. `listed`: the block stands under a heading for sources."""
    entries: list[Entry] = []
    taken = [False] * len(blocks)
    tail = len(blocks) if any(listed) else _tail(markdown, blocks)
    run = _Run()
    for at, block in enumerate(blocks):
        inside = (listed[at] or at >= tail) and block.kind != "heading"
        if not inside and not (block.kind in ("prose", "bullet") and _is_list(markdown, block)):
            entries += run.finish()
            run = _Run()
            continue
        taken[at] = True
        for number, (start, end) in enumerate(block.lines):
            first = number == 0
            entries += run.take(
                markdown[start:end], start, block.marker if first else "", block.kind, apart=first and block.apart
            )
        if at + 1 == len(blocks) or not listed[at]:
            entries += run.flush()
    return [*entries, *run.finish()], taken


def _tail(markdown: str, blocks: Sequence[Block]) -> int:
    """Where the numbered addresses begin that close an output without a heading, and that its marks refer to."""
    at = len(blocks)
    while (
        at
        and _ORDERED.fullmatch(blocks[at - 1].marker)
        and find_url(markdown[blocks[at - 1].start : blocks[at - 1].end])
    ):
        at -= 1
    first = _ORDERED.fullmatch(blocks[at].marker) if at < len(blocks) else None
    cited = first is not None and f"[{int(first[1])}]" in markdown[: blocks[at].start]
    return at if cited else len(blocks)


def _is_list(markdown: str, block: Block) -> bool:
    """Definitions and numbered addresses are entries wherever they stand; so are lines that all begin with "[n]"."""
    start, end = block.lines[0]
    if markdown[start] != "[":
        return False
    if _DEFINITION.match(markdown, start):
        return True
    if not _NUMBERED.match(markdown, start):
        return False
    numbered = all(_NUMBERED.match(markdown, line) is not None for line, _ in block.lines)
    return numbered and (len(block.lines) > 1 or find_url(markdown[start:end], listed=True) is not None)


class _Run:
    """Entries as their lines come in."""

    def __init__(self) -> None:
        self._key: str | None = None
        self._form: Literal[0, 1, 2] = 0
        self._parts: list[str] = []
        self._start = self._end = 0
        self._number: tuple[int, int] | None = None
        """The number the list began with, and the last it gave."""

    def take(self, line: str, start: int, marker: str, kind: str, *, apart: bool) -> Iterator[Entry]:
        key, at, form = self._read_key(line, marker, kind)
        has_url = any(find_url(part, listed=True) for part in self._parts)
        alone = _ADDRESS.fullmatch(line.strip()) is not None
        goes_on = bool(self._parts) and key is None and not marker and kind != "table"
        if goes_on and ((alone and not has_url) or (not apart and not (has_url and find_url(line, listed=True)))):
            self._parts.append(line)
        else:
            yield from self.flush()
            self._key, self._form, self._parts, self._start = key, form, [line[at:]], start
        self._end = start + len(line)

    def _read_key(self, line: str, marker: str, kind: str) -> tuple[str | None, int, Literal[0, 1, 2]]:
        if kind == "table":
            cell = _CELL.match(line)
            return (str(int(cell[1])), cell.end(), 1) if cell else (None, 0, 0)
        found = _KEY.match(line)
        if found is not None and not (found[5] and marker):
            written = next(group for group in found.groups() if group)
            return (str(int(written)) if written.isdecimal() else written), found.end(), 1 if found[5] else 2
        ordered = _ORDERED.fullmatch(marker)
        if ordered is None:
            return None, 0, 0
        number = int(ordered[1])
        if self._number is not None and number == self._number[0]:  # 1. 1. 1. is how Markdown may write 1. 2. 3.
            number = self._number[1] + 1
            self._number = (self._number[0], number)
        else:
            self._number = (number, number) if self._number is None else (self._number[0], number)
        return str(number), 0, 1

    def flush(self) -> Iterator[Entry]:
        if self._parts:
            text = "\n".join(self._parts)
            url, title = find_url(text, listed=True), _title(text)
            if self._key is not None or url is not None or title is not None:
                name = self._key if self._key is not None else url or title or ""
                yield Entry(Reference(name, url, title), self._start, self._end, self._form)
        self._key, self._parts = None, []

    def finish(self) -> Iterator[Entry]:
        yield from self.flush()
        self._number = None


def _title(text: str) -> str | None:
    link = _LINK.search(text)
    if link is not None and not link[1].strip().isdigit():
        words = link[1]
    else:
        behind = _ADDRESS.split(text, maxsplit=1)
        words = _ABOUT.sub("", behind[0].rstrip(" <([*_`")) if behind[0].strip(_EDGES) else behind[-1]
    flat = " ".join(words.replace("**", "").split()).strip(_EDGES).strip()
    return flat[:_TITLE_CHARS_MAX].rstrip() or None
