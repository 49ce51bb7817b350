"""Stems of words in Latin script: Porter's algorithm, after a table of irregular English forms.

Written out here so that the index depends on no package: a stem is part of what is stored, and a release of somebody
else's stemmer would silently split an index in two. It holds no state; the irregular forms stand in
`data/irregular_forms.txt`.
"""

from __future__ import annotations

from functools import cache

from muniment.core.text.word_lists import WordList

__all__ = ["irregular_forms", "porter_stem", "stem"]

_FORMS = WordList(__package__, "irregular_forms.txt")


@cache
def irregular_forms() -> dict[str, str]:
    """A form → the word it is filed under; the stem of that word is the term."""
    return {form: base for base, forms in _FORMS.pairs() for form in forms.split()}


_CLASSES = bytes(ord("v") if char in b"aeiou" else ord("y") if char == ord("y") else ord("c") for char in range(256))
"""Letter → vowel, consonant, or a y, which is either."""
_VOWELS, _VOWELS_OR_Y, _NO_SHORT_END = frozenset("aeiou"), frozenset("aeiouy"), frozenset("aeiouwxy")
_STEP_2_TEXT = (
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous "
    "ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble logi>log"
)
_STEP_3_TEXT = "icate>ic ative> alize>al iciti>ic ical>ic ful> ness>"
_STEP_4_TEXT = "ement al ance ence er ic able ible ant ment ent sion tion ou ism ate iti ous ive ize"
"""The longer first where one ends another."""


def _by_end(text: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Suffixes and what replaces them, by their last two letters: a word is compared with one or two of them."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for suffix, _, new in (pair.partition(">") for pair in text.split()):
        found[suffix[-2:]] = (*found.get(suffix[-2:], ()), (suffix, new))
    return found


_STEP_2, _STEP_3, _STEP_4 = _by_end(_STEP_2_TEXT), _by_end(_STEP_3_TEXT), _by_end(_STEP_4_TEXT)
_ENDS = _STEP_2.keys() | _STEP_3.keys() | _STEP_4.keys()
_PAST_ENDS = frozenset(("ed", "ng"))
_MENDED_BY_E = frozenset(("at", "bl", "iz"))
_DOUBLED = frozenset(letter * 2 for letter in "bcdfghjkmnpqrtvwxy")


def stem(word: str) -> str:
    """The stem of a casefolded word; what is not made of the letters a–z is its own stem."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return porter_stem(irregular_forms().get(word, word))


def porter_stem(word: str) -> str:
    """Porter (1980), with the two departures of his own later program (`bli`, `logi`)."""
    if len(word) < 3:
        return word
    if word[-1] == "s":
        word = _singular(word)
    if word[-2:] in _PAST_ENDS:
        word = _present(word)
    if word[-1] == "y" and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    if word[-2:] in _ENDS:
        word = _without_suffixes(word)
    if word[-1] == "e":
        size = _measure(word[:-1])
        if size > 1 or (size == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    if word[-2:] == "ll" and _measure(word) > 1:
        word = word[:-1]
    return word


def _has_vowel(text: str) -> bool:
    """A y is one behind a consonant, or before anything."""
    classes = text.encode().translate(_CLASSES)
    return b"v" in classes or (len(text) > 1 and b"y" in classes)


def _measure(text: str) -> int:
    """How often a vowel is followed by a consonant: Porter's m. A y is a vowel behind anything but a vowel."""
    classes = text.encode().translate(_CLASSES)
    if b"y" in classes:
        if classes.startswith(b"y"):
            classes = b"c" + classes[1:]
        classes = classes.replace(b"vy", b"vc").replace(b"y", b"v")
    return classes.count(b"vc")


def _ends_short(text: str) -> bool:
    """Does it end as "hop" does: a consonant or nothing, a vowel, a consonant but w and x?"""
    return text[-2:-1] in _VOWELS_OR_Y and text[-1] not in _NO_SHORT_END and text[-3:-2] not in _VOWELS


def _singular(word: str) -> str:
    if word.endswith("sses") or (word.endswith("ies") and len(word) > 4):
        return word[:-2]
    return word if word.endswith("ss") else word[:-1]


def _present(word: str) -> str:
    """Without -ed and -ing."""
    end = word[-3:]
    if end == "eed":
        return word[:-1] if _measure(word[:-3]) else word
    rest = word[:-3] if end == "ing" else word[:-2] if end[-1] == "d" else ""
    return _mended(rest) if _has_vowel(rest) else word


def _mended(word: str) -> str:
    """What is left after -ed and -ing gets its e back, or loses its doubled consonant."""
    end = word[-2:]
    if end in _MENDED_BY_E:
        return word + "e"
    if end in _DOUBLED:
        return word[:-1]
    if _measure(word) == 1 and _ends_short(word):
        return word + "e"
    return word


def _without_suffixes(word: str) -> str:
    """Each step takes the first of its suffixes that the word has, if enough is left before it."""
    for step in (_STEP_2, _STEP_3):
        for suffix, new in step.get(word[-2:], ()):
            if word.endswith(suffix):
                rest = word[: -len(suffix)]
                word = rest + new if _measure(rest) else word
                break
    for suffix, _ in _STEP_4.get(word[-2:], ()):
        if word.endswith(suffix):
            rest = word[:-3] if suffix in ("sion", "tion") else word[: -len(suffix)]
            return rest if _measure(rest) > 1 else word
    return word
