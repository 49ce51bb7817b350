"""Names in Latin letters: spellings of foreign-script words in an English text.

`plain` writes any word in the letters a–z, character by character. The others find possible names in a text of one
script and give their likely English spellings: each guess costs a term.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Set
from functools import cache

from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern, plain_letters
from muniment.core.text.word_lists import WordList

__all__ = ["plain", "spelled_hangul", "spelled_katakana", "spelled_names"]

_LISTS = WordList(__package__, "latin_names.txt")
_CHARS_MAX = 32
_SILENT = "_"
"""Silent letters in the tables."""
_NOT_PLAIN = re.compile("[^a-z]+")


@cache
def _spellings(section: str) -> dict[str, str]:
    """Map a character to its spelling in a–z."""
    rows = [zip(signs, written.split(), strict=True) for signs, written in _LISTS.pairs(section)]
    return {sign: written.strip(_SILENT) for row in rows for sign, written in row}


@cache
def _together() -> tuple[tuple[str, str], ...]:
    """Letter sequences and their spellings."""
    return _LISTS.pairs("together")


@cache
def _hangul() -> tuple[tuple[str, ...], ...]:
    """Initial, medial and final sounds of a syllable, in the order of their code points."""
    return tuple([tuple([sound.strip(_SILENT) for sound in entry.split()]) for entry in _LISTS.entries("hangul")])


# -- sign by sign -----------------------------------------------------------------------------------------


def plain(word: str) -> str:
    """Write a word in the letters a–z: without accents; Cyrillic, Greek, Hangul and kana as pronounced; Arabic and
    Hebrew consonants only. Empty where it has none of these, as a word in Chinese.
    """
    return word[:_CHARS_MAX].lower() if word.isascii() and word.isalpha() else _plain(word)


@remembered(4096)
def _plain(word: str) -> str:
    word = word[:_CHARS_MAX].casefold()
    if not word.isascii():
        word = plain_letters(unicodedata.normalize("NFKC", word))
        for letters, written in _together():
            word = word.replace(letters, written)
        word = _joined(map(_latin, word))
    return _NOT_PLAIN.sub("", word)


def _latin(sign: str) -> str:
    known = _spellings("letters").get(sign)
    if known is not None or sign.isascii():
        return sign if known is None else known
    if "\uac00" <= sign <= "\ud7a3":
        place = ord(sign) - 0xAC00
        begins, middles, ends = _hangul()
        return begins[place // 588] + middles[place % 588 // 28] + ends[place % 28]
    if "\u3041" <= sign <= "\u30fa":
        return _kana(unicodedata.name(sign, ""))
    base = unicodedata.normalize("NFD", sign)[0]
    return "" if base == sign else _latin(base)


_SMALL = "!"
"""Precedes a small kana, which changes the one before it."""
_KANA_SPOKEN = {"si": "shi", "ti": "chi", "tu": "tsu", "hu": "fu", "zi": "ji", "di": "ji", "du": "zu", "wo": "o"}
_HISSED = ("shi", "chi", "ji")
_VOWELS = tuple("aeiou")


def _kana(name: str) -> str:
    kind, _, letter = name.casefold().rpartition(" ")
    if kind.endswith("small"):
        return _SMALL + letter
    return _KANA_SPOKEN.get(letter, letter) if kind.endswith("letter") else ""


def _joined(parts: Iterable[str]) -> str:
    """Merge small kana with the sounds they change: "ki" and a small "yo" are "kyo", "te" and a small "i" are "ti", "u"
    and one are "wi", and a small "tsu" doubles the next consonant.
    """
    found = [""]
    is_doubled = False
    for part in parts:
        small = part[1:] if part.startswith(_SMALL) else ""
        last = found[-1]
        if small == "tu":
            is_doubled = True
        elif small.startswith(("y", *_VOWELS)) and last.endswith(_VOWELS):
            spoken = small[1:] if small.startswith("y") and last.endswith(_HISSED) else small
            found[-1] = ("w" if last == "u" else last[:-1]) + spoken
        else:
            spoken = small or part
            found.append(spoken[:1] + spoken if is_doubled else spoken)
            is_doubled = False
    return "".join(found)


# -- Cyrillic and Greek -----------------------------------------------------------------------------------

_CAPITALISED = lazy_pattern("(?<![\u0370-\u03ff\u0400-\u04ff])[Α-ΩА-ЯЁЂ-Џ\u0490][α-ωа-яёђ-џ\u0491]{1,30}")
_CAPITAL = lazy_pattern("[Α-ΩА-ЯЁЂ-Џ\u0490]")
_SHORTEST = 2
_OTHERWISE = (("х", "кх"), ("ё", "е"), ("ья", "ия"))
"""Alternative spellings in use: Muhammad and Mikhail, Alyona and Alena, Natalya and Natalia."""
_CASES = (
    ("ой", ("ой", "а")),
    ("ей", ("ей", "а", "я")),
    ("ом", ("ом", "")),
    ("ем", ("ем", "")),
    ("а", ("", "а")),
    ("я", ("", "я")),
    ("ы", ("", "а")),
    ("и", ("а", "я")),
    ("е", ("", "а", "я")),
    ("у", ("", "а")),
    ("ю", ("", "я")),
    ("ь", ("",)),
)
"""Case endings of names, the longer ones first, and the nominative endings they may replace."""
_SOFT_SIGN, _BEHIND_SOFT_SIGN = "ь", ("", "я")
_OPEN, _BEHIND_OPEN = tuple("аеёиоуыэюяіїє"), ("й", "я")


def spelled_names(text: str, small: Set[str]) -> list[str]:
    """Return the capitalised Cyrillic and Greek words in Latin letters, each in the forms that its name may have.

    `small` are words that are never names, though a sentence may begin with them.
    """
    if _CAPITAL.search(text) is None:
        return []
    found: list[str] = []
    for word in _CAPITALISED.findall(plain_letters(unicodedata.normalize("NFC", text))):
        word = word.lower()
        if word not in small:
            found += [plain(word)] if "\u0370" <= word[0] <= "\u03ff" else _cyrillic(word)
    return found


def _cyrillic(word: str) -> list[str]:
    """Return the spellings of a name in any case."""
    return list(dict.fromkeys([plain(each) for name in _nominatives(word) for each in (name, _otherwise(name))]))


def _otherwise(name: str) -> str:
    for letters, others in _OTHERWISE:
        name = name.replace(letters, others)
    return name


def _nominatives(word: str) -> list[str]:
    """Return the possible nominatives of a name: "Анны" is of "Анна", "Сергею" of "Сергей"."""
    for ending, ends in _CASES:
        root = word.removesuffix(ending)
        if root != word and len(root) >= _SHORTEST:
            if root.endswith(_SOFT_SIGN):
                ends = _BEHIND_SOFT_SIGN
            elif root.endswith(_OPEN):
                ends = _BEHIND_OPEN
            return [root + end for end in ends]
    return [word]


# -- Japanese and Korean ----------------------------------------------------------------------------------

_KATAKANA = lazy_pattern("[\u30a1-\u30fa\u30fc]{2,}")


def spelled_katakana(run: str) -> list[str]:
    """Return the runs of katakana in Latin letters, also without a final u, which Japanese adds to names."""
    found: list[str] = []
    for stretch in _KATAKANA.findall(run):
        latin = plain(stretch)
        if len(latin) > _SHORTEST:
            found += [latin, latin[:-1]] if latin.endswith("u") else [latin]
    return found


@cache
def _given() -> frozenset[str]:
    return frozenset(_LISTS.words("korean given names"))


def spelled_hangul(root: str) -> list[str]:
    """Return a Korean name in Latin letters, family and given name separately; nothing for other words."""
    given, families = _given(), _spellings("korean family names")
    if root.endswith("이") and (len(root) == 4 or given.issuperset(root[:2])):
        root = root[:-1] if len(root) > 2 else root  # a vowel that eases pronunciation before a particle
    family = families.get(root[0]) if len(root) == 3 else None
    first = root[1:] if family else root
    if len(first) != 2 or not given.issuperset(first):
        return []
    return [*([family] if family else ()), plain(first)]
