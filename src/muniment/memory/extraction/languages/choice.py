"""Which language a sentence is in: by its script, and in Latin letters by its small words. English unless told."""

from __future__ import annotations

import re
from functools import cache

from muniment.core.text.characters import plain_letters
from muniment.core.text.text_language import text_language
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.languages.tables import LANGUAGES, LATIN, signs_of

__all__ = ["language_of"]

_HANGUL = re.compile("[가-힣]")
_KANA = re.compile("[\u3041-\u309f\u30a1-\u30fa]")
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_STOP_WORDS = WordList("muniment.core.text", "stopwords.txt")
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str, message: str) -> str | None:
    """The language of a sentence, and of the message where the sentence alone does not tell; None has no words."""
    if _HANGUL.search(text):
        return "korean"
    if _KANA.search(text):
        return "japanese"
    if _HAN.search(text):
        return "japanese" if _KANA.search(message) else "chinese"
    if not _LATIN.search(text):
        return None
    for stretch in (text, message):
        found = _by_words(stretch)
        if found is not None:
            return found if found in LANGUAGES else None
    return "english"


def _by_words(text: str) -> str | None:
    """By words that chats are full of, where one language has most of them; else as texts are told elsewhere."""
    words = frozenset(_WORD.findall(text.casefold()))
    told = sorted(((len(words & signs), language) for language, signs in _signs().items()), reverse=True)
    most = told[0][0]
    if most > told[1][0] and most > len(words & _english()):
        return told[0][1]
    found = text_language(text, [plain_letters(word) for word in words])
    return found if found is None or found not in LANGUAGES or most == 0 or found in _best(told) else told[0][1]


def _best(told: list[tuple[int, str]]) -> set[str]:
    return {language for count, language in told if count == told[0][0]}


@cache
def _signs() -> dict[str, frozenset[str]]:
    return {language: signs_of(language) for language in LATIN}


@cache
def _english() -> frozenset[str]:
    return frozenset(_STOP_WORDS.words("english"))
