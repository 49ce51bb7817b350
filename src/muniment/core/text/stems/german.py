"""The Snowball stemmer of German."""

from __future__ import annotations

import re

from muniment.core.text.stems.endings import Endings, marked_between_vowels, regions

__all__ = ["stem_german"]

_VOWELS = frozenset("aeiouyäöü")
_TYPED = re.compile("ß|ae|oe|ue|qu")
_LETTERS = {"ß": "ss", "ae": "ä", "oe": "ö", "ue": "ü", "qu": "qu"}
"""How umlauts are typed on other keyboards; the u of "qu" is none."""
_BEFORE_S, _BEFORE_ST, _BEFORE_ET = frozenset("bdfghklmnrt"), frozenset("bdfghklmnt"), frozenset("dfgklmnrstUzä")
_FIRST = Endings("em: em go: ern er erin erinnen e: e en es s: s l: ln lns")
_SECOND = Endings("go: en er est st: st et: et")
_WITH_ET = ("geordn", "intern", "plan", "tick", "tr")
"""What keeps its -et: Internet, Planet, Ticket."""
_THIRD = Endings("ung: end ung ig: ig ik isch lich: lich heit keit: keit")
_PLAIN = str.maketrans("YUäöü", "yuaou")


def stem_german(word: str) -> str:
    """The stem of a word in lower case, its umlauts taken off."""
    word = marked_between_vowels(word, _VOWELS, "uy")
    word = _TYPED.sub(lambda match: _LETTERS[match[0]], word)
    first, second = regions(word, _VOWELS, 3)
    word = _without_case(word, first)
    word = _without_comparison(word, first)
    return _without_suffix(word, first, second).translate(_PLAIN)


def _without_case(word: str, first: int) -> str:
    ending, action = _FIRST.longest(word)
    rest = word[: len(word) - len(ending)]
    if not ending or len(rest) < first:
        return word
    if (action == "em" and rest.endswith("syst")) or (action == "s" and rest[-1] not in _BEFORE_S):
        return word
    if action == "l":
        return rest + "l"
    return rest[:-1] if action == "e" and rest.endswith("niss") else rest


def _without_comparison(word: str, first: int) -> str:
    ending, action = _SECOND.longest(word)
    rest = word[: len(word) - len(ending)]
    if not ending or len(rest) < first:
        return word
    if action == "st" and (rest[-1] not in _BEFORE_ST or len(rest) < 4):
        return word
    if action == "et" and (rest[-1] not in _BEFORE_ET or rest.endswith(_WITH_ET)):
        return word
    return rest


def _without_suffix(word: str, first: int, second: int) -> str:
    ending, action = _THIRD.longest(word)
    rest = word[: len(word) - len(ending)]
    if not ending or len(rest) < second or (action == "ig" and rest.endswith("e")):
        return word
    if action == "ung" and rest.endswith("ig") and not rest.endswith("eig") and len(rest) - 2 >= second:
        return rest[:-2]
    if action == "lich" and rest.endswith(("er", "en")) and len(rest) - 2 >= first:
        return rest[:-2]
    if action == "keit":
        more = "lich" if rest.endswith("lich") else "ig" if rest.endswith("ig") else ""
        if more and len(rest) - len(more) >= second:
            return rest[: -len(more)]
    return rest
