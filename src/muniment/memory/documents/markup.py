"""HTML as tags and texts, tag soup included: any text is some HTML, and no part of it is read twice.

The parser of the standard library goes over an unfinished tag again and again, so that a page of 150 kB can hold it for
minutes. This one keeps to the tokenizer of the HTML standard, which never looks back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

__all__ = ["VOID", "Tag", "read_markup"]

_RAW = frozenset(("script", "style", "title", "textarea", "xmp", "noembed", "noframes", "iframe"))
"""Elements that hold text up to their end tag, whatever it looks like."""
VOID = frozenset(
    (
        "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source", "track",
        "wbr",
    )
)  # fmt: skip
"""Elements that have no end tag."""
_TAG = re.compile(r"</?+([A-Za-z][^\s/>]*+)")
_QUOTED_REST = re.compile(r"""[^"'>]*+(?:(?:"[^"]*+"|'[^']*+')[^"'>]*+)*+>""")
_ATTRIBUTE = re.compile(r"""([^\s=/"'>]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>]++))?+""")


class Tag(NamedTuple):
    name: str
    is_end: bool
    rest: str
    """What stands after the name."""

    def attributes(self) -> dict[str, str]:
        """Name → value, "" where it has none; of equal names the first counts."""
        found: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self.rest):
            found.setdefault(match[1].lower(), unescape((match[2] or "").strip("\"'")))
        return found


def read_markup(source: str) -> Iterator[Tag | str]:
    """Tags and the texts between them, entities decoded. Comments, declarations, scripts and styles say nothing."""
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._last_bracket = source.rfind(">")
        self._last_comment_end = source.rfind("-->")
        self._quotes_close = True
        """Until a tag is met whose quotes do not: from there on a tag ends at the next bracket."""
        self._unclosed: set[str] = set()
        """Raw elements that have no end tag any more."""

    def read(self) -> Iterator[Tag | str]:
        source, at = self._source, 0
        while True:
            begins = source.find("<", at, self._last_bracket + 1)
            if begins < 0:
                if at < len(source):
                    yield unescape(source[at:])
                return
            if begins > at:
                yield unescape(source[at:begins])
            named = _TAG.match(source, begins)
            if named is not None:
                at = self._tag_end(begins, named.end())
                tag = Tag(named[1].lower(), source[begins + 1] == "/", source[named.end() : at - 1])
                yield tag
                if tag.name in _RAW and not tag.is_end:
                    text, at = self._raw(tag.name, at)
                    if text:
                        yield text
            elif source.startswith(("<!", "<?", "</"), begins):
                at = self._comment_end(begins)
            else:
                yield "<"
                at = begins + 1

    def _tag_end(self, begins: int, at: int) -> int:
        if self._quotes_close:
            found = _QUOTED_REST.match(self._source, at)
            if found is not None:
                return found.end()
            self._quotes_close = False
        ends = self._source.find(">", begins)
        return ends + 1

    def _comment_end(self, begins: int) -> int:
        source = self._source
        if source.startswith("<!--", begins) and begins + 2 <= self._last_comment_end:
            return source.find("-->", begins + 2) + 3
        return source.find(">", begins) + 1

    def _raw(self, name: str, at: int) -> tuple[str, int]:
        """The text of a raw element and where it ends. One that is never closed is a tag like any other, unless it
        holds what nobody reads."""
        is_silent = name in ("script", "style")
        found = None
        if name not in self._unclosed:
            found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self._source, at)
        if found is None:
            self._unclosed.add(name)
            return "", len(self._source) if is_silent else at
        return "" if is_silent else unescape(self._source[at : found.start()]), found.start()
