"""Detection of a text's stemming language by its small words and letters, so that two words are enough.

English unless the evidence for another language is stronger than for English. A wrong language never hides a text: the
analyzer also keeps words unstemmed (`analyzer`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal, get_args

from muniment.core.text.patterns import lazy_pattern, plain_letters
from muniment.core.text.word_lists import WordList

__all__ = ["LATIN_LANGUAGES", "LatinLanguage", "language_signs", "text_language"]

LatinLanguage = Literal["spanish", "german", "french", "portuguese", "italian", "dutch"]
LATIN_LANGUAGES: tuple[LatinLanguage, ...] = get_args(LatinLanguage)
"""Languages in Latin letters with stemming rules of their own."""

_SIGN, _HALF_SIGN = 2, 1
"""Evidence of a small word for its language, and of one that occurs in names in English texts."""
_LETTERS: dict[LatinLanguage, str] = {"spanish": "ñ¿¡", "portuguese": "ãõ", "german": "ß", "french": "œ"}
"""Letters and signs unique to one of the languages."""
_SHARED_LETTERS: dict[LatinLanguage, str] = {
    "spanish": "áéíóú",
    "german": "äöü",
    "french": "çèêâîûùàôïé",
    "portuguese": "çêâàôáéíóú",
    "italian": "èùàìò",
    "dutch": "ëï",
}
_TELLING = lazy_pattern("[" + "".join((*_LETTERS.values(), *_SHARED_LETTERS.values())) + "]")
_STOP_WORDS = WordList(__package__, "stopwords.txt")


@cache
def _said_by() -> dict[str, tuple[int, tuple[LatinLanguage, ...]]]:
    """Map a small word to its evidence and languages."""
    in_names, english = set(_STOP_WORDS.words("in names")), set(_STOP_WORDS.words("english too"))
    found: dict[str, tuple[int, tuple[LatinLanguage, ...]]] = {}
    for language in LATIN_LANGUAGES:
        for word in set(map(plain_letters, _STOP_WORDS.words(language))):
            if word in in_names or word not in english:
                others = found.get(word, (0, ()))[1]
                found[word] = _HALF_SIGN if word in in_names else _SIGN, (*others, language)
    for word in _STOP_WORDS.words("english"):
        found.pop(word, None)
    return found


@cache
def language_signs() -> frozenset[str]:
    """Words without any of which an ASCII text is taken for English."""
    return frozenset(_said_by())


@cache
def _against() -> dict[str, tuple[LatinLanguage, ...]]:
    """Map a small English word to the languages that lack it."""
    lists = {language: set(map(plain_letters, _STOP_WORDS.words(language))) for language in LATIN_LANGUAGES}
    return {
        word: tuple(language for language in LATIN_LANGUAGES if word not in lists[language])
        for word in _STOP_WORDS.words("english")
        if len(word) > 1  # fragments before an apostrophe occur in other languages too
    }


def text_language(text: str, words: Sequence[str]) -> LatinLanguage | None:
    """Return the language of a text in Latin letters; None for English and for languages without rules.

    `words` are those of the text without accents and capitals.
    """
    said_by = _said_by()
    told = dict.fromkeys(LATIN_LANGUAGES, 0)
    for word in language_signs().intersection(words):
        weight, languages = said_by[word]
        for language in languages:
            told[language] += weight
    if not text.isascii():
        _count_letters(text, told)
    if max(told.values()) < _SIGN:
        return None
    against = _against()
    for word in against.keys() & words:
        for language in against[word]:
            told[language] -= _SIGN
    best = max(LATIN_LANGUAGES, key=lambda language: told[language])  # of several alike the first
    return best if told[best] >= _SIGN else None


def _count_letters(text: str, told: dict[LatinLanguage, int]) -> None:
    """Count distinct letters."""
    for letter in set(_TELLING.findall(text)):
        for language in LATIN_LANGUAGES:
            if letter in _LETTERS.get(language, ""):
                told[language] += _SIGN
            elif letter in _SHARED_LETTERS[language]:
                told[language] += _HALF_SIGN
