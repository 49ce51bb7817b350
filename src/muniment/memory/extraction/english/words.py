"""English word lists as sets and as parts of patterns."""

from __future__ import annotations

import re
from functools import cache

from muniment.core.text.word_lists import WordList

__all__ = [
    "ALLERGENS",
    "ANIMALS",
    "CAR_MAKES",
    "CONDITIONS",
    "DIETS",
    "DOINGS",
    "FIELDS",
    "FOODS",
    "GAMES",
    "GENERAL",
    "HEALTH",
    "INSTRUMENTS",
    "JOBS",
    "KIN",
    "KINS",
    "KIN_KEYS",
    "LANGUAGES",
    "MEDICINES",
    "NATIONALITIES",
    "NOT_BORNE",
    "NO_ALLERGENS",
    "NO_FAVORITES",
    "NO_FIRMS",
    "NO_JOBS",
    "NO_LIKES",
    "NO_NAMES",
    "PASTIMES",
    "RELIGIONS",
    "SPOUSES",
    "THINGS",
    "VAGUE",
    "either",
]

_PEOPLE = WordList(__package__, "people.txt")
_WORK = WordList(__package__, "work.txt")
_LIFE = WordList(__package__, "life.txt")


def either(words: tuple[str, ...] | list[str] | frozenset[str]) -> str:
    """The words as alternatives, longer ones first."""
    return "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word)))


def _keys(section: str) -> dict[str, str]:
    return {word: key or word for word, key in _PEOPLE.pairs(section)}


KIN_KEYS = _keys("kin") | _keys("kin in plural")
SPOUSES = _keys("family at heart")
ANIMAL_KEYS = _keys("animals")
_BEFORE_KIN = rf"(?:(?:{either(_PEOPLE.words('before kin'))}) ){{0,2}}"
KIN = rf"{_BEFORE_KIN}(?P<kin>{either(tuple(_keys('kin')))})"
KINS = rf"{_BEFORE_KIN}(?P<kins>{either(tuple(_keys('kin in plural')))})"
ANIMALS = either(tuple(ANIMAL_KEYS))

_JOB_WORDS = tuple(_WORK.entries("jobs"))
_JOB_BEFORE = either(tuple(_WORK.entries("job adjectives")))
JOBS = rf"(?:(?:{_JOB_BEFORE}) ){{0,3}}(?:{either(_JOB_WORDS)})"
NO_JOBS = frozenset(_WORK.words("no jobs"))
FIELDS = either(tuple(_WORK.entries("fields")))
LANGUAGES = either(tuple(_WORK.entries("languages")))
NATIONALITIES = either((*_WORK.entries("languages"), *_WORK.entries("nationalities")))
RELIGIONS = either(tuple(_WORK.entries("religions")))
SCHOOLS = frozenset(_WORK.words("schools"))

FOODS = either(tuple(_LIFE.entries("foods")))
ALLERGENS = either((*_LIFE.entries("foods"), *_LIFE.entries("allergens")))
NOT_BORNE = either((*_LIFE.entries("foods"), *_LIFE.entries("not borne")))
DIETS = either(tuple(_LIFE.entries("diets")))
CONDITIONS = either(tuple(_LIFE.entries("conditions")))
HEALTH = either(tuple(_LIFE.entries("adjectives of health")))
MEDICINES = either(tuple(_LIFE.entries("medicines")))
INSTRUMENTS = either(tuple(_LIFE.entries("instruments")))
GAMES = either(tuple(_LIFE.entries("games")))
PASTIMES = frozenset(_LIFE.entries("pastimes"))
PASTIME = either(PASTIMES)
THINGS = frozenset(_LIFE.words("things"))
PLAIN_THINGS = frozenset(_LIFE.words("plain things"))
CAR_MAKES = frozenset(_LIFE.words("car makes"))
VAGUE = frozenset(_LIFE.words("vague"))
NO_LIKES = frozenset(_LIFE.words("first words of likes"))
GENERAL = frozenset(_LIFE.words("general"))
NO_ALLERGENS = frozenset(_LIFE.words("no allergens"))
NO_FAVORITES = frozenset(_LIFE.words("no favorites"))
DOINGS = frozenset(_LIFE.words("doings"))
NO_FIRMS = frozenset(_LIFE.words("firms that are none"))
NO_NAMES = frozenset(_LIFE.words("names that are none"))


@cache
def known_things() -> frozenset[str]:
    """Food, drink and pastimes: what somebody may like without more words."""
    return PASTIMES | frozenset(_LIFE.entries("foods"))
