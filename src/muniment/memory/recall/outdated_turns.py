"""What of some turns is outdated by others of them, as records that a search answers and a packet tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from muniment.core.instants import parse_rfc3339
from muniment.core.text.sentences import ByteOffsets
from muniment.core.text.stated.statements import Statement
from muniment.memory.recall.records import SupersededStatement
from muniment.memory.recall.supersession import Outdated, Told, covers_all, find_outdated, order_of, outdated_in_pair

__all__ = ["Stating", "superseded_among"]

_WITH_KEY = set(SupersededStatement.model_fields)
_WITHOUT_KEY = _WITH_KEY - {"key"}


class Stating(Protocol):
    """A turn, or a sentence of one, with what it states."""

    @property
    def id(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def speaker(self) -> str | None: ...
    @property
    def ts(self) -> str: ...
    @property
    def quotable(self) -> str: ...
    @property
    def statements(self) -> tuple[Statement, ...]: ...


def superseded_among(
    turns: Mapping[str, Stating], later: Mapping[str, str]
) -> dict[str, tuple[SupersededStatement, ...]]:
    """The statements of these turns that are outdated, by the names they go by here.

    `later` names turns that the ranking found to be said otherwise by a later one: what of them that ends is told by
    their words where their statements do not tell it.
    """
    told = [_told(name, turn) for name, turn in turns.items() if turn.statements]
    found = find_outdated(told) if len(told) > 1 else {}
    for name, by in later.items():
        older, newer = turns.get(name), turns.get(by)
        if older is None or newer is None:
            continue
        known = {(each.start, each.end) for each in found.get(name, ())}
        pair = outdated_in_pair(older.quotable, newer.quotable, by, older.statements, newer.statements)
        found.setdefault(name, []).extend(each for each in pair if (each.start, each.end) not in known)
    return {name: _records(turns, name, outdated) for name, outdated in found.items() if outdated}


def _told(name: str, turn: Stating) -> Told:
    return Told(name, turn.speaker or turn.role, turn.session_id, _moment(turn.ts), turn.seq, turn.statements)


@lru_cache(maxsize=4096)
def _moment(ts: str) -> tuple[int, int, str]:
    """For sorting: what names no instant comes first."""
    moment = parse_rfc3339(ts)
    return (0, 0, "") if moment is None else (1, moment.seconds, moment.fraction)


def _records(turns: Mapping[str, Stating], name: str, outdated: Iterable[Outdated]) -> tuple[SupersededStatement, ...]:
    text = turns[name].quotable
    found = sorted(outdated, key=order_of)
    is_whole = covers_all(text, [(each.start, each.end) for each in found])
    places = ByteOffsets(text)
    records = []
    for each in found:
        there = ByteOffsets(turns[each.by].quotable)
        fields: dict[str, Any] = {
            "key": each.label,
            "quote": text[each.start : each.end],
            "start": places[each.start],
            "end": places[each.end],
            "by": turns[each.by].id,
            "by_start": there[each.by_start],
            "by_end": there[each.by_end],
            "is_whole": is_whole,
        }
        records.append(SupersededStatement.unchecked(fields, _WITH_KEY if each.label else _WITHOUT_KEY))
    return tuple(records)
