"""Injections to learn from, whole or put together from parts, in six languages and a few in Korean.

A section of a file in `data/injection/` is a family. Of the sections in `_PARTS` no line is an attack by itself: who is
addressed, what is put aside, what is wanted, secrecy, authority, an occasion. Families of their own are made of these.
`[harmless]` and `[carrier]` are what looks like an order and is none, and what an order stands amid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

__all__ = ["LANGUAGES", "Attack", "attacks", "carriers", "harmless", "held_back", "own_texts", "told_families"]

LANGUAGES = ("en", "de", "fr", "es", "zh", "ja", "ko")
_FOLDER = Path(__file__).parent / "data" / "injection"
_HELD_BACK = Path(__file__).parent / "data" / "injection_held_back.txt"
_PARTS = ("address", "override", "goal", "secrecy", "authority", "condition")
_BENIGN = ("carrier", "harmless")
_MADE = 90
"""Texts of a family that is made of parts, in each language."""


class Attack(NamedTuple):
    """A text that gives orders, how it does so, and in which language."""

    family: str
    language: str
    text: str


@cache
def _sections(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    section: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        heading = re.fullmatch(r"\[([a-z]+)\]", line)
        if heading is not None:
            section = found.setdefault(heading[1], [])
        elif line:
            section.append(line.replace("\\n", "\n"))
    return found


def _of(language: str) -> dict[str, list[str]]:
    return _sections(_FOLDER / f"{language}.txt")


def told_families(language: str) -> list[str]:
    """The families that are written out in a language."""
    return [name for name in _of(language) if name not in (*_PARTS, *_BENIGN)]


def own_texts(language: str, family: str) -> list[str]:
    """The texts of a family that is written out in a language."""
    return _of(language)[family]


def carriers(language: str) -> list[str]:
    """What an attack may stand amid."""
    return _of(language)["carrier"]


def harmless(language: str) -> list[str]:
    """What looks like an order to a model and is none."""
    return _of(language)["harmless"] + _of(language)["carrier"]


def attacks(*, half: int | None = None) -> Iterator[Attack]:
    """Every attack of our own; with `half` 0 or 1 those made of every other thing that is wanted."""
    for language in LANGUAGES:
        for family in told_families(language):
            yield from (Attack(family, language, text) for text in _of(language)[family])
        if "goal" not in _of(language):
            continue
        goals = [goal for at, goal in enumerate(_of(language)["goal"]) if half is None or at % 2 == half]
        yield from _full(language, goals)
        for family, parts in (
            ("addressed", ("address",)),
            ("direct", ("override",)),
            ("secret", ("secrecy",)),
            ("authority", ("authority",)),
            ("condition", ("condition",)),
        ):
            pairs = list(product(_of(language)[parts[0]], goals))
            Random(f"{family}/{language}").shuffle(pairs)
            for lead, goal in pairs[:_MADE]:
                yield Attack(family, language, _joined(family, lead, goal, language))


def _full(language: str, goals: list[str]) -> Iterator[Attack]:
    """Texts with several parts: addressed, earlier guidance put aside, something wanted, and that in secret."""
    draw = Random(f"full/{language}")
    gap = "" if language in ("zh", "ja") else " "
    parts = _of(language)
    for _ in range(_MADE):
        wanted = _joined("direct", draw.choice(parts["override"]), draw.choice(goals), language)
        lead, tail = draw.choice(parts["address"]), draw.choice(parts["secrecy"] + parts["authority"])
        forms = (f"{lead}{gap}{wanted}", f"{wanted}{gap}{tail}", f"{lead}{gap}{wanted}{gap}{tail}")
        yield Attack("full", language, draw.choice(forms))


def _sentence(text: str, language: str) -> str:
    end = "。" if language in ("zh", "ja") else "."
    return text[:1].upper() + text[1:] + end


def _joined(family: str, lead: str, goal: str, language: str) -> str:
    gap = "" if language in ("zh", "ja") else " "
    if family == "secret":
        return f"{_sentence(goal, language)}{gap}{lead}"
    is_open = lead[-1] in ",:，：、"
    return f"{lead}{gap}{goal + ('。' if not gap else '.') if is_open else _sentence(goal, language)}"


def held_back() -> Iterator[Attack]:
    """Texts by another hand, each with its family and its language."""
    family = language = ""
    for line in _HELD_BACK.read_text("utf-8").splitlines():
        heading = re.fullmatch(r"\[([^|]+) \| (\w\w)\]", line)
        if heading is not None:
            family, language = heading.groups()
        elif line and not line.startswith("#"):
            yield Attack(family, language, line.replace("\\n", "\n"))
