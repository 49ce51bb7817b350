"""Which messages of a piece are new, laid beside what the session holds: each is written once, though every call of a
model repeats all that was said before it.

Pure. Messages are compared by who said what, without secrets (which the ledger took out at its door) and without the
white space around them (which some emitters add); results by the id of their call, since a tool's result is written
differently by the tool's own span and by the next call of the model. What stands in both, in the same order, is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.canonical import digest_of
from muniment.core.matching import common_stretches, erased_places
from muniment.store.ledger.secrets import redact_value

__all__ = ["KnownSession", "KnownTurn", "Marks"]

_WINDOW = 2_000
"""How many turns a piece is laid beside at most, where its messages are such as were said again and again."""


class KnownTurn(NamedTuple):
    """A turn of the session as it is compared."""

    mark: str
    """Empty where it was forgotten."""
    role: str
    ts: str
    agent: str


class Marks:
    """Marks of messages. The same message is marked again with every piece that repeats it: so each is kept."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, tuple[str, ...]], str] = {}

    def of(self, role: str, content: str, call_id: str, call_ids: Sequence[str], *, is_recorded: bool = False) -> str:
        """What is recorded has lost its secrets already."""
        if role == "tool" and call_id:
            return digest_of(["result", call_id])
        text = content.strip()
        key = (role, text, tuple(call_ids))
        if key not in self._known:
            said = text if is_recorded else redact_value(text, Counter())
            self._known[key] = digest_of([role, said, *call_ids])
        return self._known[key]

    def of_event(self, event: Mapping[str, Any]) -> str:
        """The mark of what `observe_many` would be given."""
        calls = (event.get("metadata") or {}).get("tool_calls") or ()
        tool = event.get("tool") or {}
        return self.of(event["role"], event["content"], tool.get("call_id") or "", [call["id"] for call in calls])


class KnownSession:
    """The turns of a session, those of the store and those that are about to be written."""

    def __init__(self, turns: Iterable[KnownTurn] = ()) -> None:
        self.turns: list[KnownTurn] = []
        self._places: dict[str, list[int]] = {}
        self._has_forgotten = False
        self.is_cut = False
        """Did more stand before these turns, which was not read?"""
        self.add(turns)

    def add(self, turns: Iterable[KnownTurn]) -> None:
        for turn in turns:
            if turn.mark:
                self._places.setdefault(turn.mark, [len(self.turns)])[1:] = [len(self.turns)]  # first and last
            else:
                self._has_forgotten = True
            self.turns.append(turn)

    def __contains__(self, mark: str) -> bool:
        return mark in self._places

    def new_places(
        self, marks: Sequence[str], roles: Sequence[str], ts: str, agent: str, *, is_answered: bool
    ) -> list[int]:
        """The places of a piece's messages that are new. `roles` say whose each is; the piece began at `ts`. One that
        is not answered in itself may be a part of a piece, of which the rest comes later.
        """
        start, end = self._window(marks)
        found = {
            place + step: start + at + step
            for at, place, size in common_stretches(self._held(start, end), marks)
            for step in range(size)
        }
        is_one_turn = roles[:1] == ["user"] and "user" not in roles[1:]
        if is_answered and is_one_turn and 0 in found and self._went_on(found, ts, agent):
            return list(range(len(marks)))  # that turn was over: the same words, said again
        known = found.keys() | self._erased(found, roles, start, end)
        if self.is_cut and found:  # what a piece repeats from before the first turn that was read
            known |= set(range(min(found)))
        return [place for place in range(len(marks)) if place not in known]

    def _window(self, marks: Sequence[str]) -> tuple[int, int]:
        """Between which turns a piece is looked for."""
        most = _WINDOW + len(marks)
        if self._has_forgotten:
            return max(0, len(self.turns) - most), len(self.turns)
        places = [self._places[mark] for mark in marks if mark in self._places]
        if not places:
            return 0, 0
        end = max(each[-1] for each in places) + 1
        return max(min(each[0] for each in places), end - most), end

    def _held(self, start: int, end: int) -> list[str]:
        return [self.turns[number].mark or f"forgotten {number}" for number in range(start, end)]

    def _erased(self, found: Mapping[int, int], roles: Sequence[str], start: int, end: int) -> set[int]:
        """Messages that stand where something was forgotten."""
        if not self._has_forgotten:
            return set()
        gone = {number: self.turns[number].role for number in range(start, end) if not self.turns[number].mark}
        return erased_places(found, roles, gone, (start, end))

    def _went_on(self, found: Mapping[int, int], ts: str, agent: str) -> bool:
        """Had the talk gone on behind the question before the piece began, with what the piece does not hold?"""
        matched = set(found.values())
        for number in range(found[0] + 1, min(len(self.turns), found[0] + _WINDOW)):
            turn = self.turns[number]
            if turn.agent == agent and turn.ts < ts and number not in matched:
                return True
        return False
