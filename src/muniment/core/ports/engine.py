"""A storage engine: operations as values, applied in one transaction bound to one tenant.

Engines differ only in where they store rows. Rows are tuples in the order of the table's declared columns
(`core.ports.schema`), values are str, int, bytes or None. Text compares by code point on every engine.

`Engine.write` runs `work` in one transaction: all of it happens, or nothing. `work` may be run again after a
lost race, and that of `Engine.read` on another server, so it must not have effects of its own. Failures are the
`StorageFailure` branch of `errors`, except `KeyTaken`: an Insert met an existing key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

__all__ = [
    "NOT_SCRUBBED",
    "Advance",
    "Condition",
    "Count",
    "Delete",
    "Durability",
    "Engine",
    "EngineInfo",
    "Find",
    "Get",
    "Insert",
    "KeyTaken",
    "Lock",
    "LockAll",
    "Op",
    "Patch",
    "Put",
    "Reader",
    "Remove",
    "ReplicaState",
    "Row",
    "ScrubReport",
    "Select",
    "StoreSizes",
    "Transaction",
    "Value",
]

Value = str | int | bytes | None
Row = tuple[Value, ...]
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Durability = Literal["normal", "full", "replicated"]
"""The failure an acknowledged write survives: of the process, of power, of the machine."""

ReplicaState = Literal["follows", "behind", "away", "promoted", "stranger"]
"""State of a replica. `follows`: reads go to it. `behind`, `away`, `promoted`, `stranger` (no copy of this primary):
the primary answers.
"""

Condition = tuple[str, Literal["=", "<", "<=", ">", ">=", "in"], Value | tuple[Value, ...]]
"""(column, comparison, value). `("x", "=", None)` is IS NULL; `in` takes a tuple, empty matches nothing."""


class KeyTaken(Exception):
    """An Insert met a primary or unique key that exists. The transaction is rolled back."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table


class Op(Generic[R_co]):
    """An operation; the type parameter is its result."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Get(Op[Row | None]):
    """Read the row with this primary key (without tenant)."""

    table: str
    key: Row


@dataclass(frozen=True, slots=True)
class Select(Op[list[Row]]):
    """Read rows that meet all conditions, sorted by `order` (non-null columns), strictly after `after` in that order.

    `descending` turns the whole order around, and `after` with it. Without `order`, primary key order.
    `columns` narrows the rows to those columns, in that order.
    """

    table: str
    where: tuple[Condition, ...] = ()
    order: tuple[str, ...] = ()
    after: Row | None = None
    descending: bool = False
    limit: int | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Find(Op[list[Row]]):
    """Read the rows that have one of these values of a unique key (without tenant), each once, sorted by that key.

    `by` are the columns of the primary or a unique key. `columns` narrows the rows as in `Select`.
    """

    table: str
    by: tuple[str, ...]
    keys: Sequence[Row]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Count(Op[int]):
    """Count the rows that meet all conditions, at most `limit` of them if given."""

    table: str
    where: tuple[Condition, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Insert(Op[None]):
    """Add rows; raises `KeyTaken` where a primary or unique key exists."""

    table: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Put(Op[None]):
    """Add rows, replacing those with the same primary key."""

    table: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Advance(Op[list[Row]]):
    """Add the numbers of these rows to those of the rows with the same keys; returns the sums, in the order given.

    A row that is missing is made with the numbers given. Every column outside the key is a number, and no key is given
    twice. Each row is held until the transaction ends, as by a Lock: give them in one order everywhere.
    """

    table: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Patch(Op[int]):
    """Set columns on all rows that meet the conditions (at least one is needed); returns how many."""

    table: str
    where: tuple[Condition, ...]
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Delete(Op[int]):
    """Delete all rows that meet the conditions (at least one is needed); returns how many."""

    table: str
    where: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Lock(Op[None]):
    """Hold a named lock within the tenant until the transaction ends. Take locks in one order everywhere."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockAll(Op[None]):
    """Apply `Lock` to each of these, in this order, in one go."""

    names: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Remove(Op[int]):
    """Remove the rows that have one of these values of a unique key (without tenant); returns how many.

    `by` are the columns of the primary or a unique key, as in `Find`.
    """

    table: str
    by: tuple[str, ...]
    keys: Sequence[Row]


class Reader(Protocol):
    """A consistent view of one tenant."""

    def do(self, op: Op[R]) -> R: ...

    def stream(self, select: Select) -> Iterator[Row]:
        """The rows of a Select one by one, in flat memory."""
        ...


class Transaction(Reader, Protocol):
    """A Reader that also accepts Insert, Put, Advance, Patch, Delete, Remove, Lock and LockAll."""


class ScrubReport(NamedTuple):
    """The effect of a scrub on erased bytes in the store's own files."""

    clean: bool
    """No needle is left in any file the engine owns; False where the engine cannot know."""
    vacuumed: bool
    note: str
    due: bool = False
    """Something remains that a thorough scrub removes, later or under another role."""


NOT_SCRUBBED = ScrubReport(False, False, "the rows are emptied; the store's files have not been scrubbed yet", due=True)
"""The report for files not scrubbed so far."""


class EngineInfo(NamedTuple):
    """The engine of a store, and its location."""

    name: str
    version: str
    location: str
    durability: str
    schema_number: int
    replica: ReplicaState | None = None
    """State of the replica that answers reads; None where there is none."""


class StoreSizes(NamedTuple):
    """The size of a store, of all tenants together."""

    size_bytes: int
    """On its disk; 0 where it has none."""
    entries: int
    """Ledger entries; approximate where the engine only estimates."""


class Engine(Protocol):
    """One store. Thread-safe."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def is_shared_between_processes(self) -> bool:
        """True if another process may write what this one reads."""
        ...

    @property
    def is_walled_by_the_server(self) -> bool:
        """True if the server itself refuses rows of another tenant (row-level security)."""
        ...

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R: ...

    def read(self, tenant_id: str, work: Callable[[Reader], R]) -> R: ...

    def snapshot(self, tenant_id: str) -> AbstractContextManager[Reader]:
        """A view that does not change while others write, for long streams."""
        ...

    def mark(self) -> str:
        """Return a text that changes whenever any process commits. Cheap enough to poll."""
        ...

    def tenants(self, after: str | None = None, limit: int | None = None) -> list[str]:
        """Return the tenants with a row in `tenants`, sorted, optionally those after a name, up to a limit."""
        ...

    def unlisted_tenants(self) -> list[str]:
        """Return the tenants that have sessions and no row in `tenants`, sorted: none, unless rows were removed.

        It reads one session of each tenant.
        """
        ...

    def sizes(self) -> StoreSizes:
        """Return the size of the store, at a cost independent of it."""
        ...

    def is_copied(self) -> bool:
        """Return whether the configured replica has all that was committed here; True where there is none.

        It waits some seconds for the replica. Effects outside of the store must not rely on commits that the loss of
        this server would undo.
        """
        ...

    def scrub(self, needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        """Remove these byte strings, after a forget, from every file the engine owns.

        Work that would block all users may be left to a thorough scrub, as reported. A thorough one removes all emptied
        content, whatever the needles and however long it takes.
        """
        ...

    def close(self) -> None: ...
