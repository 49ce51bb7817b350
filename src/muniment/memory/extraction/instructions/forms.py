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
_UNSAID = "".join(
    f"(?<!{who} )" for who in ("i", "we", "they", "he", "she", "it", "you", "can", "ich", "wir", "yo", "je", "eu")
)
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
    words = WordList(__package__, f"{name}.txt")
    is_latin = name in LATIN

    def spelled(pattern: str) -> str:
        while found := _NAMED.search(pattern):
            pattern = f"{pattern[: found.start()]}(?:{words.either(found[1])}){pattern[found.end() :]}"
        return pattern

    def any_of(section: str) -> re.Pattern[str]:
        return re.compile(spelled(words.either(section)))

    def any_latin(section: str) -> re.Pattern[str]:
        """Of all languages in Latin letters: which of them a short sentence is in is not always told by its words."""
        lists = [WordList(__package__, f"{each}.txt") for each in (LATIN if is_latin else (name,))]
        return re.compile("|".join(each.either(section) for each in lists))

    blank = r"[,:.!]*\s+" if is_latin else r"[,，、:：!！~～\s]*"
    opener = re.compile(f"(?:{spelled(words.either('opener'))}){blank}")
    forms = spelled(words.either("forms"))
    if is_latin:
        fill = f"(?:(?:{spelled(words.either('fillers'))})[\\s,]+){{0,5}}"
        order = f"(?:{spelled(words.either('negated'))}|(?:{spelled(words.either('imperatives'))})\\b)"
        front, late = spelled(words.either("on")), spelled(words.either("late"))
        begun, nobody = spelled(words.either("from")), spelled(words.either("subject"))
        free = f"(?!(?:{nobody})(?!\\w))(?!.*(?<!\\w)(?:{spelled(words.either('telling'))})(?!\\w))\\w"
        forms = f"{forms}|(?:{begun})[\\s,:]+{free}|{free}[^,;:]{{2,80}}?[\\s,]+(?:{begun})(?!\\w)"
        ever, how = spelled(words.either("ever")), spelled(words.either("how"))
        forms = f"{forms}|{free}[^,;:]{{2,50}}?\\s(?:{ever})\\s(?:{how})(?!\\w)"
        occasion = spelled(words.either("occasion"))
        forms = f"{forms}|(?:{occasion})\\s[^;:]{{1,70}}?[\\s,]+{fill}{_UNSAID}(?:{ever})[\\s,]+{fill}{order}"
        again = f"(?:{spelled(words.either('again'))}|{late})"
        banned = f"{fill}(?:{spelled(words.either('negated'))})[^:;]{{0,200}}?(?<!\\w){again}(?!\\w)"
        forms = (
            f"(?:{front})[\\s,:]+{fill}{order}|{fill}{order}[^:;]{{0,200}}?(?<!\\w)(?:{late})(?!\\w)|{banned}|{forms}"
        )
    courtesy = spelled(words.either("courtesy"))
    edge = r"(?<!\w)" if is_latin else ""
    return Language(
        name=name,
        opener=opener,
        joint=any_of("joint"),
        forms=re.compile(f"(?:{forms})"),
        idle=any_of("idle") if "idle" in words else _NEVER,
        asking=any_of("asking"),
        momentary=any_of("momentary"),
        continued=any_of("continued") if is_latin else _NEVER,
        strong=any_of("strong") if is_latin else _NEVER,
        reported=any_latin("reported"),
        material=any_latin("material"),
        tail=any_of("tail"),
        courtesy=re.compile(rf"(?:^|{edge})(?:{courtesy})$"),
        positive=any_of("positive"),
        negative=any_of("negative"),
        allowed=any_of("allowed"),
        released=any_of("released"),
        everything=any_of("everything"),
        names=tuple(re.compile(spelled(entry)) for entry in words.entries("name")),
    )
