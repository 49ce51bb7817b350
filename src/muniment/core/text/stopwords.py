"""Words that say nothing about what a text is about: English, Chinese and Korean.

They are left out of the index and of queries alike, so that words of content decide. Question words and the small
change of conversation belong here too: everybody says "hey, great to hear". The words stand in `data/stopwords.txt`.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from muniment.core.text.word_lists import WordList

__all__ = ["korean_particles", "stop_words"]

_WORDS = WordList(__package__, "stopwords.txt")


@cache
def stop_words(language: Literal["english", "chinese", "korean"]) -> frozenset[str]:
    """Those of a language, casefolded."""
    return frozenset(_WORDS.words(language))


@cache
def korean_particles() -> tuple[str, ...]:
    """What follows a noun in Korean, longest first; stripped where two syllables are left, or one of two."""
    return tuple(sorted(set(_WORDS.words("korean particles")), key=lambda particle: (-len(particle), particle)))
