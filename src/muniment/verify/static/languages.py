"""Which language a text is written in: by its script where the script is one language's own, else by n-grams.

Deterministic, offline, no model. The counts in `data/languages.bin` come from the profiles of language-detection
(Copyright 2010-2014 Cybozu Labs, Inc., Apache License 2.0), made by `tools/make_language_table.py`.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache
from typing import Any, NamedTuple
from zlib import decompress

import numpy as np

from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import read_data

__all__ = ["ALIASES", "Detected", "detect_language", "known_languages"]

TEXT_CHARS_MAX = 10_000
_STEPS = 24  # of the table, a nat
_DIGEST = "8a75e2ae76cb4e6899dcde4175b4990c6e68e3ce9e624588f0d0a3ee546ebfba"  # of languages.bin
_WORD_CHARS_MAX = 64

ALIASES = {"zh-cn": "zh", "zh-tw": "zh", "nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl", "ji": "yi"}
"""Codes that are read as another one."""

_OWN_SCRIPTS = (
    ("ko", "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"),
    ("th", "\u0e00-\u0e7f"),
    ("ta", "\u0b80-\u0bff"),
    ("te", "\u0c00-\u0c7f"),
    ("bn", "\u0980-\u09ff"),
    ("gu", "\u0a80-\u0aff"),
    ("pa", "\u0a00-\u0a7f"),
    ("kn", "\u0c80-\u0cff"),
    ("ml", "\u0d00-\u0d7f"),
    ("he", "\u0590-\u05ff"),
    ("el", "\u0370-\u03ff\u1f00-\u1fff"),
    ("ja", "\u3040-\u30ff"),
    ("zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"),
)
_KANA_SHARE = 0.1  # of kana and Han together: less is Chinese with a borrowed sign

_PAGE = lazy_pattern(r"https?://[-\w.?&~;+=/#]{1,2000}")
_MAIL = lazy_pattern(r"[-.\w]{1,64}@[-.\w]{1,255}")
_LATIN = lazy_pattern("[A-Za-z]")
_NOT_LATIN = lazy_pattern("[\u0300-\u1dff\u1f00-\uffff\U00010000-\U0010ffff]")
_LETTER = lazy_pattern(r"[^\W\d_]")
_OWN = {code: lazy_pattern(f"[{chars}]") for code, chars in _OWN_SCRIPTS}
_ANY_OWN = lazy_pattern("[" + "".join(chars for _, chars in _OWN_SCRIPTS) + "]")

_BLANKS = [code for code in range(0x80) if not chr(code).isalpha()] + [0xA0, 0xAB, 0xB0, 0xBB, *range(0x2000, 0x2070)]
_PLAIN: dict[int, str] = {
    **dict.fromkeys(_BLANKS, " "),
    **dict.fromkeys(range(0x1EA0, 0x1F00), "\u1ec3"),  # the many vowels of Vietnamese are counted as one
    0x219: "\u015f",
    0x21B: "\u0163",
    0x6CC: "\u064a",
}


class Detected(NamedTuple):
    """The language a text looks like, how many letters say so, and by how much, in nats, the next one is behind."""

    code: str
    letters: int
    margin: float


def known_languages() -> tuple[str, ...]:
    """All codes that `detect_language` can answer."""
    return tuple(sorted({*_table().codes, *(code for code, _ in _OWN_SCRIPTS)}))


def detect_language(text: str, *, literal: bool = False) -> Detected | None:
    """The likeliest language; None where nothing in the text speaks for any.

    A text that is mostly in capitals is read as if it were not. With `literal` capitals stand as they are: runs of them
    say nothing, which is how the common detectors read.
    """
    text = _PAGE.sub(" ", text[:TEXT_CHARS_MAX])
    if "@" in text:
        text = _MAIL.sub(" ", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        latin, other = len(_LATIN.findall(text)), len(_NOT_LATIN.findall(text))
        if latin * 2 < other:
            text = _LATIN.sub("", text)
        own = len(_ANY_OWN.findall(text))
        if own and own > len(_LETTER.findall(_ANY_OWN.sub("", text))):
            return _by_script(text, own)
    words = text.translate(_PLAIN).split()
    if not literal and sum(map(str.isupper, words)) * 2 > len(words):
        words = [word.lower() for word in words]
    return _by_counts(words)


def _by_script(text: str, letters: int) -> Detected:
    counts = {code: len(pattern.findall(text)) for code, pattern in _OWN.items()}
    japanese = counts["ja"] > _KANA_SHARE * (counts["ja"] + counts["zh"])
    counts["ja" if japanese else "zh"] += counts.pop("zh" if japanese else "ja")
    code, best = max(counts.items(), key=lambda item: item[1])
    return Detected(code, letters, float(2 * best - letters))


def _by_counts(words: list[str]) -> Detected | None:
    table = _table()
    rows, times, letters = [], [], 0
    for word, count in Counter(words).items():
        scores = _scores(word[:_WORD_CHARS_MAX])
        if scores is not None:
            rows.append(scores)
            times.append(count)
            letters += len(word) * count
    if not letters:
        return None
    scores_of = np.frombuffer(b"".join(rows), dtype=np.uint16).reshape(len(rows), len(table.codes))
    total = np.array(times, dtype=np.float64) @ scores_of  # whole numbers far below 2**53: exact in any order
    best = int(total.argmax())
    second = float(np.partition(total, -2)[-2])
    return Detected(table.codes[best], letters, (float(total[best]) - second) / _STEPS)


@remembered(32768)
def _scores(word: str) -> bytes | None:
    """What a word says for each language, 16 bits each: the sum over its n-grams; None where it knows none of them."""
    table = _table()
    padded = f" {word} "
    places = []
    for end in range(1, len(padded)):
        if padded[end].isupper() and padded[end - 1].isupper():
            continue
        for start in range(max(0, end - 2), end + 1):
            place = table.places.get(padded[start : end + 1])
            if place is not None:
                places.append(place)
    return table.levels[places].sum(axis=0, dtype=np.uint16).tobytes() if places else None


class _Table(NamedTuple):
    codes: tuple[str, ...]
    places: dict[str, int]
    levels: Any


@cache
def _table() -> _Table:
    head, _, body = decompress(read_data(__package__, "languages.bin", _DIGEST)).partition(b"\0")
    codes, *grams = head.decode().split("\n")
    names = tuple(codes.split(" "))
    levels = np.frombuffer(body, dtype=np.uint8).reshape(len(names), len(grams))
    return _Table(names, {gram: place for place, gram in enumerate(grams)}, np.ascontiguousarray(levels.T))
