"""Of whom a place in a sentence speaks: the speaker, one of theirs by kin or name, or somebody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from muniment.memory.extraction.grammar import USER, owner_of
from muniment.memory.extraction.languages.tables import Table
from muniment.memory.extraction.languages.values import key_part

__all__ = ["Mention", "mentions_in", "owner_at", "owner_of_name"]

_NAMED_BY_KIN = frozenset({"mother", "father", "grandmother", "grandfather"})
"""People of whom there is one: what is told of them is kept by what they are, whatever their name."""


class Mention(NamedTuple):
    """Somebody spoken of, and where."""

    owner: str | None
    """The first parts of keys; None is somebody of whom nothing is kept."""
    start: int
    end: int
    name: str | None = None
    kin: str | None = None


def owner_of_name(name: str, kin: str) -> str:
    """Under whom what is told of somebody stands."""
    return owner_of(kin if kin in _NAMED_BY_KIN else name)


def mentions_in(table: Table, text: str, names: Mapping[str, str]) -> list[Mention]:
    """Who is spoken of in a sentence, in order. `names` are known ones and what is kept of them."""
    found: list[Mention] = []
    for match in table.form("person").finditer(text):
        groups = match.groupdict()
        group = "name" if "name" in groups else "called"
        name, kin = groups.get(group), groups.get("kin")
        if kin is None:
            continue
        kin = key_part(table, "kin", kin)
        if name is not None and (table.form("no name").search(name) or name.casefold() in table.pairs["kin"]):
            name = None
        owner = owner_of(kin) if name is None else owner_of_name(name, kin)
        end = match.end() if name is not None or groups.get(group) is None else match.start(group)
        found.append(Mention(owner, match.start(), end, name, kin))
    for name, owner in names.items():
        at = text.casefold().find(name)
        if at >= 0 and not any(each.start <= at < each.end for each in found):
            found.append(Mention(owner, at, at + len(name)))
    taken = [(each.start, each.end) for each in found]
    for section, owner_of_section in (("self", USER), ("others", None)):
        found.extend(
            Mention(owner_of_section, match.start(), match.end())
            for match in table.form(section).finditer(text)
            if not any(start < match.end() and match.start() < end for start, end in taken)
        )
    return sorted(found, key=lambda each: (each.start, each.end))


def owner_at(mentions: Sequence[Mention], start: int, default: str | None) -> str | None:
    """Of whom the words from `start` on speak: whoever was mentioned last."""
    before = [each for each in mentions if each.end <= start or (each.owner is not None and each.start <= start)]
    return before[-1].owner if before else default
