"""The Snowball stemmer of Dutch, in the form that Porter gave it."""

from __future__ import annotations

from muniment.core.text.stems.endings import Endings, regions

__all__ = ["stem_dutch"]

_VOWELS = frozenset("aeiouyè")
_PLAIN_LETTERS = str.maketrans("äáëéïíöóüú", "aaeeiioouu")
_PLURALS = Endings("heden: heden en: en ene s: s se")
_SUFFIXES = Endings("ing: end ing ig: ig lijk: lijk baar: baar bar: bar")
_DOUBLED = ("kk", "dd", "tt")
_LONG = frozenset(("aa", "ee", "oo", "uu"))


def stem_dutch(word: str) -> str:
    """The stem of a word in lower case."""
    word = _marked(word.translate(_PLAIN_LETTERS))
    first, second = regions(word, _VOWELS, 3)
    ending, action = _PLURALS.longest(word)
    rest = word[: len(word) - len(ending)]
    if ending and len(rest) >= first:
        if action == "heden":
            word = rest + "heid"
        elif action == "en":
            word = _without_en(word, ending, first)
        elif rest[-1] not in _VOWELS and rest[-1] != "j":
            word = rest
    word, had_e = _without_e(word, first)
    if word.endswith("heid") and len(word) - 4 >= second and word[-5:-4] != "c":
        word = word[:-4]
        if word.endswith("en"):
            word = _without_en(word, "en", first)
    word = _without_suffix(word, first, second, had_e=had_e)
    return _short(word).replace("Y", "y").replace("I", "i")


def _marked(word: str) -> str:
    """A y at the start or behind a vowel, and an i between vowels, as capitals: they are consonants."""
    found = list(word)
    if found[:1] == ["y"]:
        found[0] = "Y"
    place = 0
    while place < len(found):
        is_vowel = found[place] in _VOWELS
        place += 1
        if is_vowel and place < len(found):
            if found[place] == "i":
                place += 1
                if place < len(found) and found[place] in _VOWELS:
                    found[place - 1] = "I"
            elif found[place] == "y":
                found[place] = "Y"
                place += 1
    return "".join(found)


def _single(word: str) -> str:
    return word[:-1] if word.endswith(_DOUBLED) else word


def _without_en(word: str, ending: str, first: int) -> str:
    rest = word[: -len(ending)]
    if len(rest) < first or not rest or rest[-1] in _VOWELS or rest.endswith("gem"):
        return word
    return _single(rest)


def _without_e(word: str, first: int) -> tuple[str, bool]:
    """And whether there was an e to take off."""
    rest = word[:-1]
    if not word.endswith("e") or len(rest) < first or not rest or rest[-1] in _VOWELS:
        return word, False
    return _single(rest), True


def _without_suffix(word: str, first: int, second: int, *, had_e: bool) -> str:
    ending, action = _SUFFIXES.longest(word)
    rest = word[: len(word) - len(ending)]
    if not ending or len(rest) < second:
        return word
    if action == "ing":
        if rest.endswith("ig") and len(rest) - 2 >= second and not rest.endswith("eig"):
            return rest[:-2]
        return _single(rest)
    if (action == "ig" and rest.endswith("e")) or (action == "bar" and not had_e):
        return word
    return _without_e(rest, first)[0] if action == "lijk" else rest


def _short(word: str) -> str:
    """A long vowel before a last consonant is written once, as in the plural: "maan" is found by "manen"."""
    if len(word) < 4 or word[-1] in _VOWELS or word[-1] == "I":
        return word
    if word[-3:-1] in _LONG and word[-4] not in _VOWELS:
        return word[:-2] + word[-1]
    return word
