"""Names in Latin letters: how a name that is written in another script would stand in an English text.

A spelling is a guess that costs a term: it is made for what may be a name alone, and one name has three at most.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Set
from functools import cache

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = ["spelled_hangul", "spelled_katakana", "spelled_names"]

_NAMES = WordList(__package__, "latin_names.txt")
_CAPITALISED = lazy_pattern("(?<![\u0370-\u03ff\u0400-\u04ff])[Α-ΩА-ЯЁЂ-Џ\u0490][α-ωа-яёђ-џ\u0491]{1,30}")
_CAPITAL = lazy_pattern("[Α-ΩА-ЯЁЂ-Џ\u0490]")


@cache
def _letters(section: str) -> dict[str, str]:
    return dict(_NAMES.pairs(section))


def spelled_names(text: str, small: Set[str]) -> list[str]:
    """The capitalised words of Cyrillic and Greek in Latin letters, each in the forms that its name may have.

    `small` are words that are no names, though a sentence may begin with them.
    """
    if _CAPITAL.search(text) is None:
        return []
    text = unicodedata.normalize("NFD", text).translate(_ACCENTS)
    found: list[str] = []
    for word in _CAPITALISED.findall(unicodedata.normalize("NFC", text)):
        word = word.lower()
        if word in small:
            continue
        found += _greek(word) if "\u0370" <= word[0] <= "\u03ff" else _cyrillic(word)
    return found


_ACCENTS = dict.fromkeys((0x300, 0x301, 0x342, 0x313, 0x314, 0x345))
"""Marks that go: those of stress and breathing, not those that make й and ё."""
_PAIRS = (("ия", "ia"), ("ья", "ia"), ("ью", "iu"), ("ий", "i"))
_CASES = ("ой", "ом", "ем", "а", "я", "ы", "и", "е", "у", "ю", "ь")
"""What a case may put at the end of a name, the longer ones first."""
_SHORTEST = 2


def _spelled(word: str) -> str:
    for pair, latin in _PAIRS:
        word = word.replace(pair, latin)
    letters = _letters("cyrillic")
    return "".join([letters.get(letter, letter) for letter in word])


def _cyrillic(word: str) -> list[str]:
    """A name may stand in any case: its spelling without the ending, and with the -a that most of those have."""
    if word.endswith("й"):
        return list(dict.fromkeys((_spelled(word), _spelled(word[:-1]) + "i", *_without_case(word))))
    return list(dict.fromkeys(_without_case(word))) or [_spelled(word)]


def _without_case(word: str) -> list[str]:
    for ending in _CASES:
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= _SHORTEST:
            latin = _spelled(root)
            return [latin, (latin + "i" if root.endswith("ь") else latin) + "a"]
    return []


def _greek(word: str) -> list[str]:
    word = word.replace("ου", "ou").replace("μπ", "b").replace("ντ", "nt").replace("γγ", "ng")
    letters = _letters("greek")
    return ["".join([letters.get(letter, letter) for letter in word])]


_SMALL = {"ァ": "a", "ィ": "i", "ゥ": "u", "ェ": "e", "ォ": "o", "ャ": "a", "ュ": "u", "ョ": "o"}
_KATAKANA = lazy_pattern("[\u30a1-\u30fa\u30fc]{2,}")


def spelled_katakana(run: str) -> list[str]:
    """The stretches of katakana in Latin letters; one that ends in u also without it, which Japanese adds to names."""
    found: list[str] = []
    for stretch in _KATAKANA.findall(run):
        latin = _kana(stretch)
        if len(latin) > _SHORTEST:
            found += [latin, latin[:-1]] if latin.endswith("u") else [latin]
    return found


def _kana(stretch: str) -> str:
    letters = _letters("katakana")
    parts: list[str] = []
    is_doubled = False
    for sign in stretch:
        if sign == "ッ":
            is_doubled = True
        elif sign in _SMALL:
            if parts:
                glide = "y" if sign in "ャュョ" and not parts[-1].endswith(("shi", "chi", "ji")) else ""
                parts[-1] = parts[-1][:-1] + glide + _SMALL[sign]
        elif sign in letters:
            latin = letters[sign]
            parts.append(latin[0] + latin if is_doubled else latin)
            is_doubled = False
    return "".join(parts)


_FIRSTS = ("g", "kk", "n", "d", "tt", "r", "m", "b", "pp", "s", "ss", "", "j", "jj", "ch", "k", "t", "p", "h")
_VOWELS = (
    "a", "ae", "ya", "yae", "eo", "e", "yeo", "ye", "o", "wa", "wae", "oe", "yo", "u", "wo", "we", "wi", "yu", "eu",
    "ui", "i",
)  # fmt: skip
_LASTS = (
    "", "k", "k", "k", "n", "n", "n", "t", "l", "k", "m", "l", "l", "l", "p", "l", "m", "p", "p", "t", "t", "ng", "t",
    "t", "k", "t", "p", "t",
)  # fmt: skip


@cache
def _given() -> frozenset[str]:
    return frozenset(_NAMES.words("korean given names"))


def spelled_hangul(root: str) -> list[str]:
    """A Korean name in Latin letters, the family's and the given one apart; nothing where the word looks like none."""
    given, families = _given(), _letters("korean family names")
    if root.endswith("이") and (len(root) == 4 or given.issuperset(root[:2])):
        root = root[:-1] if len(root) > 2 else root  # what makes a name easier to say before a particle
    family = families.get(root[0]) if len(root) == 3 else None
    first = root[1:] if family else root
    if len(first) != 2 or not given.issuperset(first):
        return []
    return [*([family] if family else ()), "".join(map(_syllable, first))]


def _syllable(sign: str) -> str:
    number = ord(sign) - 0xAC00
    return _FIRSTS[number // 588] + _VOWELS[number % 588 // 28] + _LASTS[number % 28]
