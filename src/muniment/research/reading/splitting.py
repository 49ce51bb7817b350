"""A paragraph's sentences, once its marks are known: where each begins and ends, and its words without marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from muniment.core.text.sentences import sentence_spans
from muniment.core.text.word_lists import WordList
from muniment.research.reading.marks import Cut

__all__ = ["has_open_ends", "masked_text", "sentence_places", "words_between"]

_GONE = "\x00"
_MARKUP = "\x01"
_LABEL = (
    r"(?:data\s)?(?:sources?|references?|refs?|citations?|cited|see(?:\salso)?|via|from|links?|read\smore|"
    r"资料来源|数据来源|信息来源|来源|参考资料|参考文献|参考|引用|出处|参见|详见|见|链接|引自)"
)
_SHELL = re.compile(
    rf"[(（\[【]\s*+(?:{_LABEL}\s*+[:：]?\s*+)?(?=\x00)[\x00\x01\s,，;；、&|]*+[)）\]】]"
    rf"|[(（\[]\s*+{_LABEL}\s*+[:：][^()（）\[\]\x00\n]{{0,80}}\x00[^()（）\[\]\n]{{0,500}}[)）\]]",
    re.IGNORECASE,
)
_LABELLED_LINE = re.compile(
    rf"(?m)^[\x01\s]*+{_LABEL}[\x01\s]*+[:：][\x01\s]*+(?=\x00)[\x00\x01\s,，;；、.。]*+$", re.IGNORECASE
)
_STOPS = (".", "!", "?", "。", "！", "？")
_TIGHT = ".,;:!?…%)]}。，；：！？、）】」』”’"
_WORDS = WordList(__package__, "sentences.txt")
_SENTENCE_CHARS_MAX = 1_000
"""Sentences are not joined beyond this."""
_OPENED = {"(": ")", "（": "）", "“": "”", "「": "」", "『": "』", "《": "》"}
_CLOSED = {close: opened for opened, close in _OPENED.items()}
_OPENS = re.compile(f'["{"".join(_OPENED)}]')
_LEADING_CLOSERS = ")]）】”’」』》"
_MARKS = re.compile(r"\x00++")
_CLOSERS = "\"'”’)]"
_INITIALISM = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
_LETTER = re.compile(r"(?<![\w.])[A-Za-z]\.\s+(?=([A-Z][a-z]+)\b)")
_STRETCH = re.compile(r"\S{1,40}")


@cache
def _starters() -> frozenset[str]:
    return frozenset(_WORDS.words("starters"))


@cache
def _short_forms() -> frozenset[str]:
    return frozenset(_WORDS.words("short forms"))


def masked_text(text: str, cuts: Sequence[Cut], gaps: Iterable[tuple[int, int, bool]]) -> str:
    """The text, as long as it was: marks as \\x00, markup as \\x01, the way from line to line as a blank or a line end.

    What is only the shell of a mark, "(Source: …)", is a mark.
    """
    pieces: list[tuple[int, int, str]] = [
        (cut.start, cut.end, _GONE if cut.what == "mark" else _MARKUP) for cut in cuts
    ]
    pieces += [(start, end, "\n" if hard else " ") for start, end, hard in gaps]
    parts: list[str] = []
    at = 0
    for start, end, sign in sorted(pieces):
        if end <= at:
            continue
        start = max(start, at)
        parts += (text[at:start], sign * (end - start))
        at = end
    masked = "".join((*parts, text[at:]))
    if _GONE in masked:
        masked = _SHELL.sub(_all_gone, masked)
        masked = _LABELLED_LINE.sub(_all_gone, masked)
    return masked


def _all_gone(found: re.Match[str]) -> str:
    return _GONE * len(found[0])


def sentence_places(masked: str) -> list[tuple[int, int]]:
    """Half-open spans of sentences in a masked text, each from its first word to its last sign."""
    # A mark is a closing sign with a blank behind it: a sentence may end before it, and what it hides is no initial.
    plain = _MARKS.sub(lambda found: "'" * (len(found[0]) - 1) + " ", masked).replace(_MARKUP, "'")
    cut = (part for start, end in sentence_spans(plain) for part in _cut(plain, start, end))
    spans = [place for start, end in cut if (place := _trimmed(masked, start, end))]
    return _balanced(plain, _unbroken(plain, spans))


def _cut(plain: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A span, cut behind a single letter that was taken for an initial: "rich in vitamin C. The fruit"."""
    for found in _LETTER.finditer(plain, start, end):
        if found[1].casefold() in _starters():
            yield start, found.start(1)
            start = found.start(1)
    yield start, end


def _trimmed(masked: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and (masked[start] in "\x00\x01" or masked[start].isspace()):
        start += 1
    while end > start and (masked[end - 1] in "\x00\x01" or masked[end - 1].isspace()):
        end -= 1
    return (start, end) if start < end else None


def _unbroken(plain: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that were cut at an abbreviation, or that are but signs, together with what they belong to."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and "\n" not in plain[joined[-1][1] : start]:
            while start < end and (plain[start] in _LEADING_CLOSERS or _closes_quote(plain, joined[-1], start)):
                joined[-1] = (joined[-1][0], start + 1)
                start += 1
            while start < end and plain[start].isspace():
                start += 1
            if start == end:
                continue
            before = joined[-1]
            if end - before[0] <= _SENTENCE_CHARS_MAX and (
                _goes_on(plain, before[0], before[1], start) or not _has_words(plain, start, end)
            ):
                joined[-1] = (before[0], end)
                continue
        joined.append((start, end))
    return joined


def _closes_quote(plain: str, before: tuple[int, int], at: int) -> bool:
    return plain[at] == '"' and plain.count('"', *before) % 2 == 1


def _has_words(plain: str, start: int, end: int) -> bool:
    return any(char.isalnum() for char in plain[start:end])


def _goes_on(plain: str, start: int, end: int, next_start: int) -> bool:
    """Is the stop at the end of one span inside a sentence that goes on in the next?"""
    while end > start and plain[end - 1] in _CLOSERS:
        end -= 1
    if end == start or plain[end - 1] not in ".!?…":
        return False
    follows = _STRETCH.match(plain, next_start)
    word = follows[0].lstrip("'\"“(") if follows else ""
    if word[:1].islower():
        return word[1:2].islower() or not word[1:2]
    if plain[end - 1] != ".":
        return False
    last = plain[max(start, end - 20) : end - 1].rsplit(maxsplit=1)[-1:] or [""]
    bare = last[0].lstrip("'\"“(")
    if bare.casefold() not in _short_forms() and not _INITIALISM.fullmatch(bare):
        return False
    return word.strip("'\"“”(),;:").casefold() not in _starters()


def _balanced(plain: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that were cut inside quotes or brackets, together: up to three, where that closes them."""
    merged: list[tuple[int, int]] = []
    at = 0
    while at < len(spans):
        start, end = spans[at]
        used = 1
        if has_open_ends(plain[start:end]):
            for more in range(1, 4):
                if at + more >= len(spans) or "\n" in plain[spans[at + more - 1][1] : spans[at + more][0]]:
                    break
                reach = spans[at + more][1]
                if reach - start > _SENTENCE_CHARS_MAX:
                    break
                if not has_open_ends(plain[start:reach]):
                    end, used = reach, more + 1
                    break
        merged.append((start, end))
        at += used
    return merged


def has_open_ends(text: str) -> bool:
    """Is a quote or bracket opened in a sentence that is not closed in it? One too long to be joined has none."""
    if len(text) > _SENTENCE_CHARS_MAX or _OPENS.search(text) is None:
        return False
    opened: dict[str, int] = {}
    for char in text:
        if char in _OPENED:
            opened[char] = opened.get(char, 0) + 1
        elif char in _CLOSED and opened.get(_CLOSED[char], 0):
            opened[_CLOSED[char]] -= 1
    return any(opened.values()) or text.count('"') % 2 == 1


def words_between(masked: str, start: int, end: int) -> str:
    """The words of a span: marks and markup taken out, white space made one blank, none left before a stop."""
    first, *rest = masked[start:end].replace(_MARKUP, "").split(_GONE)
    words = [first] if first else []
    for part in rest:
        if not part:
            continue
        if part.lstrip()[:1] in _TIGHT:  # nothing at all included
            while words and words[-1].isspace():
                words.pop()
            part = part.lstrip()
            if words:
                words[-1] = words[-1].rstrip()
                if words[-1][-1] in _STOPS and part[:1] in _STOPS:
                    part = part[1:]
        elif words and _is_latin(words[-1][-1]) and _is_latin(part[0]):
            words.append(" ")
        words += [part] if part else []
    return " ".join("".join(words).split())


def _is_latin(char: str) -> bool:
    return char.isascii() and char.isalnum()
