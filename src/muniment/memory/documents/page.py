"""What an HTML page says, as Markdown: its title, headings, paragraphs, lists, rows and code; not its furniture."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from muniment.memory.documents.markup import VOID, Tag, read_markup

__all__ = ["Page", "read_page"]

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    (
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt",
        "fieldset", "figcaption", "figure", "form", "header", "html", "legend", "li", "main", "ol", "p", "section",
        "summary", "tbody", "tfoot", "thead", "ul",
    )
)  # fmt: skip
_SILENT = frozenset(
    (
        "audio", "canvas", "datalist", "iframe", "noembed", "noframes", "noscript", "object", "script", "select",
        "style", "svg", "template", "textarea", "video",
    )
)  # fmt: skip
"""What no reader of the page sees as text."""
_FURNITURE = frozenset(("button", "dialog", "footer", "menu", "nav"))
_FURNITURE_ROLES = frozenset(("contentinfo", "menu", "menubar", "navigation", "search", "toolbar"))
_DEPTH_MAX = 8
_BREAK = "\x00"
"""A line break within a paragraph; no source holds one."""
_MARKUP = re.compile(r"^(?=#{1,6}(?:\s|$)|`{3}|~{3}|-{2,}$|={2,}$)", re.MULTILINE)
"""Words of a paragraph that Markdown would take for more than words."""
_TICKS = re.compile(r"`{3,}")


class Page(NamedTuple):
    title: str | None
    text: str
    """Markdown, "" where the page says nothing."""


def read_page(source: str) -> Page:
    """The page without its furniture; with it, where there is nothing else."""
    page = _Reader(skips_furniture=True).read(source)
    return page if page.text else _Reader(skips_furniture=False).read(source)


class _Reader:
    """Which elements are open, and what is said in them."""

    def __init__(self, *, skips_furniture: bool) -> None:
        self._skips_furniture = skips_furniture
        self._open: list[str] = []
        self._counts: Counter[str] = Counter()
        """Of the open elements, by name."""
        self._skipped_from: int | None = None
        """How many elements are open up to the one that is left out."""
        self._title: list[str] | None = None
        """What the title says, while it is open."""
        self._page_title = ""
        self._writer = _Writer()

    def read(self, source: str) -> Page:
        for token in read_markup(source):
            if isinstance(token, str):
                self._hear(token)
                continue
            self._end_title()
            if token.is_end:
                self._end(token.name)
            else:
                self._start(token)
        self._end_title()
        self._close_down_to(0)
        title = self._page_title or self._writer.first_heading
        return Page(title or None, self._writer.finish())

    def _hear(self, text: str) -> None:
        if self._title is not None:
            self._title.append(text)
        elif self._skipped_from is None:
            self._writer.hear(text)

    def _end_title(self) -> None:
        if self._title is not None:
            self._page_title = self._page_title or _collapsed("".join(self._title))
            self._title = None

    def _start(self, tag: Tag) -> None:
        if tag.name in VOID:
            if self._skipped_from is None:
                self._writer.begin(tag.name)
            return
        self._open.append(tag.name)
        self._counts[tag.name] += 1
        if self._skipped_from is not None:
            return
        if tag.name == "title":
            self._title = []
        elif self._is_left_out(tag):
            self._skipped_from = len(self._open)
        else:
            self._writer.begin(tag.name)

    def _is_left_out(self, tag: Tag) -> bool:
        if tag.name in _SILENT:
            return True
        if not self._skips_furniture:
            return False
        if tag.name in _FURNITURE:
            return True
        if not tag.rest or tag.name in ("html", "body"):
            return False
        given = tag.attributes()
        return (
            given.get("hidden", "until-found") != "until-found"
            or given.get("aria-hidden", "").lower() == "true"
            or given.get("role", "").lower() in _FURNITURE_ROLES
        )

    def _end(self, name: str) -> None:
        """Close the element and what is still open in it. An end without a beginning parts what stands around it."""
        if self._counts[name]:
            size = len(self._open)
            while self._open[size - 1] != name:
                size -= 1
            self._close_down_to(size - 1)
        elif self._skipped_from is None and name in ("br", "p"):
            self._writer.begin(name)

    def _close_down_to(self, size: int) -> None:
        while len(self._open) > size:
            name = self._open.pop()
            self._counts[name] -= 1
            if self._skipped_from is None:
                self._writer.end(name)
            elif len(self._open) < self._skipped_from:
                self._skipped_from = None


class _Writer:
    """Blocks of Markdown, made of what is heard between the beginnings and ends of elements."""

    def __init__(self) -> None:
        self.first_heading = ""
        self._heard: list[str] = []
        self._pre: list[str] | None = None
        """What open preformatted text says."""
        self._lists: list[int] = []
        """Of each open list the next number; 0 where its items have none."""
        self._mark = ""
        """What the next paragraph begins with, as the first of an item."""
        self._row: list[str] | None = None
        """The cells of an open row."""
        self._blocks: list[str] = []
        self._last = ""
        """What kind of block was written last."""

    def hear(self, text: str) -> None:
        (self._heard if self._pre is None else self._pre).append(text)

    def begin(self, name: str) -> None:
        if name == "br":
            self.hear(_BREAK if self._pre is None else "\n")
        elif self._pre is not None:
            return
        elif name in _HEADINGS or name in ("hr", "pre", "table", "tr"):
            self._end_row()
            self._flush()
            self._pre = [] if name == "pre" else None
            self._row = [] if name == "tr" else None
        elif name in ("td", "th"):
            self._begin_cell()
        elif name in _BLOCKS:
            self._flush()
            self._begin_list_or_item(name)

    def _begin_cell(self) -> None:
        """A cell, whether or not the one before it was closed; without a row, it begins one."""
        if self._row is None:
            self._flush()
            self._row = []
        elif text := self._said():
            self._row.append(text.replace("\n", " "))

    def _begin_list_or_item(self, name: str) -> None:
        if name in ("ol", "ul"):
            self._lists.append(1 if name == "ol" else 0)
        elif name == "li":
            number = self._lists[-1] if self._lists else 0
            if number:
                self._lists[-1] = number + 1
            depth = min(max(len(self._lists) - 1, 0), _DEPTH_MAX)
            self._mark = "  " * depth + (f"{number}. " if number else "- ")

    def end(self, name: str) -> None:
        if name == "pre":
            self._end_pre()
        elif self._pre is not None:
            return
        elif name in _HEADINGS:
            self._end_heading(_HEADINGS[name])
        elif name in ("td", "th") and self._row is not None:
            self._row.append(self._said().replace("\n", " "))
        elif name in ("tr", "table"):
            self._end_row()
        elif name in _BLOCKS or name in ("td", "th"):
            self._flush()
            if name in ("ol", "ul") and self._lists:
                self._lists.pop()
            elif name == "li":
                self._mark = ""

    def finish(self) -> str:
        self._end_pre()
        self._end_row()
        self._flush()
        return "".join(self._blocks)

    def _said(self) -> str:
        text, self._heard = "".join(self._heard), []
        return "\n".join(filter(None, map(_collapsed, text.split(_BREAK))))

    def _flush(self) -> None:
        """End a paragraph. In a row it only parts words."""
        if self._row is not None:
            self._heard.append(" ")
            return
        text = self._said()
        if text:
            self._write("item" if self._mark else "paragraph", self._mark + _escaped(text))
            self._mark = ""

    def _end_heading(self, level: int) -> None:
        text = self._said().replace("\n", " ").rstrip(" ¶")
        if text:
            self._write("heading", f"{'#' * level} {text}")
            if level == 1:
                self.first_heading = self.first_heading or text

    def _end_row(self) -> None:
        if self._row is None:
            return
        row, self._row = [*self._row, self._said().replace("\n", " ")], None
        while row and not row[-1]:
            row.pop()
        if row:
            self._write("row", _escaped(" | ".join(row).strip()))

    def _end_pre(self) -> None:
        if self._pre is None:
            return
        text, self._pre = "".join(self._pre).strip("\r\n").rstrip(), None
        if text.strip():
            fence = "`" * (1 + max((len(ticks) for ticks in _TICKS.findall(text)), default=2))
            self._write("code", f"{fence}\n{text}\n{fence}")

    def _write(self, kind: str, text: str) -> None:
        """Items and rows stand line by line, all else apart."""
        if self._blocks:
            self._blocks.append("\n" if kind == self._last and kind in ("item", "row") else "\n\n")
        self._blocks.append(text)
        self._last = kind


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\", text)
