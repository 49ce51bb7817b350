"""The turns of one session, or of one run of it, from any place either way: entries, and packets between them.

Within a session entries are written at times that only rise, so a packet stands behind the last entry that was written
before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import first, get, select
from muniment.core.ports.schema import ENTRIES, ITEMS, EntryRow
from muniment.core.record import Absent, Record
from muniment.store.items import Item, latest
from muniment.store.ledger import LedgerEntry, entry_of_row
from muniment.store.lists.entries import entry_says
from muniment.store.proofs import check_proof

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = ["RunTurn", "SessionTurns", "TurnBuild", "TurnScope"]

_ORDER = ("user_id", "session_id", "seq")
_BUILT = "build"

Where = tuple[Condition, ...]
Place = tuple[Any, ...]


class TurnBuild(Record):
    """A packet between the entries of its run."""

    build_id: str
    run_id: str
    session_id: str
    created_at: str
    purpose: str
    query: str
    policy_id: str
    tokens: int
    tokens_max: int


class RunTurn(Record):
    """An entry, or a packet that was composed between entries: one of the two."""

    entry: Absent[LedgerEntry] = None
    build: Absent[TurnBuild] = None


class TurnScope(NamedTuple):
    """Whose turns: a user's, of a session, of a run."""

    tenant_id: str
    user_id: str
    session_id: str | None
    run_id: str | None

    def of(self, session_id: str) -> TurnScope:
        return self._replace(session_id=session_id)

    @property
    def entries(self) -> Where:
        named = zip(self._fields[1:], self[1:], strict=True)
        return tuple((name, "=", given) for name, given in named if given is not None)

    @property
    def builds(self) -> Where:
        return (("kind", "=", _BUILT), *self.entries, ("receipt_id", "=", None))

    def holds(self, row: EntryRow | Item) -> bool:
        told = (row.user_id, row.session_id, row.run_id)
        return all(own in (None, given) for own, given in zip(self[1:], told, strict=True))


class _Made(NamedTuple):
    """As much of a build as says where it stands."""

    id: str
    version: int
    created_at: str


class _Written(NamedTuple):
    seq: int
    recorded_at: str


class SessionTurns:
    """A stretch of the two lists in one order, within a transaction. The place of an entry is its number; that of a
    packet the number of the entry before it, when it was composed, and its id."""

    def __init__(self, ctx: Context, reader: Reader, scope: TurnScope, asked: ListQuery) -> None:
        self._ctx, self._reader, self._scope, self._asked = ctx, reader, scope, asked
        self._bounds: Where | None = None

    def after(self, place: Place | None, size: int) -> list[Placed[RunTurn]]:
        seq, at, id_ = place or (0, "", "")
        here = self._entry(seq) if seq else None
        rows = self._entries((("seq", ">", seq),), size, descending=False)
        low = max(at, "" if here is None else here.recorded_at)
        high: Where = (("created_at", "<", rows[-1].recorded_at),) if len(rows) == size else ()
        made = self._made((("created_at", ">=", low), *high), (at, id_), size, descending=False)
        known = [_Written(row.seq, row.recorded_at) for row in rows]
        return self._joined(rows, made, known if here is None else [here, *known], descending=False)[:size]

    def before(self, place: Place | None, size: int) -> list[Placed[RunTurn]]:
        seq, at, id_ = place or (None, "", "")
        where: Where = () if seq is None else (("seq", "<=" if at else "<", seq),)
        rows = self._entries(where, size, descending=True)
        here = self._entry(seq) if seq and not at else None
        low: Where = (("created_at", ">=", rows[-1].recorded_at),) if len(rows) == size else ()
        high: Where = (("created_at", "<=", at),) if at else ()
        high = high if here is None else (("created_at", "<", here.recorded_at),)
        made = self._made((*low, *high), (at, id_), size, descending=True)
        known = [_Written(row.seq, row.recorded_at) for row in reversed(rows)]
        return self._joined(rows, made, known, descending=True)[:size]

    def at(self, number: int) -> Placed[RunTurn] | None:
        """The entry with a number, or the last before it."""
        where: Where = (*self._scope.entries, ("seq", "<=", number))
        row = first(self._reader, ENTRIES, where, order=_ORDER, descending=True)
        return None if row is None else Placed((row.session_id, row.seq, "", ""), self._turn(row))

    @classmethod
    def find(
        cls, ctx: Context, reader: Reader, scope: TurnScope, name: str, asked: ListQuery
    ) -> Placed[RunTurn] | None:
        """The entry or the packet that has an id, in whichever session of the scope it stands."""
        row = get(reader, ENTRIES, (name,))
        if row is not None:
            own = cls(ctx, reader, scope, asked)
            return Placed((row.session_id, row.seq, "", ""), own._turn(row)) if scope.holds(row) else None
        item = latest(reader, name)
        if item is None or item.kind != _BUILT or item.body is None or not scope.holds(item):
            return None
        session_id = item.session_id or ""
        own = cls(ctx, reader, scope.of(session_id), asked)
        place = (session_id, own._last_before(item.created_at), item.created_at, item.id)
        return Placed(place, own._packet(item))

    # -- what is there ------------------------------------------------------------------------------------

    def _entry(self, seq: int) -> _Written | None:
        """The entry with a number."""
        return first(self._reader, ENTRIES, (*self._scope.entries, ("seq", "=", seq)), into=_Written, order=_ORDER)

    def _entries(self, where: Where, size: int, *, descending: bool) -> list[EntryRow]:
        """Entries that are asked for or stand between those that are; none where packets alone are."""
        if self._asked.kind == _BUILT:
            return []
        conditions = (*self._scope.entries, *where, *self._window())
        return select(self._reader, ENTRIES, conditions, order=_ORDER, descending=descending, limit=size)

    def _window(self) -> Where:
        """The numbers of the entries that were written in the time that is asked for, found by halving."""
        if self._bounds is None:
            since, until = self._asked.since, self._asked.until
            low: Where = () if since is None else (("seq", ">=", self._first_since(since)),)
            high: Where = () if until is None else (("seq", "<", self._first_since(until)),)
            self._bounds = (*low, *high)
        return self._bounds

    def _made(self, where: Where, beyond: tuple[str, str], size: int, *, descending: bool) -> list[_Made]:
        """The packets in a time, those beyond one of them."""
        asked = self._asked
        if asked.kind not in (None, _BUILT):
            return []
        where += () if asked.since is None else (("created_at", ">=", asked.since),)
        where += () if asked.until is None else (("created_at", "<", asked.until),)
        order, after = ("created_at", "id", "version"), None
        if beyond[0]:
            after = (*beyond, 0 if descending else 1 << 30)
        return select(
            self._reader, ITEMS, (*self._scope.builds, *where), into=_Made, order=order, after=after,
            descending=descending, limit=size,
        )  # fmt: skip

    def _last_before(self, moment: str) -> int:
        """The number of the last entry that was not written after a moment."""
        low, high, found = 1, self._head() + 1, 0
        while low < high:
            middle = (low + high) // 2
            entry = self._next(middle)
            if entry is None or entry.recorded_at > moment:
                high = middle
            else:
                found, low = entry.seq, entry.seq + 1
        return found

    def _first_since(self, moment: str) -> int:
        """The number of the first entry that was not written before a moment; one more than the last where all were."""
        low, high = 1, self._head() + 1
        while low < high:
            middle = (low + high) // 2
            entry = self._next(middle)
            if entry is None or entry.recorded_at >= moment:
                high = middle
            else:
                low = entry.seq + 1
        return low

    def _head(self) -> int:
        newest = first(self._reader, ENTRIES, self._scope.entries, into=_Written, order=_ORDER, descending=True)
        return 0 if newest is None else newest.seq

    def _next(self, number: int) -> _Written | None:
        where: Where = (*self._scope.entries, ("seq", ">=", number))
        return first(self._reader, ENTRIES, where, into=_Written, order=_ORDER)

    # -- what is shown ------------------------------------------------------------------------------------

    def _joined(
        self, rows: Sequence[EntryRow], made: Sequence[_Made], known: Sequence[_Written], *, descending: bool
    ) -> list[Placed[RunTurn]]:
        """Both in one order; `known` are the entries by which a packet's place is told, oldest first."""
        moments = [row.recorded_at for row in known]
        found: list[Placed[RunTurn]] = [Placed((row.seq, "", ""), self._shown(row)) for row in rows]
        for each in made:
            at = bisect_right(moments, each.created_at)
            place = (known[at - 1].seq if at else 0, each.created_at, each.id)
            found.append(Placed(place, self._built(each)))
        found.sort(key=lambda placed: placed.place, reverse=descending)
        return found

    def _shown(self, row: EntryRow) -> RunTurn | None:
        asked = self._asked
        if asked.kind not in (None, row.kind):
            return None
        turn = self._turn(row)
        assert turn.entry is not None
        return turn if asked.q is None or entry_says(self._reader, turn.entry, asked.q) else None

    def _turn(self, row: EntryRow) -> RunTurn:
        return RunTurn(entry=entry_of_row(self._scope.tenant_id, row))

    def _built(self, made: _Made) -> RunTurn | None:
        item = latest(self._reader, made.id)
        if item is None or item.body is None:
            return None
        turn = self._packet(item)
        assert turn.build is not None
        told = (turn.build.build_id, turn.build.query, turn.build.purpose)
        return turn if matches(self._asked.q, *told) else None

    def _packet(self, item: Item) -> RunTurn:
        check_proof(self._ctx, self._reader, item)
        body = item.plain()
        request = body["request"]
        return RunTurn(
            build=TurnBuild(
                build_id=item.id,
                run_id=item.run_id or "",
                session_id=item.session_id or "",
                created_at=item.created_at,
                purpose=request["purpose"],
                query=request["query"],
                policy_id=request["policy_id"],
                tokens=body["tokens"],
                tokens_max=request["budget"]["max_tokens"],
            )
        )
