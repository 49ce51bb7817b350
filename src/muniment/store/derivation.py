"""What the rooms above derive from the ledger, as far as the store has to know: ports, filled in by `handles.derived`.

The store writes entries, forgets, exports, imports and rebuilds. Each of these reaches into what was derived from the
entries, and none of it is the store's own: whoever owns a kind of item declares how entries become such items, what one
becomes without its sources, and what else goes with it. Packages outside the core register through the entry point
group `muniment.projections`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol

from muniment.errors import InvalidInput
from muniment.store.items import Change, Item, Rewritten

if TYPE_CHECKING:
    from muniment.core.ports.engine import Condition, Reader, Transaction
    from muniment.core.ports.schema import EntryRow, ItemRow
    from muniment.core.scope import Scope
    from muniment.store.context import Context
    from muniment.store.ledger.admission import Admitted
    from muniment.store.ledger.records import EntryDraft, EntryKind, LedgerEntry

__all__ = [
    "PATCHES",
    "Derivation",
    "Derived",
    "ItemCheck",
    "Lookup",
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


@dataclass(frozen=True, slots=True)
class Derivation:
    """One kind of item. A kind that nobody declares cannot be written."""

    kind: str
    without: Without
    """What is left of an item when sources of it are forgotten: a body with nothing of theirs in it, or None."""
    listens: frozenset[EntryKind] = frozenset()
    """The kinds of entry that it may be made from."""
    events: frozenset[str] | None = None
    """Which entries of these kinds it is made from, by the event they name; None for all."""
    project: Project | None = None
    """How entries become items: pure, so that `rebuild` can run it again over the whole ledger."""
    copies: bool = True
    """May hold what the items it came from said, so that one that was rewritten counts as lost too."""
    id_of_run: Callable[[str], str] | None = None
    """Of a kind that tells of a whole run: the id of a run's item. It falls with any event of the run."""
    fault: Callable[[Item, frozenset[str]], str | None] | None = None
    """Of a kind that no entry gives: what is wrong with an item that has these sources; None where it holds."""
    owners: Callable[[Item], tuple[str, ...]] | None = None
    """The owners of documents that were supplied for the item alone, and go with it."""
    erase_files: Callable[[Sequence[Item], ExitStack], int] | None = None
    """Removes the files that versions of an item put outside the store; answers how many."""

    @property
    def is_projection(self) -> bool:
        return self.project is not None


PATCHES: frozenset[EntryKind] = frozenset({"state_patch"})


def of_patches(
    kind: str, without: Without, project: Project, *events: str, listens: frozenset[EntryKind] = PATCHES, **more: Any
) -> Derivation:
    """A kind that is made from the `state_patch` entries of these events."""
    return Derivation(kind, without, listens, frozenset(events), project, **more)


def declare(*derivations: Derivation) -> Mapping[str, Derivation]:
    """Derivations by kind. A kind that two packages declare is refused."""
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
    """Makes a check of the items of a dump, which are written without being projected."""


PROJECTIONS_GROUP = "muniment.projections"


@cache
def load_projections() -> tuple[Projections, ...]:
    """What installed packages add to a store, ordered by the names of their entry points."""
    found = sorted(entry_points(group=PROJECTIONS_GROUP), key=lambda each: each.name)
    return tuple(each.load()() for each in found)


class TurnIndex(Protocol):
    """What finds turns again. It changes in the transactions that write and forget them."""

    def prepare(self, ctx: Context, drafts: Sequence[EntryDraft], admitted: Sequence[Admitted]) -> Mapping[int, Any]:
        """Draft by draft, what takes its time and needs no transaction."""
        ...

    def add(
        self,
        ctx: Context,
        tx: Transaction,
        scope: Scope,
        said: Sequence[tuple[LedgerEntry, str]],
        prepared: Sequence[tuple[str, Any]],
    ) -> None:
        """Turns of one user with their full texts; and what was prepared, by the id of its entry."""
        ...

    def add_rows(self, tx: Transaction, tenant_id: str, rows: Sequence[EntryRow]) -> None:
        """Turns among the entries that an import writes."""
        ...

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> dict[str, int]:
        """Forgotten turns; answers how many blocks of each table were made anew."""
        ...

    def outdated(self, reader: Reader, users: Sequence[str] | None = None) -> int:
        """How many users of the tenant, or of these, have turns that another version of the analyzer has indexed."""
        ...

    def rebuild(self, tx: Transaction, tenant_id: str, user_id: str) -> int:
        """Everything of a user from the ledger; answers how many turns there are."""
        ...

    def fault(self, reader: Reader, tenant_id: str, user_id: str, *, is_complete: bool = True) -> str | None:
        """The first fault of a user's index compared with the ledger. A turn that is missing is a fault only if the
        index should be complete, which it is not where the policy leaves turns out."""
        ...


class SessionFold(Protocol):
    """What the entries of a session come to, stretch by stretch. It changes in the transactions that write and forget
    them."""

    def extend(
        self,
        tx: Transaction,
        user_id: str,
        session_id: str,
        last_seq: int,
        written: int,
        said: Sequence[tuple[LedgerEntry, str]] | None = None,
    ) -> None:
        """A session has so many entries more, up to this one. `said` are the turns among them with their texts, where
        the caller has them at hand: they are not read again.
        """
        ...

    def postpone(
        self,
        tx: Transaction,
        user_id: str,
        session_id: str,
        last_seq: int,
        written: int,
        turns: Sequence[tuple[int, str]],
    ) -> None:
        """As `extend`, of a load: what takes its time is left to `catch_up`. `turns` are those among the entries, by
        their number, with the time when each was said."""
        ...

    def catch_up(
        self, tx: Transaction, user_id: str, session_id: str, place: range, said: Sequence[tuple[LedgerEntry, str]]
    ) -> None:
        """What was postponed of the entries with these numbers. `said` are all turns among them that are left."""
        ...

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> int:
        """These entries were emptied; answers how many rows were made anew."""
        ...

    def rebuild(self, tx: Transaction, user_id: str) -> None:
        """Everything of a user from the ledger."""
        ...

    def fault(self, reader: Reader, user_id: str, session_id: str, last_seq: int) -> tuple[int, str] | None:
        """The first row of a session that is not what its entries give: from which entry on, and what is wrong."""
        ...


class ItemCheck(Protocol):
    """What must hold among the items of a dump, which are written as they are, past every projection."""

    def see(self, row: ItemRow, number: int) -> None:
        """The next item, and the line it stands in."""
        ...

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Derived:
    """All that is derived from the ledger of a store."""

    kinds: Mapping[str, Derivation]
    index: TurnIndex
    extracts: SessionFold
    marks: Callable[[Reader, tuple[Condition, ...]], Iterator[tuple[str, str]]] | None = None
    """The evidence of marks that are not those of the builds that gave them, and why; of items of a scope."""
