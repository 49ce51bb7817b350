"""What stands in a text beside its words: citation marks, links, addresses, emphasis; found in one pass.

A *mark* is a number of a source list in brackets, a footnote, a superscript, an address or a cid. What is cut from a
text to leave its words is either a mark (nothing stands for it) or markup (what it encloses stays).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from typing import Literal, NamedTuple, Protocol

from muniment.research.reading.mark_keys import MarkKeys, bracket_keys, follows_word, lenticular_keys, superscript_keys
from muniment.research.reading.web import FoundUrl, clean_url, find_url, web_address

__all__ = ["Cut", "Inline", "Mark", "Resolver", "read_inline"]


class Mark(NamedTuple):
    """A citation in a text. A cid has no address here: who knows the run's sources resolves it."""

    key: str
    """As written: "3", "^a", an address, "cid_…"."""
    url: str | None
    """None where it dangles."""
    start: int
    end: int


class Cut(NamedTuple):
    start: int
    end: int
    what: Literal["mark", "markup"]


class Inline(NamedTuple):
    """A text's marks, addresses and cuts, in the order of their places; offsets are those of the text."""

    marks: tuple[Mark, ...]
    urls: tuple[FoundUrl, ...]
    cuts: tuple[Cut, ...]


class Resolver(Protocol):
    """The sources a text's marks refer to."""

    def knows(self, key: str) -> bool: ...
    def url_of(self, key: str, at: int) -> str | None:
        """The address under a key, for a mark at that place."""


_TOKEN = re.compile(
    r"\\[!-/:-@\[-`{-~]|`+|<|!?\[|【|[⁰¹²³⁴-⁹](?:[⁰¹²³⁴-⁹]|[,，](?=[⁰¹²³⁴-⁹]))*+|https?://|(?<![\w/.@-])www\.|[*~]+|_+",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"</?(?:a|abbr|b|big|blockquote|br|center|cite|code|del|details|div|em|font|h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|"
    r"q|ref|s|small|span|"
    r"strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)(?:\s[^<>]{0,2000})?/?>",
    re.IGNORECASE,
)
_RAISED = re.compile(
    r"<sup>\s*+(?:\[\s*+)?(?:<a\s[^<>]{0,500}>\s*+)?(?:\[)?(\d{1,4}(?:\s*+[,，-]\s*+\d{1,4}){0,20})\]?\s*+(?:</a>\s*+)?"
    r"(?:\]\s*+)?</sup>",
    re.I,
)
_AUTOLINK = re.compile(r"<((?:https?://|www\.)[^\s<>]++)>", re.IGNORECASE)
_DESTINATION = re.compile(
    r"\(\s*+(?:<([^<>\n]*+)>|((?:[^\s()<>]|\((?:[^\s()]|\([^\s()]*+\))*+\))++))?"
    r"(?:\s++(?:\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)))?\s*+\)"
)
_BRACKET = re.compile(r"\\.|[\[\]]", re.DOTALL)
_BEHIND = re.compile(r"[ \t]*+(?:[,;|·、，；][ \t]*+)?(?:\Z|\n|!?\[|【|[(（]\[)")
_LABEL_TEXT = re.compile(
    r"(?:\W*+(?:sources?|link|ref|reference|citation|cite|url|来源|链接|参考|出处|引用|原文|\d{1,4})[\s\d:：.]*+\W*+|\W*+)",
    re.IGNORECASE,
)
_SOURCE_TEXT = re.compile(r"\W*(?:sources?|来源|出处|via)\s*[:：]", re.IGNORECASE)
_LINK_CHARS_MAX = 1_000
_NAME_CHARS_MAX = 4
_SIGNS = {"*": "*", "_": "_", "~": "~"}


def read_inline(text: str, sources: Resolver, offset: int = 0) -> Inline:
    """Marks, addresses and cuts of a paragraph that stands at `offset` of what the sources' places refer to."""
    return _Scanner(text, sources, offset).scan()


class _Scanner:
    def __init__(self, text: str, sources: Resolver, offset: int) -> None:
        self._text = text
        self._sources = sources
        self._offset = offset
        self._marks: list[Mark] = []
        self._urls: list[FoundUrl] = []
        self._cuts: list[Cut] = []
        self._pairs = _bracket_pairs(text) if "[" in text else {}
        self._ticks: dict[int, list[int]] = defaultdict(list)
        if "`" in text:
            for run in re.finditer("`+", text):
                self._ticks[len(run[0])].append(run.start())
        self._delimiters: dict[str, int] = {}
        self._links: list[tuple[int, int]] = []
        """Ends of the words of links that are being read, and where the links end."""
        self._gone = -1
        """Where the last link ended that was cut with its words."""

    def scan(self) -> Inline:
        at = 0
        while found := _TOKEN.search(self._text, at):
            if self._links and found.start() >= self._links[-1][0]:
                at = max(at, self._links.pop()[1])
                continue
            at = self._take(found)
        cuts = tuple(sorted(set(self._cuts)))
        return Inline(tuple(sorted(self._marks, key=lambda mark: mark.start)), tuple(self._urls), cuts)

    def _take(self, found: re.Match[str]) -> int:
        token, at = found[0], found.start()
        first = token[0]
        if first == "\\":
            self._cuts.append(Cut(at, at + 1, "markup"))
            return found.end()
        if first == "`":
            return self._code(at, len(token))
        if first == "<":
            return self._angle(at)
        if first in "![":
            return self._bracket(at, found.end() - 1)
        if first == "【":
            keys = lenticular_keys(self._text, at)
            return self._cite(keys.keys, at, keys.end) if keys else at + 1
        if first in _SIGNS:
            return self._emphasis(token, at)
        if first.lower() in "hw":
            return self._address(at)
        keys = superscript_keys(self._text, at, found.end(), self._sources.knows)
        return self._cite(keys.keys, at, keys.end) if keys else found.end()

    def _cite(self, keys: tuple[str, ...], start: int, end: int, url: str | None = None) -> int:
        for key in keys:
            address = url or self._sources.url_of(key, self._offset + start)
            self._marks.append(Mark(key, address, start, end))
        if url is not None:
            self._urls.append(FoundUrl(url, None, start))
        self._cuts.append(Cut(start, end, "mark"))
        return end

    def _cite_url(self, url: str, start: int, end: int, title: str | None = None, *, keep_words: bool = False) -> int:
        self._marks.append(Mark(url, url, start, end))
        self._urls.append(FoundUrl(url, title, start))
        if not keep_words:
            self._cuts.append(Cut(start, end, "mark"))
        return end

    def _code(self, at: int, run: int) -> int:
        """Words in code stay, and say nothing but themselves; an address alone in it is one."""
        places = self._ticks[run]
        next_place = bisect_right(places, at)
        if next_place == len(places):
            return at + run
        close = places[next_place]
        inner = self._text[at + run : close].strip()
        url = web_address(inner)
        if url is not None and len(inner.split()) == 1:
            return self._cite_url(url, at, close + run)
        self._cuts += (Cut(at, at + run, "markup"), Cut(close, close + run, "markup"))
        return close + run

    def _angle(self, at: int) -> int:
        if found := _AUTOLINK.match(self._text, at):
            url = web_address(found[1])
            return self._cite_url(url, at, found.end()) if url else at + 1
        if found := _RAISED.match(self._text, at):
            keys = tuple(re.findall(r"\d+", found[1]))
            if any(map(self._sources.knows, keys)) and follows_word(self._text, at):
                return self._cite(keys, at, found.end())
        if found := _TAG.match(self._text, at):
            url = find_url(found[0])
            if url is not None and not found[0].lower().startswith("<img"):
                self._cite_url(url, at, found.end(), keep_words=True)
            self._cuts.append(Cut(at, found.end(), "markup"))
            return found.end()
        return at + 1

    def _bracket(self, at: int, opens: int) -> int:
        close = self._pairs.get(opens)
        if close is None or close - opens > _LINK_CHARS_MAX:
            return opens + 1
        link = _DESTINATION.match(self._text, close + 1) if self._text.startswith("(", close + 1) else None
        if link is not None:
            return self._link(at, opens, close, link)
        keys = bracket_keys(self._text, opens, close, self._sources.knows)
        if keys is not None and not keys.named:
            return self._cite(keys.keys, at, keys.end)
        if self._is_label(close):
            self._cuts += (Cut(opens, opens + 1, "markup"), Cut(close, close + 1, "markup"))
            return opens + 1
        if keys is not None:
            return self._name(keys, opens, close)
        inner = self._text[opens + 1 : close]
        url = web_address(inner.strip()) if inner[:1] in "hHwW " else None
        if url is not None:
            return self._cite_url(url, at, close + 1)
        return opens + 1

    def _is_label(self, close: int) -> bool:
        """Are the words in brackets those of a link whose key follows, "[words][key]"?"""
        key_end = self._pairs.get(close + 1)
        if key_end is None or key_end - close > _LINK_CHARS_MAX:
            return False
        behind = bracket_keys(self._text, close + 1, key_end, self._sources.knows)
        return behind is not None and self._sources.knows(behind.keys[0])

    def _name(self, keys: MarkKeys, opens: int, close: int) -> int:
        """A key that is a name: "[Smith2020]" is a mark; "[the report]", a link by its words, is part of a sentence."""
        if any(char.isdecimal() for char in self._text[opens:close]) or close - opens <= _NAME_CHARS_MAX:
            return self._cite(keys.keys, opens, keys.end)
        self._marks += (
            Mark(key, self._sources.url_of(key, self._offset + opens), opens, keys.end) for key in keys.keys
        )
        self._cuts += (Cut(opens, opens + 1, "markup"), Cut(close, close + 1, "markup"))
        return opens + 1

    def _link(self, at: int, opens: int, close: int, link: re.Match[str]) -> int:
        if at < opens:  # an image
            self._cuts.append(Cut(at, link.end(), "mark"))
            return link.end()
        url = web_address((link[1] or link[2] or "").strip())
        if url is None:
            self._cuts += (Cut(opens, opens + 1, "markup"), Cut(close, link.end(), "markup"))
            self._links.append((close, link.end()))
            return opens + 1
        words = self._text[opens + 1 : close].strip()
        keys = bracket_keys(f"[{words.strip('[]')}]", 0, len(words.strip("[]")) + 1, lambda _: True) if words else None
        if keys is not None and not keys.named:
            self._gone = link.end()
            return self._cite(keys.keys, at, link.end(), url)
        title = None if _LABEL_TEXT.fullmatch(words[:80]) else " ".join(words.replace("*", "").split())
        if self._is_apart(at, link.end(), words):
            self._gone = link.end()
            return self._cite_url(url, at, link.end(), title)
        self._cite_url(url, at, link.end(), title, keep_words=True)
        self._cuts += (Cut(opens, opens + 1, "markup"), Cut(close, link.end(), "markup"))
        self._links.append((close, link.end()))
        return opens + 1

    def _is_apart(self, start: int, end: int, words: str) -> bool:
        """A link that is no part of its sentence: in brackets of its own, a mere label, or behind the full stop."""
        text = self._text
        left = start
        while left > 0 and start - left < 80 and text[left - 1] in " \t,;、，；":
            left -= 1
        before = text[left - 1 : left]
        follows = 0 <= self._gone == left
        if _LABEL_TEXT.fullmatch(words[:80]) or _SOURCE_TEXT.match(words):
            return True
        if before in ("(", "（") or (follows and text[end : end + 1] in (")", "）", ",", ";", "，", "；")):
            right = end
            while right < len(text) and right - end < 80 and text[right] in " \t":
                right += 1
            return text[right : right + 1] in (")", "）", ",", ";", "，", "；")
        return (follows or (before != "" and before in '.!?。！？…”"')) and _BEHIND.match(text, end) is not None

    def _address(self, at: int) -> int:
        url, end = clean_url(self._text, at)
        return self._cite_url(url, at, end) if url else at + 1

    def _emphasis(self, run: str, at: int) -> int:
        end = at + len(run)
        if len(run) > 3 or (run[0] == "~" and len(run) != 2):
            return end
        before, after = self._text[at - 1 : at] if at else "", self._text[end : end + 1]
        inside = run[0] == "_"
        closes = before != "" and not before.isspace() and not (inside and (after.isalnum() or after == "_"))
        opens = after != "" and not after.isspace() and not (inside and (before.isalnum() or before == "_"))
        if run == "*" and before.isdigit() and after.isdigit():
            return end
        if closes and run in self._delimiters:
            begun = self._delimiters.pop(run)
            self._cuts += (Cut(begun, begun + len(run), "markup"), Cut(at, end, "markup"))
        elif opens:
            self._delimiters[run] = at
        return end


def _bracket_pairs(text: str) -> dict[int, int]:
    """Where each opening bracket is closed."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACKET.finditer(text):
        if found[0] == "[":
            opened.append(found.start())
        elif found[0] == "]" and opened:
            pairs[opened.pop()] = found.start()
    return pairs
