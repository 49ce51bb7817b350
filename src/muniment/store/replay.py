"""Projections replayed over the entries of a ledger, in bounded memory.

One replay serves several uses: verify compares it with what is stored, rebuild writes it, and an import checks the
items of a dump against it. Entries may be added in any order, such as that of an index. They are sorted in a temporary
database without a name, which spills to disk and disappears with the replay.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Callable, Iterator, Set
from typing import NoReturn
from weakref import finalize

from muniment.core.ports.schema import EntryRow
from muniment.errors import StoreDamaged
from muniment.store.derivation import Project
from muniment.store.engines.temporary import temporary_database
from muniment.store.items import WRITTEN, Change, Item, item_of
from muniment.store.ledger import LedgerEntry, entry_of_row

__all__ = ["Replay"]

HELD_MAX = 256
"""Newest versions of items cached for projections that look them up."""
_TABLES = """
CREATE TABLE entries (place BLOB, row BLOB);
CREATE TABLE items (id BLOB, version INTEGER, row BLOB, UNIQUE (id, version));
CREATE TABLE sources (id BLOB, source BLOB, is_turn INTEGER, PRIMARY KEY (id, source)) WITHOUT ROWID;
CREATE TABLE passed (id BLOB PRIMARY KEY) WITHOUT ROWID;
"""


class _Asked(Exception):
    """An item looked up by a projection."""


class Replay:
    """A replay of a tenant's entries: add them, `run`, then read the versions and sources of items."""

    def __init__(self, tenant_id: str, listeners: Callable[[LedgerEntry], tuple[Project, ...]]) -> None:
        self._tenant_id = tenant_id
        self._listeners = listeners
        self._newest: OrderedDict[str, Item] = OrderedDict()
        self._held = temporary_database(_TABLES)
        finalize(self, self._held.close)
        self.items = 0
        """Number of items derived."""
        self.versions = 0
        """Number of versions derived."""

    def add(self, row: EntryRow) -> None:
        """Add an entry that may change an item, in any order; raises `StoreDamaged` if it was altered."""
        entry = entry_of_row(self._tenant_id, row)
        if self._may_change(entry):
            place = "\0".join((row.recorded_at, row.user_id, row.session_id, f"{row.seq:019}"))
            self._held.execute("INSERT INTO entries VALUES (?, ?)", (_text(place), marshal.dumps(tuple(row))))

    def run(self, on_damage: Callable[[str, StoreDamaged], object] | None = None) -> None:
        """Project the entries in the order in which they were recorded. `on_damage` gets those that fail, by id."""
        for (data,) in self._held.execute("SELECT row FROM entries ORDER BY place"):
            entry = entry_of_row(self._tenant_id, EntryRow(*marshal.loads(data)))
            try:
                for project in self._listeners(entry):
                    for change in project(entry, self.newest):
                        self._add(change)
            except StoreDamaged as error:
                if on_damage is None:
                    raise
                on_damage(entry.id, error)

    def _may_change(self, entry: LedgerEntry) -> bool:
        """Return whether an entry may give a version. Most never do, and are not kept."""

        def ask(_item_id: str) -> NoReturn:
            raise _Asked

        try:
            return any(project(entry, ask) for project in self._listeners(entry))
        except _Asked:
            return True

    def newest(self, item_id: str) -> Item | None:
        """Return the last version of an item so far."""
        found = self._newest.get(item_id)
        return self._one("id = ? ORDER BY version DESC LIMIT 1", item_id) if found is None else found

    def _add(self, change: Change) -> None:
        sources = [(_text(change.id), _text(source), 0) for source in change.sources]
        sources += [(_text(change.id), _text(turn), 1) for turn in change.turns]
        self._held.executemany("INSERT OR IGNORE INTO sources VALUES (?, ?, ?)", sources)
        if change.is_mention:
            return
        before = self.newest(change.id)
        item = item_of(change, 1 if before is None else before.version + 1)
        self._held.execute(
            "INSERT INTO items VALUES (?, ?, ?)", (_text(item.id), item.version, marshal.dumps(tuple(item)))
        )
        self.versions += 1
        self.items += item.version == 1
        self._newest[item.id] = item
        self._newest.move_to_end(item.id)
        if len(self._newest) > HELD_MAX:
            self._newest.popitem(last=False)

    # -- results

    def fault(self, stored: Item, columns: tuple[str, ...] = WRITTEN) -> str | None:
        """Describe how a stored version differs from what the ledger gives; None if it does not."""
        made = self._one("id = ? AND version = ?", stored.id, stored.version)
        if made is None:
            return "no entry of the ledger says so"
        named = [name for name in columns if getattr(stored, name) != getattr(made, name)]
        return f"{', '.join(named)} not as the ledger gives it" if named else None

    def source_fault(self, item_id: str, stored: Set[str]) -> str | None:
        """Describe how the stored sources of an item differ from what the ledger gives; None if they do not."""
        sources = set(self.sources(item_id))
        missing, added = sorted(sources - stored), sorted(stored - sources)
        if missing:
            return f"its link to {missing[0]} is missing"
        return f"its link to {added[0]!r:.80} is none that the ledger gives" if added else None

    def count(self, item_id: str) -> int:
        """Count the versions of an item."""
        ((count,),) = self._held.execute("SELECT count(*) FROM items WHERE id = ?", (_text(item_id),))
        return int(count)

    def made(self, item_id: str) -> Iterator[Item]:
        """Return the versions of an item, in order."""
        found = self._held.execute("SELECT row FROM items WHERE id = ? ORDER BY version", (_text(item_id),))
        return (Item(*marshal.loads(data)) for (data,) in found)

    def sources(self, item_id: str, *, turns: bool | None = None) -> list[str]:
        """Return an item's sources, or only those that are, or are not, turns stored in bulk."""
        found = self._held.execute(
            "SELECT source FROM sources WHERE id = ? AND (? IS NULL OR is_turn = ?)", (_text(item_id), turns, turns)
        )
        return [source.decode("utf-8", "surrogatepass") for (source,) in found]

    def skip(self, item_id: str) -> None:
        """Exclude an item from `left`: it was compared, or may not be."""
        self._held.execute("INSERT OR IGNORE INTO passed VALUES (?)", (_text(item_id),))

    def is_skipped(self, item_id: str) -> bool:
        return bool(self._held.execute("SELECT 1 FROM passed WHERE id = ?", (_text(item_id),)).fetchone())

    def left(self) -> Iterator[Item]:
        """Return the first versions of the items that were not skipped."""
        found = self._held.execute(
            "SELECT row FROM items WHERE version = 1 AND id NOT IN (SELECT id FROM passed) ORDER BY id"
        )
        return (Item(*marshal.loads(data)) for (data,) in found)

    def _one(self, where: str, *values: str | int) -> Item | None:
        stored = [_text(value) if isinstance(value, str) else value for value in values]
        found = self._held.execute(f"SELECT row FROM items WHERE {where}", stored).fetchone()
        return None if found is None else Item(*marshal.loads(found[0]))


def _text(value: str) -> bytes:
    """Encode a text as bytes that sort by code point; a damaged one may hold half of a surrogate pair."""
    return value.encode("utf-8", "surrogatepass")
