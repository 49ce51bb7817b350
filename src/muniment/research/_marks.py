"""Citation marks, links and addresses of a paragraph, and the lists of sources that the marks refer to.

A *mark* is a number of a source list in brackets, a footnote, a superscript, an address or a cid. To extract the words
of a text, marks are removed and markup is replaced by its content. A key belongs to the entry it is written with;
entries without a number are not numbered. Everything takes time linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

# -- addresses ------------------------------------------------------------------------------------------


class FoundUrl(NamedTuple):
    """An address in a text: as written, without closing punctuation."""

    url: str
    title: str | None
    start: int


_PLAIN = r"[!#$%&'()*+,\-./0-9:;=?@A-Z_a-z~]"
_FOREIGN = r"[^\W\x00-\x7f]"
# In running text a Chinese word may follow an address without a space, so it belongs to the address only after a
# separator.
_RUNNING = re.compile(rf"(?i)(?:https?://|www\.)(?:{_PLAIN}|(?<=[/=_%#?&+.\x80-\U0010ffff-]){_FOREIGN})++")
_LISTED = re.compile(rf"(?i)(?:https?://|www\.)(?:{_PLAIN}|{_FOREIGN})++")
_BEGINS = re.compile(r"(?i)https?://|(?<![\w/.@-])www\.")
_HOST = re.compile(r"[^\s/?#]*[^\W_][^\s/]*")


def clean_url(text: str, at: int, *, listed: bool = False) -> tuple[str | None, int]:
    """The address that begins at a position and its end; None if there is none.

    `listed`: it is in a list of sources, where only white space and punctuation end it.
    """
    found = (_LISTED if listed else _RUNNING).match(text, at)
    if found is None:
        return None, at
    raw, depth = found[0], 0
    for bracket in re.finditer(r"[()]", raw):
        depth += 1 if bracket[0] == "(" else -1
        if depth < 0:  # opened outside of the address
            raw = raw[: bracket.start()]
            break
    raw = raw.rstrip(".,;:!?'*~…")
    if _HOST.fullmatch(raw.split("://", 1)[-1].split("/", 1)[0]) is None:
        return None, at
    if raw[:4].lower() == "www." and (raw.count(".") < 2 or not raw[4:5].isalnum()):
        return None, at
    return raw, at + len(raw)


def find_urls(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """All addresses of an entry in a list of sources, with their positions."""
    at = start
    while found := _BEGINS.search(text, at, end):
        url, at = clean_url(text, found.start(), listed=True)
        if url is not None:
            yield url, found.start()
        at = max(at, found.end())


def find_url(text: str) -> str | None:
    """The first address of an entry."""
    return next((url for url, _ in find_urls(text, 0, len(text))), None)


def _web_address(text: str) -> str | None:
    return clean_url(text.strip(), 0, listed=True)[0]


# -- keys -----------------------------------------------------------------------------------------------

Knows = Callable[[str], bool]
"""Returns whether there is a source under this key."""

_JOINT = r"\s*(?:[-–—~,，;；、&]|and\b|和)\s*"
_NUMBERS = re.compile(rf"\s*\d{{1,4}}(?:{_JOINT}\d{{1,4}})*+\s*")
_FOOTNOTES = re.compile(r"\s*\^[^\s\[\]^,;]{1,60}(?:\s*[,;]\s*\^[^\s\[\]^,;]{1,60})*+\s*")
_LABELLED = re.compile(
    rf"(?i)\s*(?:sources?|refs?|references?|citations?|来源|参考文献|参考|文献)\s*[.:：#]?\s*(\d{{1,4}}(?:{_JOINT}\d{{1,4}})*+)\s*"
)
_DAGGER = re.compile(r"\s*(\d{1,4}(?:[:：]\d{1,4})?)\s*†[^\[\]】\n]{0,200}")
_CIDS = re.compile(r"\s*cid_[0-9a-f]{1,64}(?:\s*[,;]\s*cid_[0-9a-f]{1,64})*+\s*")
_PIECE = re.compile(r"(\d{1,4})(?:\s*[-–—~]\s*(\d{1,4}))?")
_RANGE_MAX = 50
"""Longer ranges do not cite everything between: only their ends count."""
_NUMBER_MAX = 999
"""Larger numbers are years or counts, unless the list of sources contains them."""
_INTERVAL = re.compile(r"(?i)(?:range|interval|between|within|∈|=|区间|范围)\s*(?:of|from|is|为|是|在)?\s*\Z")
_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹，", "0123456789,")
_STOPS = ".,;:!?)]”’\"'»。，；：！？）」』%"


def _bracket_keys(inner: str, before: str, knows: Knows) -> tuple[str, ...] | None:
    """The keys cited by brackets with this content, by form or by the list of sources; None if they are no mark."""
    inner = inner[1:-1] if inner[:1] == "[" and inner[-1:] == "]" else inner
    if _FOOTNOTES.fullmatch(inner):
        return tuple(part.strip() for part in re.split("[,;]", inner))
    if _CIDS.fullmatch(inner):
        return tuple(re.findall(r"cid_[0-9a-f]{1,64}", inner))
    if found := _DAGGER.fullmatch(inner):
        return (found[1],)
    if found := _LABELLED.fullmatch(inner):
        return _numbers_of(found[1])
    if not _NUMBERS.fullmatch(inner):
        return None
    keys = _numbers_of(inner)
    if len(keys) > 1 and _INTERVAL.search(before):
        return None
    if any(map(knows, keys)):
        return keys
    index = before[-1:].isascii() and (before[-1:].isalnum() or before[-1:] in ("_", "$"))  # "a[0]"
    dangles = not index and all("-" in key or 1 <= int(key) <= _NUMBER_MAX for key in keys)
    return keys if dangles else None


def _numbers_of(written: str) -> tuple[str, ...]:
    """Expand "1, 4-6" to 1, 4, 5, 6; "50-15" counts down, so it is a key and not a range."""
    keys: dict[str, None] = {}
    for first, last in _PIECE.findall(written):
        if last and int(last) < int(first):
            keys[f"{first}-{last}"] = None
        elif last and int(last) - int(first) <= _RANGE_MAX:
            keys.update((str(number), None) for number in range(int(first), int(last) + 1))
        else:
            keys.update((str(int(number)), None) for number in (first, last) if number)
    return tuple(keys)


def _follows_word(before: str) -> bool:
    """Return whether a word or a stop precedes superscripts. After a unit ("cm") they are an exponent."""
    last = before[-6:].rstrip()
    letters = re.search(r"[A-Za-z]*\Z", last)
    long = letters is not None and len(letters[0]) >= 4
    return long or (last != "" and (last[-1] in _STOPS or "㐀" <= last[-1] <= "鿿"))


# -- one paragraph --------------------------------------------------------------------------------------


class Mark(NamedTuple):
    """A citation in a text. A cid has no address here: it is resolved by the run's sources."""

    key: str
    """As written: "3", "^a", an address, "cid_…"."""
    url: str | None
    """None if dangling."""
    start: int
    end: int


class Cut(NamedTuple):
    start: int
    end: int
    is_mark: bool


class Inline(NamedTuple):
    """A text's marks, addresses and cuts; offsets are relative to the text."""

    marks: list[Mark]
    urls: list[FoundUrl]
    cuts: list[Cut]


_TOKEN = re.compile(
    r"""(?ix)
    \\(?P<escaped>[!-/:-@\[-`{-~])
    |(?P<ticks>`{1,3})(?!`)(?P<code>[^`\n]{1,400})(?P=ticks)(?!`)
    |<(?P<auto>(?:https?://|www\.)[^\s<>]{1,2000})>
    |<sup>\s*+\[?(?P<raised>\d{1,4}(?:\s*+[,，-]\s*+\d{1,4}){0,20})\]?\s*+</sup>
    |(?P<tag></?(?:a|b|blockquote|br|cite|code|del|details|div|em|h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|q|s|small|span
        |strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)(?:\s[^<>]{0,2000})?/?>)
    |(?P<image>!)?\[(?P<words>(?:[^\[\]\\]|\\.|\[[^\[\]\n]{0,100}\]){1,300})\]
        (?:\(\s*+(?:<(?P<angled>[^<>\n]{0,2000})>|(?P<target>(?:[^\s()<>]|\([^\s()]{0,500}\)){0,2000}))
            (?:\s++(?:"[^"\n]{0,500}"|'[^'\n]{0,500}'))?\s*+\)
        |\[(?P<label>[^\[\]\n]{1,60})\])?
    |【(?P<lens>[^】\n]{1,300})】
    |(?P<super>[⁰¹²³⁴-⁹](?:[⁰¹²³⁴-⁹]|[,，](?=[⁰¹²³⁴-⁹])){0,20})
    |(?P<url>https?://|(?<![\w/.@-])www\.)
    |(?P<emphasis>[*]{1,3}|_{1,3}|~~)
    """
)
_LABEL_WORDS = re.compile(
    r"(?i)\W*+(?:(?:sources?|link|ref|reference|citation|via|来源|链接|参考|出处|引用|原文|\d{1,4})[\s\d:：.]*+\W*+)?"
)
_SOURCE_WORDS = re.compile(r"(?i)\W*(?:sources?|来源|出处|via)\s*[:：]")
_NAME_CHARS_MAX = 4
_CONTEXT = 80


def read_inline(text: str, sources: References, offset: int = 0) -> Inline:
    """Parse a paragraph that begins at `offset`, relative to which the sources' positions are."""
    scanner = _Scanner(text, sources, offset)
    scanner.scan(0, len(text))
    found = scanner.found
    found.marks.sort(key=lambda mark: mark.start)
    found.cuts.sort()
    return found


class _Scanner:
    def __init__(self, text: str, sources: References, offset: int) -> None:
        self.found = Inline([], [], [])
        self._text = text
        self._sources = sources
        self._offset = offset
        self._gone = -1
        """End of the last link that was cut together with its words."""

    def scan(self, at: int, end: int) -> None:
        while (found := _TOKEN.search(self._text, at, end)) is not None:
            at = self._take(found)

    def _take(self, found: re.Match[str]) -> int:
        start, end = found.span()
        match found.lastgroup:
            case "escaped":
                self._cut(start, start + 1)
            case "code":
                self._code(found)
            case "auto":
                url = _web_address(found["auto"])
                if url is not None:
                    self._cite_url(url, start, end)
            case "raised":
                keys = tuple(re.findall(r"\d+", found["raised"]))
                known = any(map(self._sources.knows, keys)) and _follows_word(self._text[max(0, start - 6) : start])
                if known:
                    self._cite(keys, start, end)
                else:
                    self._cut(start, start + 5)
                    self._cut(end - 6, end)
            case "tag":
                url = find_url(found[0])
                if url is not None and not found[0].lower().startswith("<img"):
                    self._cite_url(url, start, end, keep_words=True)
                self._cut(start, end)
            case "lens":
                keys = _bracket_keys(found["lens"], "", self._sources.knows) or ()
                if keys:
                    self._cite(keys, start, end)
            case "super":
                self._superscript(found)
            case "url":
                url, end = clean_url(self._text, start)
                if url is None:
                    return start + 1
                self._cite_url(url, start, end)
            case "emphasis":
                self._emphasis(found)
            case _:
                return self._bracket(found)
        return end

    def _cut(self, start: int, end: int, *, is_mark: bool = False) -> None:
        self.found.cuts.append(Cut(start, end, is_mark))

    def _cite(self, keys: Sequence[str], start: int, end: int, url: str | None = None) -> None:
        for key in keys:
            self.found.marks.append(Mark(key, url or self._sources.url_of(key, self._offset + start), start, end))
        if url is not None:
            self.found.urls.append(FoundUrl(url, None, start))
        self._cut(start, end, is_mark=True)

    def _cite_url(self, url: str, start: int, end: int, title: str | None = None, *, keep_words: bool = False) -> None:
        self.found.marks.append(Mark(url, url, start, end))
        self.found.urls.append(FoundUrl(url, title, start))
        if not keep_words:
            self._cut(start, end, is_mark=True)

    def _code(self, found: re.Match[str]) -> None:
        """Keep the words of code, which are not citations, except for an address alone in it."""
        url = _web_address(found["code"]) if len(found["code"].split()) == 1 else None
        if url is not None:
            self._cite_url(url, *found.span())
        else:
            self._cut(found.start(), found.start("code"))
            self._cut(found.end("code"), found.end())

    def _superscript(self, found: re.Match[str]) -> None:
        if _follows_word(self._text[max(0, found.start() - 6) : found.start()]):
            written = found[0].translate(_RAISED_DIGITS)
            joined = tuple(str(int(key)) for key in written.split(",") if len(key) <= 4)
            for keys in (joined, tuple(key for key in written if key != ",")):
                if keys and all(map(self._sources.knows, keys)):
                    self._cite(keys, *found.span())
                    return

    def _emphasis(self, found: re.Match[str]) -> None:
        """Cut emphasis characters next to a word, but not between digits ("2*3") or within a word ("snake_case")."""
        before, after = self._text[found.start() - 1 : found.start()], self._text[found.end() : found.end() + 1]
        inside = before.isalnum() and after.isalnum() and (found[0][0] == "_" or (before.isdigit() and after.isdigit()))
        apart = (not before or before.isspace()) and (not after or after.isspace())
        if not apart and not (inside and len(found[0]) == 1):
            self._cut(*found.span())

    def _bracket(self, found: re.Match[str]) -> int:
        """Parse brackets: an image, a link, a mark, or words; returns where to continue."""
        start, end = found.span()
        opens, close = found.start("words"), found.end("words")
        words = found["words"]
        target = found["angled"] or found["target"]
        if found["image"] and target is not None:
            self._cut(start, end, is_mark=True)
            return end
        if target is not None:
            return self._link(found, _web_address(target))
        before = self._text[max(0, start - 30) : start]
        keys = _bracket_keys(words, before, self._sources.knows)
        label = found["label"]
        if keys is not None:
            self._cite(keys, start, close + 1)
            return close + 1
        label_keys = None if label is None else self._known_keys(label)
        if label_keys:
            self.scan(opens, close)
            self._cut(opens - 1, opens)
            self._cut(close, close + 1)
            self._cite(label_keys, close + 1, end)
            return end
        named = self._known_keys(words) if _NUMBERS.fullmatch(words) is None else ()
        if named and (any(char.isdecimal() for char in words) or len(words) < _NAME_CHARS_MAX):
            self._cite(named, start, close + 1)
            return close + 1
        if named:  # a link with words, which are part of the sentence
            self.found.marks.extend(
                Mark(key, self._sources.url_of(key, self._offset + start), start, close + 1) for key in named
            )
            self._cut(opens - 1, opens)
            self._cut(close, close + 1)
            return opens
        url = _web_address(words) if words.lstrip()[:4].lower() in ("http", "www.") else None
        if url is not None:
            self._cite_url(url, start, close + 1)
            return close + 1
        return opens

    def _known_keys(self, written: str) -> tuple[str, ...]:
        keys = tuple(part.strip() for part in re.split("[,;]", written)) if len(written) <= 60 else ()
        return keys if keys and all(key and self._sources.knows(key) for key in keys) else ()

    def _link(self, found: re.Match[str], url: str | None) -> int:
        start, end = found.span()
        opens, close = found.start("words"), found.end("words")
        words = found["words"].strip()
        keys = None if url is None else _bracket_keys(words, "", lambda _: True)
        if url is not None and keys is not None:
            self._cite(keys, start, end, url)
            self._gone = end
            return end
        if url is not None:
            label = _LABEL_WORDS.fullmatch(words[:_CONTEXT]) is not None
            title = None if label else " ".join(words.replace("*", "").split())
            if label or _SOURCE_WORDS.match(words) or self._is_apart(start, end):
                self._cite_url(url, start, end, title)
                self._gone = end
                return end
            self._cite_url(url, start, end, title, keep_words=True)
        self._cut(opens - 1, opens)
        self._cut(close, end)
        self.scan(opens, close)
        return end

    def _is_apart(self, start: int, end: int) -> bool:
        """Return whether a link is separate from its sentence: in its own brackets, or after the full stop."""
        text = self._text
        left = len(text[max(0, start - _CONTEXT) : start].rstrip(" \t,;、，；")) + max(0, start - _CONTEXT)
        before = text[left - 1 : left]
        behind = text[end : end + _CONTEXT].lstrip(" \t")[:1]
        follows = 0 <= self._gone == left
        if before in ("(", "（") or follows:
            return behind in (")", "）", ",", ";", "，", "；") or (follows and behind in ("", "\n", "["))
        return before != "" and before in '.!?。！？…”"' and behind in ("", "\n", "[", "【", "(", "（")


# -- lists of sources -----------------------------------------------------------------------------------


class Reference(NamedTuple):
    """An entry of a list of sources. Without a key it is identified by its address or else by its words."""

    key: str
    url: str | None
    title: str | None


class Entry(NamedTuple):
    """A reference with its position."""

    reference: Reference
    start: int
    end: int
    form: Literal[0, 1, 2]
    """The form of its key: none, the number of a list item, or in brackets like marks."""


class References:
    """Entries by key.

    Of equal keys, those in brackets are preferred to numbers of list items, and those with an address to those without.
    If several remain, as with a list per chapter, a mark means the next one after it, else the last.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        best: dict[str, tuple[int, bool]] = {}
        for entry in entries:
            key = _folded(entry.reference.key)
            best[key] = max(best.get(key, (0, False)), _worth(entry))
        self._entries: dict[str, list[Entry]] = {}
        self.by_key: dict[str, Reference] = {}
        for entry in entries:
            key = _folded(entry.reference.key)
            if _worth(entry) == best[key]:
                self.by_key.setdefault(entry.reference.key, entry.reference)
                if entry.form:
                    self._entries.setdefault(key, []).append(entry)

    def knows(self, key: str) -> bool:
        return self._find(key) is not None

    def url_of(self, key: str, at: int) -> str | None:
        """The address under a key, for a mark at that position."""
        found = self._find(key)
        if found is None:
            return None
        place = bisect_left(found, at, key=lambda entry: entry.start)
        return found[min(place, len(found) - 1)].reference.url

    def _find(self, key: str) -> list[Entry] | None:
        plain = _folded(key)
        return self._entries.get(plain) or self._entries.get(plain[1:] if plain.startswith("^") else f"^{plain}")


def _worth(entry: Entry) -> tuple[int, bool]:
    return entry.form, entry.reference.url is not None


def _folded(key: str) -> str:
    return str(int(key)) if key.isascii() and key.isdigit() else key.casefold()


_KEY = re.compile(
    r"\[(\d{1,4})\](?:\s*[:.：]?\s*)|\[(\^[^\[\]\s]{1,60})\]\s*[:：]?\s*|\[([^\[\]\s]{1,60})\](?:\s*[:：]\s*|\s+(?=\S))"
    r"|【(\d{1,4})】\s*[:：]?\s*|(\d{1,3})[.)、．]\s*"
)
_DEFINITION = re.compile(r"(?i)\[(?:\^[^\[\]\s]{1,60}\]\s*[:：]|[^\[\]\n]{1,60}\]:\s+<?(?:https?://|www\.))")
_NUMBERED = re.compile(r"\[\d{1,4}\](?!\s*[\[(,;，；、.。])")
_CELL = re.compile(r"\[?(\d{1,4})\]?\s*\|")
_TITLE_LINK = re.compile(r"\[([^\[\]]{1,500})\]\(")
_ADDRESS = re.compile(r"(?i)<?\b(?:https?://|www\.)\S*")
_ABOUT = re.compile(
    r"(?i)(?:(?:available|retrieved|accessed|from|at|url|link|doi|online|网址|链接|地址|来源)\s*+(?:[:：]\s*+)?)+\Z"
)
_EDGES = '"“” \t\n-–—|:：,，;；·•*_<>()（）[]'
_TITLE_CHARS_MAX = 300


def is_entry(text: str) -> bool:
    """Return whether the lines of a paragraph are entries wherever they occur: definitions, or all with "[n]"
    in front.
    """
    lines = text.splitlines()
    if not text.startswith("["):
        return False
    if _DEFINITION.match(text):
        return True
    numbered = all(_NUMBERED.match(line.lstrip()) is not None for line in lines)
    return numbered and (len(lines) > 1 or find_url(lines[0]) is not None)


class SourceList:
    """Parser of a list of sources, line by line."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._key: str | None = None
        self._form: Literal[0, 1, 2] = 0
        self._parts: list[str] = []
        self._start = self._end = 0
        self._first = self._last = -1
        """First and latest number of the list."""

    def take(self, line: str, start: int, number: str, *, table: bool, apart: bool) -> None:
        """Add a line; `number` is that of the list item it begins, if any."""
        key, at, form = self._read_key(line, number, table=table)
        has_url = any(find_url(part) for part in self._parts)
        goes_on = bool(self._parts) and key is None and not number and not table
        if goes_on and (
            (_ADDRESS.fullmatch(line.strip()) and not has_url) or (not apart and not (has_url and find_url(line)))
        ):
            self._parts.append(line)
        else:
            self.flush()
            self._key, self._form, self._parts, self._start = key, form, [line[at:]], start
        self._end = start + len(line)

    def _read_key(self, line: str, number: str, *, table: bool) -> tuple[str | None, int, Literal[0, 1, 2]]:
        if table:
            cell = _CELL.match(line)
            return (str(int(cell[1])), cell.end(), 1) if cell else (None, 0, 0)
        found = _KEY.match(line)
        if found is not None and not (found[5] and number):
            written = next(group for group in found.groups() if group)
            return (str(int(written)) if written.isdecimal() else written), found.end(), 1 if found[5] else 2
        if not number.isdecimal():
            return None, 0, 0
        value = int(number)
        if value == self._first:  # Markdown may number 1. 2. 3. as 1. 1. 1.
            value = self._last + 1
        else:
            self._first = value if self._first < 0 else self._first
        self._last = value
        return str(value), 0, 1

    def flush(self) -> None:
        """Close the open entry."""
        if self._parts:
            text = "\n".join(self._parts)
            url, title = find_url(text), _title(text)
            if self._key is not None or url is not None or title is not None:
                name = self._key if self._key is not None else url or title or ""
                self.entries.append(Entry(Reference(name, url, title), self._start, self._end, self._form))
        self._key, self._parts = None, []

    def end(self) -> None:
        """Close the list: the next line begins another."""
        self.flush()
        self._first = self._last = -1


def _title(text: str) -> str | None:
    link = _TITLE_LINK.search(text)
    if link is not None and not link[1].strip().isdigit():
        words = link[1]
    else:
        parts = _ADDRESS.split(text, maxsplit=1)
        words = _ABOUT.sub("", parts[0].rstrip(" <([*_`")) if parts[0].strip(_EDGES) else parts[-1]
    flat = " ".join(words.replace("**", "").split()).strip(_EDGES).strip()
    return flat[:_TITLE_CHARS_MAX].rstrip() or None
