"""Which language a sentence is in: by its script, and in Latin letters by its small words. English unless told."""

from __future__ import annotations

import re
from functools import cache

from muniment.core.limits import remembered
from muniment.core.text.patterns import plain_letters
from muniment.core.text.text_language import text_language
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.languages.tables import LANGUAGES, LATIN, signs_of

__all__ = ["language_of"]

MESSAGE_CHARS_MAX = 2_000
"""Of a message, to tell the language of a sentence that does not tell its own."""

_HANGUL = re.compile("[가-힣]")
_KANA = re.compile("[\u3041-\u309f\u30a1-\u30fa]")
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_WORD = re.compile(r"[^\W\d_]+")
_STOP_WORDS = WordList("muniment.core.text", "stopwords.txt")
_ENGLISH_ALONE = frozenset({"i", "the", "my", "and", "said", "says", "say", "you", "called", "with", "of", "how"})
"""Words of no other of these languages: a sentence with them is an English one that holds foreign words."""


def language_of(text: str, message: str) -> str | None:
    """The language of a sentence, and of the message where the sentence alone does not tell; None has no words."""
    if _HANGUL.search(text):
        return "korean"
    if _KANA.search(text):
        return "japanese"
    if _HAN.search(text):
        return "japanese" if _has_kana(message) else "chinese"
    if not _LATIN.search(text):
        return None
    found = _by_words(text) or _of_message(message[:MESSAGE_CHARS_MAX])
    return found if found is None or found in LANGUAGES or found == "english" else None


@remembered(8)
def _has_kana(message: str) -> bool:
    return _KANA.search(message) is not None


@remembered(8)
def _of_message(message: str) -> str:
    return _by_words(message) or "english"


@remembered(4096)
def _by_words(text: str) -> str | None:
    """By words that chats are full of, where one language has most of them; else as texts are told elsewhere."""
    words = frozenset(_WORD.findall(text.casefold()))
    told = sorted(((len(words & signs), language) for language, signs in _signs().items()), reverse=True)
    most = told[0][0]
    if 2 * len(words & _ENGLISH_ALONE) > most:
        return "english"
    if most > told[1][0] and most > len(words & _english()):
        return told[0][1]
    found = text_language(text, [plain_letters(word) for word in words])
    if found is None or found not in LANGUAGES or most == 0:
        return found
    return found if found in {language for count, language in told if count == most} else told[0][1]


@cache
def _signs() -> dict[str, frozenset[str]]:
    return {language: signs_of(language) for language in LATIN}


@cache
def _english() -> frozenset[str]:
    return frozenset(_STOP_WORDS.words("english"))
