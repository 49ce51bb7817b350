"""A user's entries with the packets between them, in one order, session by session.

A session, or one run of it, is the same list, filtered. Nothing is written here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import first, get, select, texts
from muniment.core.ports.schema import ENTRIES, ITEMS, PROOFS, SESSIONS, EntryRow
from muniment.core.record import Absent, Record
from muniment.errors import InvalidInput, NotFound
from muniment.runs.snapshots import run_item
from muniment.store.items import Item, latest
from muniment.store.ledger import LedgerEntry, entry_of_row
from muniment.store.lists.entries import count_entries, entry_says
from muniment.store.lists.seeking import count_rows, seek
from muniment.store.proofs import check_proof

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = [
    "TURN_KINDS",
    "RunTurn",
    "SessionTurns",
    "TurnBuild",
    "TurnKind",
    "TurnScope",
    "count_turns",
    "page_turns",
]

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
    """An entry, or a packet composed between entries: exactly one of the two."""

    entry: Absent[LedgerEntry] = None
    build: Absent[TurnBuild] = None


class TurnScope(NamedTuple):
    """A filter on turns: a user, a session, a run."""

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
    """The part of a build that determines its position."""

    id: str
    version: int
    created_at: str


class _Written(NamedTuple):
    seq: int
    recorded_at: str


class SessionTurns:
    """A stretch of the two lists in one order, within a transaction. The place of an entry is its number; that of a
    packet the number of the entry before it, its time, and its id.
    """

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
        """The entry or packet with an id, in any session of the scope."""
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

    # -- reading ------------------------------------------------------------------------------------------

    def _entry(self, seq: int) -> _Written | None:
        """The entry with a number."""
        return first(self._reader, ENTRIES, (*self._scope.entries, ("seq", "=", seq)), into=_Written, order=_ORDER)

    def _entries(self, where: Where, size: int, *, descending: bool) -> list[EntryRow]:
        """Entries requested or between requested ones; none if only packets are requested."""
        if self._asked.kind == _BUILT:
            return []
        conditions = (*self._scope.entries, *where, *self._window())
        return select(self._reader, ENTRIES, conditions, order=_ORDER, descending=descending, limit=size)

    def _window(self) -> Where:
        """The numbers of the entries written in the requested period, found by bisection."""
        if self._bounds is None:
            since, until = self._asked.since, self._asked.until
            low: Where = () if since is None else (("seq", ">=", self._first_since(since)),)
            high: Where = () if until is None else (("seq", "<", self._first_since(until)),)
            self._bounds = (*low, *high)
        return self._bounds

    def _made(self, where: Where, beyond: tuple[str, str], size: int, *, descending: bool) -> list[_Made]:
        """The packets of a period, after a given one."""
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
        """The number of the last entry written at or before a moment."""
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
        """The number of the first entry written at or after a moment; one more than the last if there is none."""
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

    # -- merging ------------------------------------------------------------------------------------------

    def _joined(
        self, rows: Sequence[EntryRow], made: Sequence[_Made], known: Sequence[_Written], *, descending: bool
    ) -> list[Placed[RunTurn]]:
        """Merge both in order; `known` are the entries that determine the packets' places, oldest first."""
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


TurnKind = Literal["message", "tool_result", "state_patch", "system", "step", "build"]
TURN_KINDS: tuple[str, ...] = get_args(TurnKind)
_PASSED = (0, "", "")
"""The place of a session without results: no entry has that number."""
_BEFORE_ALL, _AFTER_ALL = -1, 2**62
"""Numbers that no proof has."""


class _Held(NamedTuple):
    user_id: str | None
    session_id: str | None


def page_turns(
    ctx: Context, tenant_id: str, user_id: str | None, session_id: str | None, run_id: str | None, asked: ListQuery
) -> Iterator[Placed[RunTurn]]:
    """Each turn with its place: its session, then the number of an entry; for a packet the number of the last entry
    written before it, its time, and its id. `since` and `until` go by the time of writing.
    """
    scope = _scope_of(ctx, tenant_id, user_id, session_id, run_id)

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[RunTurn]]:
        found: list[Placed[RunTurn]] = []
        begun = None if after is None else after[0]
        is_passed = after is not None and after[1:] == _PASSED
        for name in _sessions(reader, scope, begun, descending, is_passed=is_passed):
            turns = SessionTurns(ctx, reader, scope.of(name), asked)
            place = after[1:] if after is not None and name == begun else None
            wanted = size - len(found)
            own = turns.before(place, wanted) if descending else turns.after(place, wanted)
            found += [Placed((name, *each.place), each.value) for each in own]
            if not own:  # examined, so it counts
                found.append(Placed((name, *_PASSED), None))
            if len(found) >= size:
                break
        return found

    def find(reader: Reader, name: str) -> Placed[RunTurn] | None:
        return _find(ctx, reader, scope, name, asked)

    return seek(ctx, tenant_id, read, asked, find)


def count_turns(
    ctx: Context, tenant_id: str, user_id: str | None, session_id: str | None, run_id: str | None, asked: ListQuery
) -> int | None:
    """The number of turns, forgotten entries included; None for a filtered list or too many."""
    if (asked.q, asked.since, asked.until) != (None,) * 3 or asked.kind not in (None, "build"):
        return None
    scope = _scope_of(ctx, tenant_id, user_id, session_id, run_id)
    builds = count_rows(ctx, tenant_id, "items", scope.builds)
    if asked.kind == "build":
        return builds
    entries = count_entries(ctx, tenant_id, scope.user_id, scope.session_id, scope.run_id, asked)
    return None if entries is None or builds is None else entries + builds


def _scope_of(
    ctx: Context, tenant_id: str, user_id: str | None, session_id: str | None, run_id: str | None
) -> TurnScope:
    """The filter for the given ids. A run is identified by its first entry or, if it only composed, by its packets."""
    for name, given in (("user_id", user_id), ("session_id", session_id), ("run_id", run_id)):
        if given is not None and (not isinstance(given, str) or not given):
            raise InvalidInput(f"{name} should be a non-empty string", path=f"$.{name}")
    if run_id is None:
        if user_id is None:
            raise InvalidInput("say whose turns", path="$.user_id", hint="give user_id, or the run_id of a run")
        return TurnScope(tenant_id, user_id, session_id, None)
    held = ctx.engine.read(tenant_id, lambda reader: _run_scope(reader, tenant_id, run_id, user_id))
    if session_id not in (None, held.session_id):
        raise NotFound(f"no run {run_id!r:.80} in this session", path="$.run_id", hint="leave session_id out")
    return held


def _run_scope(reader: Reader, tenant_id: str, run_id: str, user_id: str | None) -> TurnScope:
    run: Item | _Held | None
    try:
        run = run_item(reader, run_id, user_id)
    except NotFound:  # or another user's, which is looked up in the same way
        where: Where = (("kind", "=", "build"), ("run_id", "=", run_id), ("receipt_id", "=", None))
        where += () if user_id is None else (("user_id", "=", user_id),)
        run = first(reader, ITEMS, where, into=_Held)
        if run is None:
            raise
    return TurnScope(tenant_id, run.user_id or "", run.session_id or "", run_id)


def _sessions(
    reader: Reader, scope: TurnScope, begun: str | None, descending: bool, *, is_passed: bool
) -> Iterator[str]:
    """A user's sessions by id, from one on. A session with packets but no entry is found by its packets' proofs."""
    if scope.session_id is not None:
        if not is_passed:
            yield scope.session_id
        return
    sign: Any = ("<" if descending else ">") + ("" if is_passed else "=")
    own: Where = (("user_id", "=", scope.user_id),)
    while True:
        where = own if begun is None else (*own, ("session_id", sign, begun))
        # Proofs hold numbers for names, so only a position in their order can be queried.
        number = _BEFORE_ALL if sign in (">=", "<") else _AFTER_ALL
        place = None if begun is None else (scope.user_id, begun, number)
        found = {
            *texts(reader, SESSIONS, "session_id", where, descending=descending, limit=1),
            *texts(reader, PROOFS, "session_id", own, after=place, descending=descending, limit=1),
        }
        if not found:
            return
        begun, sign = max(found) if descending else min(found), "<" if descending else ">"
        yield begun


def _find(ctx: Context, reader: Reader, scope: TurnScope, name: str, asked: ListQuery) -> Placed[RunTurn] | None:
    """The entry or build with an id; or, if it names a session, the entry with a number or the one before it."""
    placed = SessionTurns.find(ctx, reader, scope, name, asked)
    if placed is None and scope.session_id is not None and name.isascii() and name.isdigit() and len(name) < 16:
        own = SessionTurns(ctx, reader, scope.of(scope.session_id), asked)
        placed = own.at(int(name))
    return placed
