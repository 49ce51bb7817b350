"""What kind of thing an English noun or verb means in its commonest sense: food, an illness, a sport, a possession.

The table is made of WordNet 3.0 by `tools/make_word_classes.py`.
"""

from __future__ import annotations

import zlib
from functools import cache

from muniment.core.text.word_lists import read_data

__all__ = ["noun_class", "verb_class"]

_DIGEST = "871a1a96033a00e1cabc47961859fd17a68fd3ed97d23f5d7f6e38da63d657f4"


@cache
def _tables() -> tuple[dict[str, str], dict[str, str]]:
    blocks = zlib.decompress(read_data(__package__, "classes.bin", _DIGEST)).decode().split("\n\n")
    found: list[dict[str, str]] = []
    for block in blocks:
        table: dict[str, str] = {}
        for line in block.split("\n"):
            name, _, words = line.partition("|")
            table.update(dict.fromkeys(words.split(" "), name))
        found.append(table)
    return found[0], found[1]


def noun_class(word: str) -> str:
    """`illness` for asthma; nothing where the word is none that is known."""
    table = _tables()[0]
    for form in (word, *_singular(word)):
        if form in table:
            return table[form]
    return ""


def verb_class(word: str) -> str:
    """`v-motion` for run, runs, running; nothing where the word is none that is known."""
    table = _tables()[1]
    for form in (word, *_base(word)):
        if form in table:
            return table[form]
    return ""


def _singular(word: str) -> tuple[str, ...]:
    if word.endswith("ies"):
        return (f"{word[:-3]}y",)
    if word.endswith("es"):
        return (word[:-1], word[:-2])
    return (word[:-1],) if word.endswith("s") and len(word) > 3 else ()


def _base(word: str) -> tuple[str, ...]:
    if word.endswith("ing") and len(word) > 5:
        bare = word[:-3]
        return (bare, f"{bare}e", bare[:-1]) if bare[-1] == bare[-2] else (bare, f"{bare}e")
    if word.endswith(("ies", "ied")):
        return (f"{word[:-3]}y",)
    if word.endswith("ed") and len(word) > 4:
        bare = word[:-2]
        return (bare, word[:-1], bare[:-1]) if bare[-1] == bare[-2] else (bare, word[:-1])
    return _singular(word)
