"""The word lists of a language as patterns over a plain sentence."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from muniment.core.text.word_lists import WordList

__all__ = ["LATIN", "Language", "language_of", "languages_of", "plain_text"]

LATIN = ("english", "german", "spanish", "french", "portuguese")
_NAMED = re.compile(r"(?<!P)<([a-z][a-z ]*)>")
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "´": "'"})
_HANGUL, _KANA, _HAN = re.compile("[가-힣]"), re.compile("[\u3041-\u30ff]"), re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_NEVER = re.compile("(?!)")
_PEOPLE = ("i", "we", "they", "he", "she", "it", "you", "can", "ich", "wir", "yo", "je", "eu")
_UNSAID = "".join(f"(?<!{who} )" for who in _PEOPLE)
"""Nobody is named right before it."""


class Language(NamedTuple):
    """How one language asks for something once and for all."""

    name: str
    opener: re.Pattern[str]
    """One of the words that may stand before an order."""
    joint: re.Pattern[str]
    forms: re.Pattern[str]
    idle: re.Pattern[str]
    asking: re.Pattern[str]
    momentary: re.Pattern[str]
    continued: re.Pattern[str]
    strong: re.Pattern[str]
    reported: re.Pattern[str]
    material: re.Pattern[str]
    tail: re.Pattern[str]
    courtesy: re.Pattern[str]
    positive: re.Pattern[str]
    negative: re.Pattern[str]
    permitted: re.Pattern[str]
    allowed: re.Pattern[str]
    released: re.Pattern[str]
    everything: re.Pattern[str]
    names: tuple[re.Pattern[str], ...]


def plain_text(text: str) -> str:
    """A text as the forms are written, sign for sign as long as it was: lowered, with straight quotes."""
    straight = text.translate(_STRAIGHT)
    lowered = straight.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in straight)


def languages_of(text: str) -> tuple[Language, ...]:
    """The languages that a sentence may be in: told by its script, of those in Latin letters any."""
    if _HANGUL.search(text):
        return (language_of("korean"),)
    if _KANA.search(text):
        return (language_of("japanese"),)
    if _HAN.search(text):
        return (language_of("chinese"),)
    return tuple(language_of(name) for name in LATIN) if _LATIN.search(text) else ()


@cache
def language_of(name: str) -> Language:
    """A language by its name, read once."""
    words = _Words(name)
    is_latin = name in LATIN
    blank = r"[,:.!]*\s+" if is_latin else r"[,，、:：!！~～\s]*"
    edge = r"(?<!\w)" if is_latin else ""
    return Language(
        name=name,
        opener=re.compile(f"(?:{words.either('opener')}){blank}"),
        joint=words.any_of("joint"),
        forms=re.compile("|".join(f"(?:{form})" for form in words.forms())),
        idle=words.any_of("idle"),
        asking=words.any_of("asking"),
        momentary=words.any_of("momentary"),
        continued=words.any_of("continued"),
        strong=words.any_of("strong"),
        reported=words.any_latin("reported"),
        material=words.any_latin("material"),
        tail=words.any_of("tail"),
        courtesy=re.compile(rf"(?:^|{edge})(?:{words.either('courtesy')})$"),
        positive=words.any_of("positive"),
        negative=words.any_of("negative"),
        allowed=words.any_of("allowed"),
        permitted=words.any_of("permitted"),
        released=words.any_of("released"),
        everything=words.any_of("everything"),
        names=tuple(map(re.compile, words.spelled_entries("name"))),
    )


class _Words:
    """The word list of one language, with the sections that a form names in their place."""

    def __init__(self, name: str) -> None:
        self._name, self._list = name, WordList(__package__, f"{name}.txt")

    def _spelled(self, pattern: str) -> str:
        while found := _NAMED.search(pattern):
            pattern = f"{pattern[: found.start()]}(?:{self._list.either(found[1])}){pattern[found.end() :]}"
        return pattern

    def either(self, section: str) -> str:
        return self._spelled(self._list.either(section))

    def spelled_entries(self, section: str) -> list[str]:
        return [self._spelled(entry) for entry in self._list.entries(section)]

    def any_of(self, section: str) -> re.Pattern[str]:
        """The forms of a section; of one that the language has no need of, none."""
        return re.compile(self.either(section)) if section in self._list else _NEVER

    def any_latin(self, section: str) -> re.Pattern[str]:
        """Of all languages in Latin letters: which of them a short sentence is in is not always told by its words."""
        names = LATIN if self._name in LATIN else (self._name,)
        return re.compile("|".join(WordList(__package__, f"{name}.txt").either(section) for name in names))

    def forms(self) -> list[str]:
        """How an order for all times may begin. In Latin letters words stand apart, and most of it is said by order."""
        if self._name not in LATIN:
            return [self.either("forms")]
        fill = rf"(?:(?:{self.either('fillers')})[\s,]+){{0,5}}"
        order = rf"(?:{self.either('negated')}|(?:{self.either('imperatives')})\b)"
        late = rf"(?<!\w)(?:{self.either('late')})(?!\w)"
        again = rf"(?<!\w)(?:{self.either('again')})(?!\w)"
        begun, ever = self.either("from"), self.either("ever")
        told = rf"(?<!\w)(?:{self.either('telling')})(?!\w)"
        free = rf"(?!(?:{self.either('subject')})(?!\w))(?!.*{told})\w"
        return [
            rf"(?:{self.either('on')})[\s,:]+{fill}{order}",
            rf"{fill}{order}[^:;]{{0,200}}?{late}",
            rf"{fill}(?:{self.either('negated')})[^:;]{{0,200}}?{again}",
            rf"(?:{begun})[\s,:]+{free}",
            rf"{free}[^,;:]{{2,80}}?[\s,]+(?:{begun})(?!\w)",
            rf"{free}[^,;:]{{2,50}}?\s(?:{ever})\s(?:{self.either('how')})(?!\w)",
            rf"(?:{self.either('occasion')})\s[^;:]{{1,70}}?[\s,]+{fill}{_UNSAID}(?:{ever})[\s,]+{fill}{order}",
            self.either("forms"),
        ]
