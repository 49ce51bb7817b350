"""What a dump says was forgotten, held against itself: emptied entries and items, receipts, and the marks of builds.

An entry or item without its content names a receipt; a whole dump brings that receipt, and it lists what it emptied and
nothing that still stands. An item that was rewritten, and not listed, lost something that it was made from. A dump of a
part of a store has no receipts. The number that a build gave to evidence is the one that the table of marks has.
Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from muniment.core.canonical import parse_json
from muniment.core.ports.schema import EntryRow, ItemRow, LinkRow, MarkRow
from muniment.errors import ChainBroken, InvalidInput

__all__ = ["DumpedForgets"]

_ALTERED = "the dump was altered; of a store that took in a part of another, export user by user"
T = TypeVar("T", list[Any], dict[str, Any])
_Place = tuple[str, str, int]


@dataclass(slots=True)
class _Touched:
    """An item of which a version was emptied: by which receipts, in which line, and what it was made from."""

    item: ItemRow
    line: int
    receipts: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)


@dataclass(slots=True)
class DumpedForgets:
    """Entries first, then items with their links, then marks, as they stand in a dump."""

    entries: dict[str, dict[str, int]] = field(default_factory=dict)
    """By receipt, the entries that say they were forgotten by it, and their lines."""
    receipts: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    """By receipt that the dump brings, the line of its last version, which lists all: kinds by their ids."""
    touched: dict[str, _Touched] = field(default_factory=dict)
    given: dict[_Place, set[str]] = field(default_factory=dict)
    """What the builds of a session gave each number to."""
    marked: dict[_Place, int] = field(default_factory=dict)
    """The lines of those of these numbers that the table of marks has."""

    def see_entry(self, row: EntryRow, line: int) -> None:
        if row.receipt_id is not None:
            self.entries.setdefault(row.receipt_id, {})[row.id] = line

    def see_item(self, row: ItemRow, line: int) -> None:
        if row.receipt_id is not None:
            self.touched.setdefault(row.id, _Touched(row, line)).receipts.add(row.receipt_id)
        elif row.body is None or row.kind not in ("receipt", "build"):
            return
        elif row.kind == "receipt":
            erased = [gone for gone in _listed(row, "erased", list) if isinstance(gone, dict)]
            self.receipts[row.id] = line, {str(gone.get("id")): str(gone.get("kind")) for gone in erased}
        elif row.user_id is not None and row.session_id is not None:
            for number, evidence_id in _listed(row, "marks", dict).items():
                if str(number).isdecimal() and isinstance(evidence_id, str):
                    self.given.setdefault((row.user_id, row.session_id, int(number)), set()).add(evidence_id)

    def see_link(self, row: LinkRow) -> None:
        if row.item_id in self.touched:
            self.touched[row.item_id].sources.add(row.source_id)

    def see_mark(self, row: MarkRow, line: int) -> None:
        place = (row.user_id, row.session_id, row.number)
        given = self.given.get(place)
        if given is None:
            return
        self.marked[place] = line
        if row.evidence_id not in given:
            raise _refused(line, f"the mark {row.number} was given to {min(given)!r:.80}", row.evidence_id)

    def end(self, scope: Mapping[str, str]) -> None:
        self._check_entries(scope)
        if not scope:
            self._check_receipts()
            self._check_items()
        missing = sorted(self.given.keys() - self.marked.keys())
        if missing:
            user_id, session_id, number = missing[0]
            raise InvalidInput(
                f"the mark {number} of the session {session_id!r:.80}, which a build gave, is missing",
                path="$",
                hint=_ALTERED,
                details={"user_id": user_id, "session_id": session_id},
            )

    def _check_entries(self, scope: Mapping[str, str]) -> None:
        """An entry without its content names the receipt that lists it."""
        for receipt_id, entries in self.entries.items():
            if receipt_id not in self.receipts and scope:
                continue
            unlisted = sorted(entries.keys() - self._of(receipt_id).keys())
            if unlisted:
                why = "does not list it" if receipt_id in self.receipts else "is not in the dump"
                raise ChainBroken(
                    f"line {entries[unlisted[0]]}: the entry {unlisted[0]!r} was emptied, and its receipt"
                    f" {receipt_id!r:.80} {why}",
                    path="$.row.receipt_id",
                    hint=_ALTERED,
                    details={"id": unlisted[0], "receipt_id": receipt_id},
                )

    def _check_receipts(self) -> None:
        """What a receipt lists is gone: an entry that it names was emptied, by it or by another."""
        emptied = {id_ for entries in self.entries.values() for id_ in entries}
        for receipt_id, (line, listed) in self.receipts.items():
            standing = sorted(id_ for id_, kind in listed.items() if kind == "event" and id_ not in emptied)
            if standing:
                raise _refused(line, f"the receipt lists {standing[0]!r:.80}, which was not forgotten", receipt_id)

    def _check_items(self) -> None:
        """An item that was emptied is listed by its receipt, or lost something that it was made from."""
        emptied = {id_ for entries in self.entries.values() for id_ in entries} | self.touched.keys()
        for id_, touched in self.touched.items():
            unlisted = [each for each in sorted(touched.receipts) if id_ not in self._of(each)]
            if unlisted and emptied.isdisjoint(touched.sources):
                why = f"it names the receipt {unlisted[0]!r:.80}, which does not list it, and its sources still stand"
                raise _refused(touched.line, f"the {touched.item.kind} was not forgotten: {why}", id_)

    def _of(self, receipt_id: str) -> dict[str, str]:
        return self.receipts[receipt_id][1] if receipt_id in self.receipts else {}


def _listed(row: ItemRow, name: str, kind: type[T]) -> T:
    """What a body has under this name, if it is of this type; else nothing: its own check tells of it."""
    body = parse_json(row.body or "{}")
    found = body.get(name) if isinstance(body, dict) else None
    return found if isinstance(found, kind) else kind()


def _refused(line: int, why: str, id_: str) -> InvalidInput:
    return InvalidInput(f"line {line}: {why}", path="$.row", hint=_ALTERED, details={"line": line, "id": id_})
