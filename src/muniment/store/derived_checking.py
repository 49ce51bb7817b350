"""What was derived, proven and not believed: projections run again over the ledger, and the stored items beside them.

A `Replay` goes through the entries once, in the order in which they were written, and holds the newest versions alone;
of the older ones it asks whoever stored them. Writes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import first, stream
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.errors import StoreDamaged
from muniment.store.context import Context
from muniment.store.derivation import Derivation, Project
from muniment.store.items import (
    WRITTEN,
    Change,
    Item,
    get_version,
    item_of,
    lineage_fault,
    links_of,
    row_digest,
    stream_items,
)
from muniment.store.ledger.records import LedgerEntry
from muniment.store.ledger.rows import entry_of_row
from muniment.store.proving.proofs import proof_fault
from muniment.store.reports import Differing

__all__ = ["DerivedCheck", "Replay", "check_derived", "difference"]

HELD_MAX = 4096
"""Newest versions that are held while a ledger is gone through; those before them are read again."""
_ORDER = ("recorded_at", "user_id", "session_id", "seq")

Given = Callable[[Item, tuple[str, ...]], None]


class Replay:
    """Projections run again, entry by entry."""

    def __init__(
        self,
        listeners: Callable[[LedgerEntry], tuple[Project, ...]],
        given: Given,
        stored: Callable[[str, int], Item | None] | None = None,
    ) -> None:
        """`given` is told of every version that the ledger gives, with its sources. `stored` has those that are no
        longer held; without it all newest ones are."""
        self._listeners = listeners
        self._given = given
        self._stored = stored
        self._newest: OrderedDict[str, Item] = OrderedDict()
        self.versions: dict[str, int] = {}
        """How many versions of an item there were."""

    def see(self, entry: LedgerEntry) -> None:
        for project in self._listeners(entry):
            for change in project(entry, self.lookup):
                self._add(change)

    def lookup(self, item_id: str) -> Item | None:
        found = self._newest.get(item_id)
        if found is None and self._stored is not None and item_id in self.versions:
            found = self._stored(item_id, self.versions[item_id])
        return found

    def _add(self, change: Change) -> None:
        number = self.versions.get(change.id, 0) + 1
        self.versions[change.id] = number
        item = item_of(change, number)
        self._newest[change.id] = item
        self._newest.move_to_end(change.id)
        if self._stored is not None and len(self._newest) > HELD_MAX:
            self._newest.popitem(last=False)
        self._given(item, (*change.sources, *change.turns))


def difference(stored: Item, made: Item) -> str | None:
    """The columns in which a stored version is not what the ledger gives; None where it is."""
    if stored.checked == 0:  # of a store of before, or of a dump, which brings no digest
        made = made._replace(digest=None, checked=0)
        made = made if stored.digest is None else made._replace(digest=row_digest(made))
    named = [name for name, one, other in zip(WRITTEN, stored, made, strict=False) if one != other]
    return f"{', '.join(named)} not as the ledger gives it" if named else None


class DerivedCheck(NamedTuple):
    """What came of it."""

    items: int
    """Versions that were made again."""
    lacking: int
    """Items that the ledger gives and the store does not have: of kinds that an earlier version did not derive."""
    differing: tuple[Differing, ...]


class _Held:
    """The stored items of one tenant beside what the ledger gives."""

    def __init__(self, ctx: Context, reader: Reader, tenant_id: str) -> None:
        self.ctx, self.reader, self.tenant_id = ctx, reader, tenant_id
        self.checked = 0
        self.lacking: set[str] = set()
        self.touched: set[str] = set()
        """Items that a forget has touched: their source is gone on purpose."""
        self.differing: dict[str, Differing] = {}
        self.since: dict[str, str | None] = {}
        """By kind, when its oldest stored item was made; None if there is none."""

    def note(self, item: Item, reason: str) -> None:
        made = Differing(tenant_id=self.tenant_id, kind=item.kind, id=item.id, version=item.version, reason=reason)
        self.differing.setdefault(item.id, made)

    def see(self, made: Item, sources: tuple[str, ...]) -> None:
        """Hold a version that the ledger gives against the one that is stored, and its sources against the links."""
        self.checked += 1
        stored = get_version(self.reader, made.id, made.version)
        if stored is None:
            if made.version == 1 and (links_of(self.reader, made.id) or self._derives(made)):
                self.note(made, "it was made, and is missing")
            elif made.version == 1:
                self.lacking.add(made.id)
            elif made.id not in self.touched and made.id not in self.lacking:
                self.note(made, "a version that the ledger gives is missing")
            return
        if (stored.body is None) != (stored.receipt_id is not None):
            self.note(made, "it holds content and names a receipt, or neither")
            return
        if stored.receipt_id is not None:
            self.touched.add(made.id)
        if made.id in self.touched:
            return
        fault = difference(stored, made)
        if fault is None:
            linked = {link.source_id for link in links_of(self.reader, made.id)}
            missing = sorted(set(sources) - linked)
            fault = f"its link to {missing[0]} is missing" if missing else None
        if fault is not None:
            self.note(made, fault)

    def _derives(self, made: Item) -> bool:
        """Whether items of this kind were made by then: an earlier version may not have derived it at all."""
        if made.kind not in self.since:
            oldest = first(self.reader, ITEMS, (("kind", "=", made.kind),), into=_Made, order=("kind", "created_at"))
            self.since[made.kind] = None if oldest is None else oldest.created_at
        since = self.since[made.kind]
        return since is not None and since <= made.created_at


class _Made(NamedTuple):
    kind: str
    created_at: str


def check_derived(ctx: Context, reader: Reader, tenant_id: str) -> DerivedCheck:
    """Make every projection of a tenant again and hold what is stored against it; the rest by what it says itself."""
    held = _Held(ctx, reader, tenant_id)
    replay = Replay(ctx.listeners, held.see, lambda id_, version: get_version(reader, id_, version))
    for row in stream(reader, ENTRIES, (("receipt_id", "=", None),), order=_ORDER):
        try:
            replay.see(entry_of_row(tenant_id, row))
        except StoreDamaged as error:  # of an item that the projection looked up
            made = Differing(
                tenant_id=tenant_id, kind="event", id=row.id, version=0, reason=f"derived of it: {error.message}"
            )
            held.differing.setdefault(row.id, made)
    for item in _unsaid(ctx, reader, replay, held.touched):
        held.note(item, "no entry of the ledger says so")
    for item in stream_items(reader, (("receipt_id", ">=", ""),)):
        if not item.is_sound:
            held.note(item, "what a forget left of it was altered")
        elif (fault := lineage_fault(reader, item)) is not None:
            held.note(item, fault)
    for derivation in ctx.derivations.values():
        if derivation.fault is not None:
            _check_kind(held, derivation)
    return DerivedCheck(held.checked, len(held.lacking), tuple(held.differing.values()))


def _unsaid(ctx: Context, reader: Reader, replay: Replay, touched: set[str]) -> Iterator[Item]:
    """Live versions of projections that no entry gives."""
    kinds = tuple(sorted(kind for kind, derivation in ctx.derivations.items() if derivation.is_projection))
    for row in stream(reader, ITEMS, (("kind", "in", kinds),), into=_Version, order=("id", "version")):
        if row.receipt_id is not None:
            touched.add(row.id)
        elif row.id not in touched and row.version > replay.versions.get(row.id, 0):
            item = get_version(reader, row.id, row.version)
            if item is not None:
                yield item


class _Version(NamedTuple):
    id: str
    version: int
    receipt_id: str | None


def _check_kind(held: _Held, derivation: Derivation) -> None:
    """Items that no entry gives, a build or a receipt: held against what they say of themselves."""
    assert derivation.fault is not None
    where = (("kind", "=", derivation.kind), ("receipt_id", "=", None))
    for item in stream_items(held.reader, where):  # type: ignore[arg-type]
        held.checked += 1
        sources = frozenset(link.source_id for link in links_of(held.reader, item.id))
        fault = derivation.fault(item, sources) or proof_fault(held.ctx, held.reader, item)
        if fault is not None:
            held.note(item, fault)
