"""What the items of a dump are held against: the projections run again over the entries that the dump itself brings.

Items and links are derived, so a dump that is right by its digest may still tell what its ledger does not: a fact under
another user's name, a status, a link that leads elsewhere. Each is refused by name; links that are merely missing are
made again. What no entry gives, builds and receipts, is held against what it says of itself. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muniment.core.ports.schema import EntryRow, ItemRow, LinkRow
from muniment.errors import InvalidInput
from muniment.store.context import Listeners
from muniment.store.derivation import Derivation, ItemCheck
from muniment.store.derived_checking import Replay, difference
from muniment.store.items import Item
from muniment.store.ledger.records import LedgerEntry
from muniment.store.ledger.rows import entry_of_row

__all__ = ["DumpReplay"]

_ALTERED = "the dump was altered, or is of another version; export it again"
_OWNERS = ("user_id", "agent_id", "session_id")


@dataclass(slots=True)
class _Current:
    """The item that is being read: its versions with their lines, and its links."""

    versions: list[tuple[int, Item]] = field(default_factory=list)
    links: dict[str, int] = field(default_factory=dict)


class DumpReplay:
    """Entries first, then items with their links, as they stand in a dump."""

    def __init__(self, kinds: Mapping[str, Derivation], checks: Sequence[ItemCheck]) -> None:
        self._kinds = kinds
        self._checks = checks
        self._listeners = Listeners(kinds).of
        self._tenant_id = ""
        self._is_whole = True
        """A dump of one session may lack what its items were made from elsewhere."""
        self._heard: list[LedgerEntry] = []
        self._made: dict[str, list[Item]] | None = None
        self._sources: dict[str, set[str]] = {}
        self._current = _Current()
        self.missing: list[LinkRow] = []
        """Links that the ledger gives and the dump does not bring."""

    def begin(self, tenant_id: str, scope: Mapping[str, str]) -> None:
        self._tenant_id, self._is_whole = tenant_id, "session_id" not in scope

    def see_entry(self, row: EntryRow) -> None:
        """An entry whose chain holds. Those that nothing is derived from are not held."""
        if row.body is not None:
            entry = entry_of_row(self._tenant_id, row)
            if self._listeners(entry):
                self._heard.append(entry)

    def see(self, row: ItemRow, number: int) -> None:
        for check in self._checks:
            check.see(row, number)
        versions = self._current.versions
        if versions and versions[0][1].id != row.id:
            self._judge()
        self._current.versions.append((number, Item(*row)))

    def see_link(self, row: LinkRow, number: int) -> None:
        self._current.links[row.source_id] = number

    def end(self) -> None:
        self._judge()
        for check in self._checks:
            check.end()

    def _replayed(self) -> dict[str, list[Item]]:
        if self._made is None:
            made: dict[str, list[Item]] = {}

            def given(item: Item, sources: tuple[str, ...]) -> None:
                made.setdefault(item.id, []).append(item)
                self._sources.setdefault(item.id, set()).update(sources)

            replay = Replay(self._listeners, given)
            order = lambda entry: (entry.recorded_at, entry.scope.user_id, entry.scope.session_id, entry.seq)  # noqa: E731
            for entry in sorted(self._heard, key=order):
                replay.see(entry)
            self._heard.clear()
            self._made = made
        return self._made

    def _judge(self) -> None:
        """Hold the item that was read to its end against what the ledger gives."""
        current, self._current = self._current, _Current()
        if not current.versions:
            return
        number, first = current.versions[0]
        derivation = self._kinds.get(first.kind)
        if derivation is None or any(item.receipt_id is not None for _, item in current.versions):
            return  # unknown here, or touched by a forget: its source is gone on purpose
        if derivation.is_projection:
            self._judge_projection(current)
            return
        for number, item in current.versions:
            fault = self._moved(item)
            if fault is None and derivation.fault is not None:
                fault = derivation.fault(item, frozenset(current.links))
            if fault is not None:
                raise _refused(number, item, fault)

    def _moved(self, item: Item) -> str | None:
        """Does what stands in a run belong to whom the run belongs to?"""
        runs = [] if item.run_id is None else self._replayed().get(item.run_id, [])
        if not runs or runs[-1].kind != "run":
            return None
        named = [name for name in _OWNERS if getattr(item, name) != getattr(runs[-1], name)]
        return f"{', '.join(named)} not as its run has it" if named else None

    def _judge_projection(self, current: _Current) -> None:
        number, first = current.versions[0]
        made = self._replayed().get(first.id)
        if made is None and not self._is_whole:
            return
        made = made or []
        for (line, item), wanted in zip(current.versions, made, strict=False):
            fault = difference(item, wanted)
            if fault is not None:
                raise _refused(line, item, fault)
        if len(current.versions) > len(made):
            line, item = current.versions[len(made)]
            raise _refused(line, item, "no entry of the ledger says so")
        if len(current.versions) < len(made) and self._is_whole:
            raise _refused(number, first, f"version {len(current.versions) + 1}, which the ledger gives, is missing")
        sources = self._sources.get(first.id, set())
        for source, line in current.links.items():
            if source not in sources and self._is_whole:
                raise _refused(line, first, f"its link to {source!r:.80} is none that the ledger gives")
        self.missing += [LinkRow(source, first.id) for source in sorted(sources - current.links.keys())]


def _refused(line: int, item: Item, why: str) -> InvalidInput:
    return InvalidInput(
        f"line {line}: the {item.kind} {item.id!r:.80} is not what its ledger gives: {why}",
        path="$.row",
        hint=_ALTERED,
        details={"line": line, "kind": item.kind, "id": item.id},
    )
