"""What entries that keep something come to: which of it stands where. Pure, so that a rebuild gives the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from muniment.core.ports.schema import LIVE, NEVER, REMOVED, SUPERSEDED, PlaceRow, PrefixRow
from muniment.memory.kept.names import path_of, prefixes_of
from muniment.store.ledger import CHECKPOINT_KEPT, VALUE_KEPT, VALUE_REMOVED, VALUES_PROLONGED, WRITES_KEPT

__all__ = ["KeptEntry", "Placed", "fold", "names_in", "place_of", "prefix_rows"]

_KEEPING = (VALUE_KEPT, CHECKPOINT_KEPT, WRITES_KEPT)


class KeptEntry(NamedTuple):
    """An entry, and what it tells."""

    entry_id: str
    user_id: str
    session_id: str
    seq: int
    told: Mapping[str, Any]


class Placed(NamedTuple):
    """What a name stands for."""

    space: str
    path: str
    name: str


def place_of(row: PlaceRow) -> Placed:
    return Placed(row.space, row.path, row.name)


def names_in(told: Mapping[str, Any]) -> Iterator[Placed]:
    """The names that an entry speaks of."""
    if told.get("event") == VALUES_PROLONGED:
        for path, name, _ in told["prolonged"]:
            yield Placed(told["space"], path, name)
    elif told.get("event") in (*_KEEPING, VALUE_REMOVED):
        path = path_of(told["path"])
        for name in told["names"]:
            yield Placed(told["space"], path, name)


def fold(entries: Iterable[KeptEntry], standing: dict[Placed, PlaceRow]) -> list[PlaceRow]:
    """The rows that are new or changed by these entries, which follow what stands; `standing` is kept up to date."""
    changed: dict[tuple[str, int], PlaceRow] = {}

    def write(row: PlaceRow) -> None:
        changed[row.entry_id, row.number] = row

    for entry in entries:
        told = entry.told
        event = told.get("event")
        if event == VALUES_PROLONGED:
            for path, name, expires in told["prolonged"]:
                held = standing.get(Placed(told["space"], path, name))
                if held is not None:
                    write(held._replace(expires=expires))
                    standing[place_of(held)] = held._replace(expires=expires)
            continue
        for number, placed in enumerate(names_in(told)):
            before = standing.pop(placed, None)
            if before is not None:
                write(before._replace(state=REMOVED if event == VALUE_REMOVED else SUPERSEDED, expires=NEVER))
            if event in _KEEPING:
                row = _row(entry, number, placed, before)
                standing[placed] = row
                write(row)
    return list(changed.values())


def _row(entry: KeptEntry, number: int, placed: Placed, before: PlaceRow | None) -> PlaceRow:
    at = entry.told["at"]
    goes_on = before is not None and before.expires > at
    return PlaceRow(
        entry_id=entry.entry_id,
        number=number,
        user_id=entry.user_id,
        session_id=entry.session_id,
        seq=entry.seq,
        space=placed.space,
        path=placed.path,
        name=placed.name,
        state=LIVE,
        made=before.made if before is not None and goes_on else entry.told.get("made", at),
        changed=at,
        expires=entry.told.get("expires", NEVER),
    )


def prefix_rows(row: PlaceRow) -> list[PrefixRow]:
    """What leads a search to a value that is live."""
    return [PrefixRow(row.space, prefix, row.changed, row.entry_id) for prefix in prefixes_of(row.path)]
