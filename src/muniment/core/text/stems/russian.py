"""The Snowball stemmer of Russian."""

from __future__ import annotations

from muniment.core.text.stems.endings import Endings, behind_consonant, behind_vowel

__all__ = ["stem_russian"]

_VOWELS = frozenset("аеиоуыэюя")
_GERUNDS = Endings("a: в вши вшись go: ив ивши ившись ыв ывши ывшись")
_ADJECTIVES = Endings("""
    go: ее ие ые ое ими ыми ей ий ый ой ем им ым ом его ого ему ому их ых ую юю ая яя ою ею
""")
_PARTICIPLES = Endings("a: ем нн вш ющ щ go: ивш ывш ующ")
_REFLEXIVES = Endings("go: ся сь")
_VERBS = Endings("""
    a: ла на ете йте ли й л ем н ло но ет ют ны ть ешь нно
    go: ила ыла ена ейте уйте ите или ыли ей уй ил ыл им ым ен ило ыло ено ят ует уют ит ыт ены ить ыть ишь ую ю
""")
_NOUNS = Endings("""
    go: а ев ов ие ье е иями ями ами еи ии и ией ей ой ий й иям ям ием ем ам ом о у ах иях ях ы ь ию ью ю ия ья я
""")
_QUALITIES = Endings("go: ост ость")
_LAST = Endings("superlative: ейш ейше n: н go: ь")


def stem_russian(word: str) -> str:
    """The stem of a word in lower case."""
    word = word.replace("ё", "е")
    verbs = behind_vowel(word, _VOWELS)
    second = behind_consonant(word, _VOWELS, behind_vowel(word, _VOWELS, behind_consonant(word, _VOWELS, verbs)))
    shorter = _without(word, _GERUNDS, verbs)
    if shorter is None:
        word = _without(word, _REFLEXIVES, verbs) or word
        shorter = _without(word, _ADJECTIVES, verbs)
        if shorter is not None:
            shorter = _without(shorter, _PARTICIPLES, verbs) or shorter
        else:
            shorter = _without(word, _VERBS, verbs) or _without(word, _NOUNS, verbs) or word
    word = shorter
    if word.endswith("и") and len(word) > verbs:
        word = word[:-1]
    quality, _ = _QUALITIES.longest(word, verbs)
    if quality and len(word) - len(quality) >= second:
        word = word[: -len(quality)]
    return _tidied(word, verbs)


def _without(word: str, endings: Endings, verbs: int) -> str | None:
    """The word without its ending; those under `a` stand behind an а or я. None where it has none."""
    ending, action = endings.longest(word, verbs)
    rest = word[: len(word) - len(ending)]
    if not ending or (action == "a" and (len(rest) <= verbs or rest[-1] not in "ая")):
        return None
    return rest


def _tidied(word: str, verbs: int) -> str:
    ending, action = _LAST.longest(word, verbs)
    if not ending:
        return word
    rest = word[: -len(ending)]
    if action == "n":
        return rest if rest.endswith("н") and len(rest) > verbs else word
    if action == "superlative" and rest.endswith("нн") and len(rest) - 2 >= verbs:
        return rest[:-1]
    return rest
