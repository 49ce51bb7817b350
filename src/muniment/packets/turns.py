"""A run as a conversation: its entries, and between them the packets that were composed, in the order of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from muniment.core.listing import Listing, Placed, matches
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import first, get, select
from muniment.core.ports.schema import ENTRIES, ITEMS, EntryRow
from muniment.core.record import Absent, Record
from muniment.runs.reading import get_run
from muniment.store.items import Item, latest
from muniment.store.ledger.records import LedgerEntry
from muniment.store.ledger.rows import entry_of_row
from muniment.store.lists.entries import entry_says
from muniment.store.lists.seeking import count_rows, seek

if TYPE_CHECKING:
    from muniment.core.scope import Scope
    from muniment.store.context import Context

__all__ = ["TURN_KINDS", "RunTurn", "TurnBuild", "TurnKind", "count_turns", "page_turns"]

TurnKind = Literal["message", "tool_result", "state_patch", "system", "step", "build"]
TURN_KINDS: tuple[str, ...] = get_args(TurnKind)
_ORDER = ("user_id", "session_id", "seq")

Where = tuple[Condition, ...]
Place = tuple[Any, ...]


class TurnBuild(Record):
    """A packet between the entries of its run."""

    build_id: str
    created_at: str
    purpose: str
    query: str
    policy_id: str
    tokens: int
    tokens_max: int


class RunTurn(Record):
    """An entry of a run, or a packet that was composed in it: one of the two."""

    entry: Absent[LedgerEntry] = None
    build: Absent[TurnBuild] = None


class _Made(NamedTuple):
    """As much of a build as says where it stands."""

    id: str
    version: int
    created_at: str


def page_turns(ctx: Context, tenant_id: str, run_id: str, asked: Listing) -> Iterator[Placed[RunTurn]]:
    """Each turn with its place: the number of an entry; of a packet the number of the last entry that was written
    before it, then when it was composed, and its id. `since` and `until` go by when it was written."""
    scope = get_run(ctx, tenant_id, run_id).scope

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[RunTurn]]:
        reading = _Reading(reader, scope, asked)
        return reading.before(after, size) if descending else reading.after(after, size)

    def find(reader: Reader, id_: str) -> Placed[RunTurn] | None:
        return _Reading(reader, scope, asked).find(id_)

    return seek(ctx, tenant_id, read, asked, find)


def count_turns(ctx: Context, tenant_id: str, run_id: str, asked: Listing) -> int | None:
    """How many there are, forgotten entries with them; None where not all are shown, or there are too many."""
    if (asked.kind, asked.q, asked.since, asked.until) != (None,) * 4:
        return None
    scope = get_run(ctx, tenant_id, run_id).scope
    entries = count_rows(ctx, tenant_id, "entries", _of_run(scope))
    builds = count_rows(ctx, tenant_id, "items", _builds_of(scope))
    return None if entries is None or builds is None else entries + builds


def _of_run(scope: Scope) -> Where:
    return (
        ("run_id", "=", scope.run_id),
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
    )


def _builds_of(scope: Scope) -> Where:
    return (("kind", "=", "build"), ("run_id", "=", scope.run_id), ("receipt_id", "=", None))


class _Reading:
    """A stretch of the two lists in one order, within a transaction."""

    def __init__(self, reader: Reader, scope: Scope, asked: Listing) -> None:
        self._reader, self._scope, self._asked = reader, scope, asked

    def after(self, place: Place | None, size: int) -> list[Placed[RunTurn]]:
        seq, at, id_ = place or (0, "", "")
        here = self._entry(seq)
        rows = self._entries((("seq", ">", seq),), size, descending=False)
        low = max(at, "" if here is None else here.recorded_at)
        high: Where = (("created_at", "<", rows[-1].recorded_at),) if len(rows) == size else ()
        made = self._made((("created_at", ">=", low), *high), (at, id_), size, descending=False)
        return self._joined(rows, made, [here, *rows] if here else rows, descending=False)[:size]

    def before(self, place: Place | None, size: int) -> list[Placed[RunTurn]]:
        seq, at, id_ = place or (None, "", "")
        where: Where = () if seq is None else (("seq", "<=" if at else "<", seq),)
        rows = self._entries(where, size, descending=True)
        here = self._entry(seq) if seq is not None and not at else None
        low: Where = (("created_at", ">=", rows[-1].recorded_at),) if len(rows) == size else ()
        high: Where = (("created_at", "<=", at),) if at else ()
        high = high if here is None else (("created_at", "<", here.recorded_at),)
        made = self._made((*low, *high), (at, id_), size, descending=True)
        return self._joined(rows, made, rows[::-1], descending=True)[:size]

    def find(self, id_: str) -> Placed[RunTurn] | None:
        row = get(self._reader, ENTRIES, (id_,))
        if row is not None:
            is_own = (row.user_id, row.session_id, row.run_id) == self._own
            return Placed((row.seq, "", ""), self._turn(row)) if is_own else None
        item = latest(self._reader, id_)
        if item is None or item.kind != "build" or item.body is None or item.run_id != self._scope.run_id:
            return None
        return Placed((self._last_before(item.created_at), item.created_at, item.id), _built(item))

    @property
    def _own(self) -> tuple[str, str, str]:
        return self._scope.user_id, self._scope.session_id, self._scope.run_id

    # -- what is there ------------------------------------------------------------------------------------

    def _entry(self, seq: int) -> EntryRow | None:
        """The entry of this run with a number."""
        return first(self._reader, ENTRIES, (*_of_run(self._scope), ("seq", "=", seq)), order=_ORDER)

    def _entries(self, where: Where, size: int, *, descending: bool) -> list[EntryRow]:
        conditions = (*_of_run(self._scope), *where)
        return select(self._reader, ENTRIES, conditions, order=_ORDER, descending=descending, limit=size)

    def _made(self, where: Where, beyond: tuple[str, str], size: int, *, descending: bool) -> list[_Made]:
        """The builds in a time, those beyond one of them."""
        order, after = ("created_at", "id", "version"), None
        if beyond[0]:
            after = (*beyond, 0 if descending else 1 << 30)
        return select(
            self._reader, ITEMS, (*_builds_of(self._scope), *where), into=_Made, order=order, after=after,
            descending=descending, limit=size,
        )  # fmt: skip

    def _last_before(self, moment: str) -> int:
        """The number of the last entry of this run that was not written after a moment."""
        newest = self._entries((), 1, descending=True)
        low, high, found = 1, (newest[0].seq if newest else 0) + 1, 0
        while low < high:
            middle = (low + high) // 2
            entry = next(iter(self._entries((("seq", ">=", middle),), 1, descending=False)), None)
            if entry is None or entry.recorded_at > moment:
                high = middle
            else:
                found, low = entry.seq, entry.seq + 1
        return found

    # -- what is shown ------------------------------------------------------------------------------------

    def _joined(
        self, rows: Sequence[EntryRow], made: Sequence[_Made], known: Sequence[EntryRow], *, descending: bool
    ) -> list[Placed[RunTurn]]:
        """Both in one order; `known` are the entries by which a build's place is told, oldest first."""
        moments = [row.recorded_at for row in known]
        found: list[Placed[RunTurn]] = [Placed((row.seq, "", ""), self._shown(row)) for row in rows]
        for each in made:
            at = bisect_right(moments, each.created_at)
            place = (known[at - 1].seq if at else 0, each.created_at, each.id)
            found.append(Placed(place, self._built(each)))
        found.sort(key=lambda placed: placed.place, reverse=descending)
        return found

    def _is_in_time(self, moment: str) -> bool:
        since, until = self._asked.since, self._asked.until
        return (since is None or since <= moment) and (until is None or moment < until)

    def _shown(self, row: EntryRow) -> RunTurn | None:
        asked = self._asked
        if asked.kind not in (None, row.kind) or not self._is_in_time(row.recorded_at):
            return None
        turn = self._turn(row)
        assert turn.entry is not None
        return turn if asked.q is None or entry_says(self._reader, turn.entry, asked.q) else None

    def _turn(self, row: EntryRow) -> RunTurn:
        return RunTurn(entry=entry_of_row(self._scope.tenant_id, row))

    def _built(self, made: _Made) -> RunTurn | None:
        if self._asked.kind not in (None, "build") or not self._is_in_time(made.created_at):
            return None
        item = latest(self._reader, made.id)
        if item is None or item.body is None:
            return None
        turn = _built(item)
        assert turn.build is not None
        told = (turn.build.build_id, turn.build.query, turn.build.purpose)
        return turn if matches(self._asked.q, *told) else None


def _built(item: Item) -> RunTurn:
    body = item.plain()
    request = body["request"]
    return RunTurn(
        build=TurnBuild(
            build_id=item.id,
            created_at=item.created_at,
            purpose=request["purpose"],
            query=request["query"],
            policy_id=request["policy_id"],
            tokens=body["tokens"],
            tokens_max=request["budget"]["max_tokens"],
        )
    )
