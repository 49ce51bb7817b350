"""Headings and what they are called: the same section under its English and Chinese names, numbered or not."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.word_lists import WordList, forms_in

__all__ = ["Section", "is_sources", "kinds_of", "main_kind", "names_of", "section_kind"]


class Section(NamedTuple):
    """A heading and the span of its body: up to the next heading of its level or above, other headings included."""

    title: str
    level: int
    start: int
    end: int


_NAMES = WordList(__package__, "sections.txt")
_NUMBERING = re.compile(
    r"(?:第?[一二三四五六七八九十百]{1,4}(?:[、.．:：]|[章节部篇][分]?[、.．:：\s]?)|"
    r"[(（][一二三四五六七八九十\d]{1,4}[)）]"
    r"|\d{1,3}(?:\.\d{1,3}){0,4}(?:[.、．)）:：]|\s|(?=[^\W\d_a-z]))|[ivxlc]{1,6}[.、)]\s?|[a-z][.)]\s"
    r"|(?:section|part|chapter|step)\s\d{1,3}[.:：\s-]{0,3})\s*"
)
_EDGE = re.compile(r"^[\W_]+|[\W_]+$")
_JOINT = re.compile(r"\s*(?:[&/,，;；|:：(（—–]|\s-\s|\band\b|以及|[与及和、])\s*")
_ADJECTIVE = re.compile(
    r"(?:(?:key|main|major|core|primary|principal|important|detailed|overall|final|full|remaining|complete|selected|"
    r"brief|critical)\s|"
    r"主要|关键|核心|重要|详细|总体|最终|具体|本报告|报告)"
)
_CHARS_MAX = 300


@cache
def _kinds() -> dict[str, str]:
    """A plain name of a section → its kind."""
    return {name: kind for kind, names in _NAMES.pairs() for name in forms_in(names)}


@remembered(1024)
def names_of(title: str) -> tuple[str, ...]:
    """A title in plain form, then its parts: "3. **Gaps & limits**" is "gaps & limits", "gaps", "limits"."""
    plain = " ".join(title[:_CHARS_MAX].casefold().replace("*", "").replace("_", " ").replace("`", "").split())
    plain = _bare(plain)
    if plain in _kinds():
        return (plain,)
    return tuple(dict.fromkeys(name for part in (plain, *_JOINT.split(plain)) if (name := _bare(part))))


def _bare(name: str) -> str:
    name = _EDGE.sub("", name) if not name.startswith(("(", "（")) else name.strip()
    name = _NUMBERING.sub("", name, count=1) if _NUMBERING.match(name) else name
    name = _EDGE.sub("", name)
    while name not in _kinds() and (found := _ADJECTIVE.match(name)) and found.end() < len(name):
        name = name[found.end() :]
    return name


def section_kind(title: str) -> str | None:
    """What a heading is one of the names of, whole: "findings", "sources", "gaps", …"""
    return _kinds().get(names_of(title)[0]) if names_of(title) else None


def main_kind(title: str) -> str | None:
    """What a heading is a name of, whole or in its first part: "Gaps and limitations" is "gaps"."""
    return next((_kinds()[name] for name in names_of(title)[:2] if name in _kinds()), None)


def is_sources(title: str) -> bool:
    """Does the heading announce a list of sources, and nothing else?"""
    names = names_of(title)
    whole = _kinds().get(names[0]) if names else None
    return whole == "sources" or (len(names) > 1 and all(_kinds().get(name) == "sources" for name in names[1:]))


def kinds_of(title: str) -> frozenset[str]:
    """All that the heading or a part of it is a name of; a name of none stands for itself."""
    return frozenset(_kinds().get(name, name) for name in names_of(title))
