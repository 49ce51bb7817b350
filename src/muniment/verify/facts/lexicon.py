"""Small closed tables of the fact checker: verbs, pronouns, negation, modality, words that link clauses.

English in full; Chinese and Korean for negation. They say what sort of word a word is, never what a text is about. The
words stand in `data/lexicon.txt`, which is read with this module: nothing but the fact checker loads it.
"""

from __future__ import annotations

from collections.abc import Set
from functools import cache

from muniment.core.text.analyzer import stem
from muniment.core.text.word_lists import WordList

__all__ = [
    "ARTICLES",
    "AUXILIARY",
    "CIRCUMSTANCE_BEFORE",
    "GENDER",
    "LINKS",
    "MODALITY",
    "NOT_ALONE",
    "OPPOSED_LINKS",
    "PASSIVE",
    "PERIODS",
    "POSSESSIVE",
    "PREPOSITIONS",
    "TURNS",
    "WEIGHTY_STOP_WORDS",
    "denying_stems",
    "may_negate",
    "negates",
    "verb_stems",
]

_LEXICON = WordList(__package__, "lexicon.txt")


def _words(section: str) -> frozenset[str]:
    return frozenset(_LEXICON.words(section))


def _stems(section: str) -> frozenset[str]:
    return frozenset(map(stem, _LEXICON.words(section)))


GENDER = {word: gender for gender, words in _LEXICON.pairs("gender") for word in words.split()}
"""A pronoun of the third person → whom it can stand for."""
POSSESSIVE = _words("possessive")

MODALITY = {word: int(degree) for degree, words in _LEXICON.pairs("modality") for word in words.split()}
"""Words that say how sure something is → 0 possible, 1 likely, 2 certain."""

LINKS = {
    form: sense for sense, words in _LEXICON.pairs("links") for word in words.split() for form in (word, stem(word))
}
"""A word that links two clauses, or its stem → how."""
OPPOSED_LINKS = {"cause": "contrast", "contrast": "cause", "earlier": "later", "later": "earlier"}

AUXILIARY = _words("auxiliary")
"""What a verb stands behind."""
ARTICLES = _words("articles")
"""What a verb never stands behind."""
PASSIVE = _words("passive")

PREPOSITIONS = _words("prepositions") | _stems("prepositions")
"""What hangs on one of these is no side of a verb."""
CIRCUMSTANCE_BEFORE = _words("circumstance before")
"""What tells when or where an event was stands behind one of these."""
PERIODS = _stems("periods")
"""Units of time and distance."""

WEIGHTY_STOP_WORDS = _words("stop words of weight")
"""Stop words of the index that a claim may turn on."""
TURNS = _words("turns")
"""Words of passage and address, which claim nothing."""

NOT_ALONE = _words("not alone")
"""Behind "not" these deny nothing: not only."""
_NEGATION = _words("negation")
_NEGATION_ZH = _words("negation chinese")
_NEGATION_KO, _NEGATION_KO_WORDS = _words("negation korean"), _words("negation korean words")


@cache
def verb_stems() -> frozenset[str]:
    """Stems of the common verbs."""
    return _stems("verbs")


@cache
def denying_stems() -> frozenset[str]:
    """Stems of words that say that something is not so without a "not"."""
    return _stems("denying")


def may_negate(text: str, keys: Set[str]) -> bool:
    """Can a word of a text deny something? `keys` are those of its words: most texts are told by them at once."""
    return not text.isascii() or not _NEGATION.isdisjoint(keys)


def negates(text: str, key: str) -> bool:
    """Does the word deny something? `text` as it stands, `key` as it is compared."""
    if text.isascii():
        return key in _NEGATION
    if "\uac00" <= text[0] <= "\ud7a3":
        return text in _NEGATION_KO_WORDS or any(part in text for part in _NEGATION_KO)
    return text[0] in _NEGATION_ZH or key == "not"
