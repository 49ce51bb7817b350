"""What of some turns is outdated by others of them, as records that a search answers and a pool keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.instants import parse_rfc3339
from muniment.core.text.offsets import ByteOffsets
from muniment.memory.recall.records import SupersededStatement
from muniment.memory.recall.supersession import Outdated, Told, covers_all, find_outdated, outdated_in_pair

if TYPE_CHECKING:
    from muniment.memory.turn_reading import LiveTurn

__all__ = ["superseded_among"]

_WITH_KEY = set(SupersededStatement.model_fields)
_WITHOUT_KEY = _WITH_KEY - {"key"}


def superseded_among(
    turns: Mapping[str, LiveTurn], later: Mapping[str, str]
) -> dict[str, tuple[SupersededStatement, ...]]:
    """The statements of these turns that are outdated, by turn.

    `later` names turns that the ranking found to be said otherwise by a later one: what of them that ends is told by
    their words where their statements do not tell it.
    """
    stating = [turn for turn in turns.values() if turn.statements]
    found = find_outdated(map(_told, stating)) if len(stating) > 1 else {}
    for id_, by in later.items():
        older, newer = turns.get(id_), turns.get(by)
        if older is None or newer is None:
            continue
        known = {(each.start, each.end) for each in found.get(id_, ())}
        pair = outdated_in_pair(older.quotable, newer.quotable, by, older.statements, newer.statements)
        found.setdefault(id_, []).extend(each for each in pair if (each.start, each.end) not in known)
    return {id_: _records(turns[id_].quotable, turns, outdated) for id_, outdated in found.items() if outdated}


def _told(turn: LiveTurn) -> Told:
    return Told(turn.id, turn.speaker or turn.role, turn.session_id, parse_rfc3339(turn.ts), turn.seq, turn.statements)


def _records(text: str, turns: Mapping[str, LiveTurn], outdated: Iterable[Outdated]) -> tuple[SupersededStatement, ...]:
    found = sorted(outdated, key=lambda each: (each.start, each.end))
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
            "by": each.by,
            "by_start": there[each.by_start],
            "by_end": there[each.by_end],
            "is_whole": is_whole,
        }
        records.append(SupersededStatement.unchecked(fields, _WITH_KEY if each.label else _WITHOUT_KEY))
    return tuple(records)
