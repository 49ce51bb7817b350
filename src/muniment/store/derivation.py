"""Ports through which the rooms above declare what they derive from the ledger, filled in by `handles.derived`.

The store writes entries, forgets, exports, imports and rebuilds. Each of these affects what was derived from the
entries, none of which belongs to the store: the owner of a kind of item declares how entries become such items, what
remains of one without its sources, and what else goes with it. Packages outside the core register through the entry
point group `muniment.projections`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol

from muniment.errors import InvalidInput
from muniment.store.items import Change, Item, Rewritten

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader, Transaction
    from muniment.core.ports.schema import ItemRow
    from muniment.core.scope import Trust
    from muniment.store.context import Context
    from muniment.store.ledger import EntryKind, LedgerEntry

__all__ = [
    "PATCHES",
    "Derivation",
    "Derived",
    "ItemCheck",
    "Lookup",
    "MakingEntry",
    "Project",
    "Projections",
    "SessionFold",
    "TurnIndex",
    "Without",
    "declare",
    "load_projections",
    "of_patches",
]

Lookup = Callable[[str], Item | None]
Without = Callable[[Item, frozenset[str]], dict[str, Any] | Rewritten | None]
Project = Callable[["LedgerEntry", Lookup], list[Change]]


class MakingEntry(Protocol):
    """An entry that an item was made from."""

    @property
    def id(self) -> str: ...
    @property
    def trust(self) -> Trust: ...
    @property
    def metadata(self) -> dict[str, Any]: ...


WithoutOf = Callable[[Item, frozenset[str], Sequence[MakingEntry]], Rewritten | None]


@dataclass(frozen=True, slots=True)
class Derivation:
    """One kind of item. Undeclared kinds cannot be written."""

    kind: str
    without: Without
    """Return what remains of an item when sources of it are forgotten: a body without their content, or None."""
    listens: frozenset[EntryKind] = frozenset()
    """The kinds of entry that it may be made from."""
    events: frozenset[str] | None = None
    """The events named in these entries' metadata that it is made from; None for all."""
    project: Project | None = None
    """Turns entries into items. Pure, so that `rebuild` can replay the whole ledger."""
    without_of: WithoutOf | None = None
    """Like `without`, for a kind whose items leave repeated mentions out: it also gets the entries that were linked to
    the item, in the order of the ledger.
    """
    terms: Callable[[Item], Collection[int]] | None = None
    """Returns hashed words of the newest version of an item, by which it is found; empty for an item that may not be
    shown.
    """
    copies: bool = True
    """May copy text from its source items, so that a rewritten source counts as lost too."""
    id_of_run: Callable[[str], str] | None = None
    """For a kind that covers a whole run: returns the id of a run's item. It falls with any event of the run."""
    fault: Callable[[Item, frozenset[str]], str | None] | None = None
    """For a kind not made from entries: returns what is wrong with an item that has these sources, or None."""
    owners: Callable[[Item], tuple[str, ...]] | None = None
    """The owners of documents that were supplied for the item alone, and go with it."""
    erase_files: Callable[[Sequence[Item], ExitStack], int] | None = None
    """Removes the files that versions of an item put outside the store; returns how many."""

    @property
    def is_projection(self) -> bool:
        return self.project is not None


PATCHES: frozenset[EntryKind] = frozenset({"state_patch"})


def of_patches(
    kind: str, without: Without, project: Project, *events: str, listens: frozenset[EntryKind] = PATCHES, **more: Any
) -> Derivation:
    """Declare a kind that is made from the `state_patch` entries of these events."""
    return Derivation(kind, without, listens, frozenset(events), project, **more)


def declare(*derivations: Derivation) -> Mapping[str, Derivation]:
    """Collect derivations by kind; a kind that two packages declare is refused."""
    kinds: dict[str, Derivation] = {}
    for derivation in derivations:
        if kinds.setdefault(derivation.kind, derivation) is not derivation:
            raise InvalidInput(
                f"two installed packages declare items of the kind {derivation.kind!r}",
                hint=f"uninstall one of those that register in the entry point group {PROJECTIONS_GROUP!r}",
            )
    return kinds


@dataclass(frozen=True, slots=True)
class Projections:
    """The kinds of item that a package adds. Its entry point names a function without arguments that returns this."""

    kinds: tuple[Derivation, ...]
    check_dump: Callable[[], ItemCheck] | None = None
    """Makes a check of a dump's items, which are written without being projected."""


PROJECTIONS_GROUP = "muniment.projections"


@cache
def load_projections() -> tuple[Projections, ...]:
    """Load the projections of installed packages, ordered by the names of their entry points."""
    found = sorted(entry_points(group=PROJECTIONS_GROUP), key=lambda each: each.name)
    return tuple(each.load()() for each in found)


class TurnIndex(Protocol):
    """The port of the turn index, which follows the ledger behind a watermark for each user (`store.watermark`)."""

    def follow(
        self, ctx: Context, tenant_id: str, user_id: str, *, entries_max: int | None = None, embeds: bool = True
    ) -> int:
        """Index a user's entries beyond the watermark, at most `entries_max` of them, in transactions of its own;
        returns how many turns there were. With `embeds` their vectors are made too.
        """
        ...

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> dict[str, int]:
        """Remove forgotten turns; returns how many blocks of each table were rewritten."""
        ...

    def outdated(self, reader: Reader, users: Sequence[str] | None = None) -> int:
        """Count users of the tenant, or of these, with turns indexed by another version of the analyzer."""
        ...

    def reset(self, tx: Transaction, user_id: str) -> int:
        """Drop a user's whole index and reset the watermark; returns how many blocks were removed."""
        ...

    def rebuild(self, tx: Transaction, tenant_id: str, user_id: str) -> int:
        """Rebuild a user's whole index in this transaction; returns how many turns there are."""
        ...

    def fault(self, reader: Reader, tenant_id: str, user_id: str) -> str | None:
        """Return the first difference between a user's blocks and the entries up to the watermark."""
        ...


class SessionFold(Protocol):
    """Rows derived from the entries of a session, stretch by stretch."""

    def extend(self, tx: Transaction, user_id: str, session_id: str, last_seq: int, written: int) -> None:
        """Take in the last `written` entries of a session, up to this one, in the transaction that writes them. Only
        rows that cannot wait for the index are written here.
        """
        ...

    def rebuild(self, tx: Transaction, user_id: str) -> None:
        """Rebuild everything of a user from the ledger."""
        ...

    def fault(self, reader: Reader, user_id: str, session_id: str, last_seq: int) -> tuple[int, str] | None:
        """Return the first row of a session that differs from what its entries give: its first entry, and the fault."""
        ...


class ItemCheck(Protocol):
    """A check across the items of a dump, which are written without being projected."""

    def see(self, row: ItemRow, number: int) -> None:
        """Check the next item, with its line number."""
        ...

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Derived:
    """All that is derived from the ledger of a store."""

    kinds: Mapping[str, Derivation]
    index: TurnIndex
    sessions: SessionFold
    marks: Callable[[Reader, tuple[Condition, ...]], Iterator[tuple[str, str]]] | None = None
    """Returns the evidence of marks that differ from those of the builds that gave them, and why; of items of a scope.
    """
