"""What kind of error a tool answered, in words that are ours: a status, an exit code, a known kind of failure.

A tool's own words are never told: whoever writes them could write advice. They are recognised instead. A kind says
what it is about (`amount does not add up`, `order not found`) only in words of the names that the agent itself chose:
those of the arguments of its call, and of the tool less its verb. An error of no known kind is named by a digest, so
that runs that met the same one can be compared, and is told as an error and no more.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from errno import errorcode
from functools import cache
from hashlib import sha256

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList
from muniment.learning.fold.plain_names import is_plain, name_words

__all__ = ["UNKNOWN", "error_kind", "is_known_kind", "unknown_error"]

UNKNOWN = "~"
"""Begins the name of an error that is of no known kind."""
_READ_CHARS_MAX = 1_200
_ABOUT_MAX, _NAME_WORDS = 3, 4
_DIGEST_CHARS = 8

_HTTP = lazy_pattern(
    r"(?i)\b(?:https?(?:/\d(?:\.\d)?)?|status(?:[ _-]?code)?|response)\W{0,4}(?:code\W{0,3})?([45]\d\d)\b"
    r"|^\W{0,3}(?:error\W{0,3})?([45]\d\d)\b|\b([45]\d\d) (?:client|server) error\b"
)
_EXIT = lazy_pattern(r"(?i)\bexit(?:ed)?(?: with)?(?: non-?zero)?[ _]?(?:code|status)?\W{0,3}([1-9]\d{0,2})\b")
_FAILED = lazy_pattern(r"\b(\d{1,5}) failed\b(?:, (\d{1,6}) passed\b)?")
_CODE = lazy_pattern(r"\b[A-Z][A-Z_]{2,30}\b")
_UNTOLD = "-"

_LISTED = WordList(__package__, "error_kinds.txt")
_WORD = lazy_pattern(r"[A-Za-z][A-Za-z0-9]*")
_SMALL = frozenset(("the", "a", "an", "of", "is", "are", "this", "that", "your", "argument", "field", "parameter"))
_BARE = {
    "no such": "no such value",
    "missing": "a missing value",
    "unexpected": "an unexpected value",
    "unknown": "an unknown value",
    "invalid": "an invalid value",
}
"""How a kind is said where it may not be told what it is about."""


@cache
def _kinds() -> dict[str, tuple[str, re.Pattern[str]]]:
    """By kind: on which side of it stands what it is about, and how it is worded."""
    sections = (name.partition(" ") for name in _LISTED.sections() if name)
    return {kind: (side, re.compile(_LISTED.either(f"{side} {kind}"), re.IGNORECASE)) for side, _, kind in sections}


@cache
def _codes() -> frozenset[str]:
    return frozenset((*errorcode.values(), *_LISTED.words()))


def error_kind(text: str, own: Collection[str] = ()) -> str:
    """`HTTP 404`, `exit code 2`, `2 failed, 5 passed`, `no such user id`; empty where it is of no known kind.

    `own` are the names by which the agent made the call: of the arguments, and what the tool is about.
    """
    head = text[:_READ_CHARS_MAX]
    coded = _status(head)
    named = _kind(head, frozenset(word for name in own if is_plain(name, _NAME_WORDS) for word in name_words(name)))
    return f"{coded} ({named})" if coded and named else coded or named


def _status(text: str) -> str:
    if (http := _HTTP.search(text)) is not None:
        return f"HTTP {http[1] or http[2] or http[3]}"
    if (counted := _FAILED.search(text)) is not None:
        return f"{counted[1]} failed" + (f", {counted[2]} passed" if counted[2] else "")
    if (code := _EXIT.search(text)) is not None:
        return f"exit code {code[1]}"
    return next((code for code in _CODE.findall(text) if code in _codes()), "")


def _kind(text: str, own: frozenset[str]) -> str:
    """The first kind that the text speaks of, with what it is about as far as that may be told."""
    found = [
        (match.start(), place, match.end(), phrase, side)
        for place, (phrase, (side, form)) in enumerate(_kinds().items())
        if (match := form.search(text)) is not None
    ]
    if not found:
        return ""
    start, _, end, phrase, side = min(found)
    about = _about(text[:start] if side == "<" else text[end:], side, own) if side != _UNTOLD else ""
    if not about:
        return _BARE.get(phrase, phrase)
    return f"{about} {phrase}" if side == "<" else f"{phrase} {about}"


def _about(text: str, side: str, own: frozenset[str]) -> str:
    """The words next to a kind, as long as they are words of the arguments' names."""
    words = [word for word in _WORD.findall(text.replace("_", " ")) if word.casefold() not in _SMALL]
    kept: list[str] = []
    for word in reversed(words) if side == "<" else words:
        folded = word.casefold()
        if len(kept) == _ABOUT_MAX or not {folded, folded.removesuffix("s"), f"{folded}s"} & own:
            break
        kept.append(folded)
    return " ".join(reversed(kept) if side == "<" else kept)


def unknown_error(shape: str) -> str:
    """The name of an error that is of no known kind: the same for those of one shape, and without a word of it."""
    return f"{UNKNOWN}{sha256(shape.encode()).hexdigest()[:_DIGEST_CHARS]}"


def is_known_kind(said: str) -> bool:
    """Is it worded as `error_kind` words one? What was kept by earlier versions may be a tool's own words."""
    coded, _, rest = said.partition(" (")
    if _status(coded) == coded:
        return not rest or is_known_kind(rest.removesuffix(")"))
    if said in _BARE.values():
        return True
    for phrase, (side, _) in _kinds().items():
        about = said.removesuffix(phrase) if side == "<" else said.removeprefix(phrase)
        if about != said and (not about or (side != _UNTOLD and is_plain(about.strip()) and about != about.strip())):
            return True
    return False
