"""Which brackets and superscripts cite something, and what: "[3]", "[1, 4-6]", "[^a]", "【2†source】", "⁷"."""

from __future__ import annotations

import re
from collections.abc import Callable
from string import ascii_letters
from typing import NamedTuple

__all__ = ["MarkKeys", "bracket_keys", "follows_word", "lenticular_keys", "numbers_of", "superscript_keys"]

Knows = Callable[[str], bool]
"""Is there a source under this key?"""


class MarkKeys(NamedTuple):
    """The keys of a mark, and where it ends. `named`: it was told by its key's being in the list, not by its form."""

    keys: tuple[str, ...]
    end: int
    named: bool = False


_JOINT = r"\s*(?:[-–—~,，;；、&]|and\b|和)\s*"
_NUMBERS = re.compile(rf"\s*\d{{1,4}}(?:{_JOINT}\d{{1,4}})*+\s*")
_FOOTNOTE = re.compile(r"\s*\^[^\s\[\]^,;]{1,60}(?:\s*[,;]\s*\^[^\s\[\]^,;]{1,60})*+\s*")
_LABELLED = re.compile(
    rf"\s*(?:sources?|refs?|references?|citations?|来源|参考|参考文献|文献|"
    rf"资料)\s*[.:：#]?\s*(\d{{1,4}}(?:{_JOINT}\d{{1,4}})*+)\s*",
    re.IGNORECASE,
)
_DAGGER = re.compile(r"\s*(\d{1,4}(?:[:：]\d{1,4})?)\s*†[^\[\]】\n]{0,200}")
_CIDS = re.compile(r"\s*cid_[0-9a-f]{1,64}(?:\s*[,;]\s*cid_[0-9a-f]{1,64})*+\s*")
_CID = re.compile(r"cid_[0-9a-f]{1,64}")
_LENTICULAR = re.compile(
    rf"【(?:\s*(\d{{1,4}}(?:{_JOINT}\d{{1,4}})*+)\s*|\s*(\d{{1,4}}(?:[:：]\d{{1,4}})?)\s*†[^】\n]{{0,200}}|"
    rf"(\s*cid_[^】\n]{{1,300}}))】"
)
_PIECE = re.compile(r"(\d{1,4})(?:\s*[-–—~]\s*(\d{1,4}))?")
_RANGE_MAX = 50
"""A longer range is no citation of all that lies between: its ends count."""
_NUMBER_MAX = 999
"""A number beyond is a year or a count, unless the list of sources has it."""
_INTERVAL = re.compile(
    r"(?:range|ranges|interval|intervals|between|within|∈|=|区间|范围)\s*(?:of|from|is|为|是|在)?\s*\Z", re.IGNORECASE
)
_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹，", "0123456789,")
_KEY_CHARS_MAX = 60
_WORD_LETTERS_MIN = 4
_STOPS = ".,;:!?)]”’\"'»。，；：！？）」』%"


def bracket_keys(text: str, opens: int, close: int, knows: Knows) -> MarkKeys | None:
    """What the brackets at these places cite; None where they are no mark."""
    first = text[opens + 1 : opens + 2]
    if first == "[" and text[close - 1 : close] == "]" and close - opens > 3:  # [[3]]
        inner = (
            bracket_keys(text, opens + 1, close - 1, knows) if text[opens + 2 : opens + 3] not in ("[", "") else None
        )
        return inner._replace(end=close + 1) if inner else None
    if first == "^" and _FOOTNOTE.fullmatch(text, opens + 1, close):
        return MarkKeys(tuple(part.strip() for part in re.split("[,;]", text[opens + 1 : close])), close + 1)
    if first == "c" and _CIDS.fullmatch(text, opens + 1, close):
        return MarkKeys(tuple(_CID.findall(text, opens + 1, close)), close + 1)
    if found := _DAGGER.fullmatch(text, opens + 1, close):
        return MarkKeys((found[1],), close + 1)
    if _NUMBERS.fullmatch(text, opens + 1, close):
        keys = numbers_of(text[opens + 1 : close])
        if len(keys) > 1 and _INTERVAL.search(text, max(0, opens - 30), opens):
            return None
        return MarkKeys(keys, close + 1) if any(map(knows, keys)) or _looks_cited(text, opens, keys) else None
    if found := _LABELLED.fullmatch(text, opens + 1, close):
        return MarkKeys(numbers_of(found[1]), close + 1)
    if close - opens <= _KEY_CHARS_MAX:
        keys = tuple(part.strip() for part in re.split("[,;]", text[opens + 1 : close]))
        if all(key and knows(key) for key in keys):
            return MarkKeys(keys, close + 1, named=True)
    return None


def numbers_of(written: str) -> tuple[str, ...]:
    """ "1, 4-6" is 1, 4, 5, 6; "50-15" counts down, so it is no range but a key."""
    keys: dict[str, None] = {}
    for first, last in _PIECE.findall(written):
        if last and int(last) < int(first):
            keys[f"{first}-{last}"] = None
        elif last and int(last) - int(first) <= _RANGE_MAX:
            keys.update((str(number), None) for number in range(int(first), int(last) + 1))
        else:
            keys.update((str(int(number)), None) for number in (first, last) if number)
    return tuple(keys)


def _looks_cited(text: str, opens: int, keys: tuple[str, ...]) -> bool:
    """A number that no list has: a mark that dangles, or an index ("a[0]"), a year?"""
    before = text[opens - 1 : opens] if opens else ""
    if before and before.isascii() and (before.isalnum() or before in "_$"):
        return False
    return all("-" in key or 1 <= int(key) <= _NUMBER_MAX for key in keys)


def lenticular_keys(text: str, at: int) -> MarkKeys | None:
    """【1】, 【2†source】 and the like; other words in these brackets are a title."""
    found = _LENTICULAR.match(text, at)
    if found is None:
        return None
    if found[1]:
        return MarkKeys(numbers_of(found[1]), found.end())
    keys = (found[2],) if found[2] else tuple(_CID.findall(found[3]))
    return MarkKeys(keys, found.end()) if keys else None


def follows_word(text: str, at: int) -> bool:
    """Does a word or a stop stand before this place? A unit ("cm") does not count: what is raised is its power."""
    before = text[max(0, at - 6) : at].rstrip()
    letters = len(before) - len(before.rstrip(ascii_letters))
    return letters >= _WORD_LETTERS_MIN or (before != "" and (before[-1] in _STOPS or "㐀" <= before[-1] <= "鿿"))


def superscript_keys(text: str, start: int, end: int, knows: Knows) -> MarkKeys | None:
    """Raised digits behind a word or a full stop, where the list has them."""
    if not follows_word(text, start):
        return None
    written = text[start:end].translate(_RAISED_DIGITS)
    keys = tuple(str(int(key)) for key in written.split(",") if len(key) <= 4)
    if not keys or not all(map(knows, keys)):
        keys = tuple(key for key in written if key != ",")
    return MarkKeys(keys, end) if all(map(knows, keys)) else None
