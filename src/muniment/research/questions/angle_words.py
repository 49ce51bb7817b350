"""What a research lead calls an angle, by kind of answer, field and track, in English and Chinese; where to look.

The titles stand in `data/angles.txt`.
"""

from __future__ import annotations

import re
from functools import cache

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.script import Written
from muniment.core.text.word_lists import WordList
from muniment.research.questions.words import Domain

__all__ = ["SPECIAL_FORMS", "Words", "angle_titles", "more_titles", "platforms_of"]

Words = dict[Written, str]
_ANGLES = WordList(__package__, "angles.txt")

SPECIAL_FORMS: dict[str, re.Pattern[str]] = {
    "judgement": lazy_pattern(
        r"(?i)^(?:whether|is|are|was|were|can|could|should|would|will|do|does|did)\b|是否|能否|能不能|会不会|有没有"
    ),
    "mechanism": lazy_pattern(r"(?i)^how (?!to\b|(?:\w+ )+(?:can|could|should|might) be\b)|^[^，]{2,}如何"),
    "advice": lazy_pattern(r"(?i)\brecommend|\bguidelines?\b|建议$|对策"),
    "history": lazy_pattern(r"(?i)\b(?:evolution|history|development) (?:of|from)\b|演变|历代|发展历程"),
}
"""Forms of a matter that call for other titles than its kind does: `special views` and `special doubts`."""


def _both(text: str) -> Words:
    en, _, zh = text.partition(" | ")
    return {"en": en, "zh": zh}


@cache
def angle_titles(section: str) -> dict[str, Words]:
    """The titles of a section by the kind, the field or the form that they are for."""
    return {name: _both(title) for name, title in _ANGLES.pairs(section)}


@cache
def more_titles(section: str) -> tuple[Words, ...]:
    """The titles of a section that are for anything."""
    return tuple(map(_both, _ANGLES.entries(section)))


@cache
def platforms_of(domain: Domain | None) -> tuple[tuple[str, ...], ...]:
    """Where the standard, the independent and the contrarian track look first in a field."""
    places = dict(_ANGLES.pairs("platforms"))[domain or "any"]
    return tuple(tuple(track.split()) for track in places.split("|"))
