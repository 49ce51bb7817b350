"""Web addresses as they are written in prose: where they end, in Latin and Chinese text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["FoundUrl", "clean_url", "find_url", "find_urls", "web_address"]


class FoundUrl(NamedTuple):
    """An address in a text: as written, without closing punctuation."""

    url: str
    title: str | None
    start: int


_PLAIN = r"[!#$%&'()*+,\-./0-9:;=?@A-Z_a-z~]"
_FOREIGN = r"[^\W\x00-\x7f]"
# In running text a Chinese word may follow an address without a space: it belongs to it only behind a separator.
_RUNNING = re.compile(rf"(?:https?://|www\.)(?:{_PLAIN}|(?<=[/=_%#?&+.\x80-\U0010ffff-]){_FOREIGN})++", re.IGNORECASE)
_LISTED = re.compile(rf"(?:https?://|www\.)(?:{_PLAIN}|{_FOREIGN})++", re.IGNORECASE)
_BEGINS = re.compile(r"https?://|(?<![\w/.@-])www\.", re.IGNORECASE)
_HOST = re.compile(r"[^\s/?#]*[^\W_][^\s/]*")
_CLOSING = ".,;:!?'*~…"


def clean_url(text: str, at: int, *, listed: bool = False) -> tuple[str | None, int]:
    """The address that begins at a place and where it ends; None where there is none.

    `listed`: it stands in a list of sources, where only white space and punctuation end it.
    """
    found = (_LISTED if listed else _RUNNING).match(text, at)
    if found is None:
        return None, at
    raw = found[0][: _balanced(found[0])].rstrip(_CLOSING)
    if _HOST.fullmatch(raw.split("://", 1)[-1].split("/", 1)[0]) is None:
        return None, at
    if raw[:4].lower() == "www." and (raw.count(".") < 2 or not raw[4:5].isalnum()):
        return None, at
    return raw, at + len(raw)


def _balanced(raw: str) -> int:
    """Up to the first closing bracket that was opened outside of the address."""
    depth = 0
    for found in re.finditer(r"[()]", raw):
        depth += 1 if found[0] == "(" else -1
        if depth < 0:
            return found.start()
    return len(raw)


def find_url(text: str, start: int = 0, *, listed: bool = False) -> str | None:
    """The first address in a text."""
    for found in _BEGINS.finditer(text, start):
        url, _ = clean_url(text, found.start(), listed=listed)
        if url is not None:
            return url
    return None


def find_urls(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """All addresses of an entry in a list of sources, with their places."""
    at = start
    while found := _BEGINS.search(text, at, end):
        url, at = clean_url(text, found.start(), listed=True)
        if url is not None:
            yield url, found.start()
        at = max(at, found.end())


def web_address(text: str) -> str | None:
    """The address a text is, or begins with."""
    return clean_url(text, 0, listed=True)[0] if text[:4].lower() in ("http", "www.") else None
