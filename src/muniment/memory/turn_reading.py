"""Turns read back from the ledger, by id or as the end of a stretch, with a cache.

An entry never changes until it is forgotten, so a turn is cached, and shown only after the store has confirmed that it
was not forgotten.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from muniment.core.instants import local_form
from muniment.core.limits import drop_tenant
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import by_ids, select
from muniment.core.ports.schema import ENTRIES, EntryRow
from muniment.memory.tool_results import calls_in, is_chunk, result_line, tell_call
from muniment.store.chain import Linked, check_places, damaged_entry
from muniment.store.items import HOLDS_BODY
from muniment.store.ledger import PARTLY_ANALYSED, EntryReceipt, LedgerEntry, check_header, imported_from, read_body
from muniment.store.tombstones import load_entries
from muniment.store.turns import blob_text, can_be_turn

if TYPE_CHECKING:
    from muniment.core.record import JsonObject
    from muniment.core.scope import Scope, Trust
    from muniment.memory.turns import ReadTurn, Turn
    from muniment.store.context import Context

__all__ = [
    "LiveTurn",
    "PlaceCache",
    "TurnCache",
    "check_cited",
    "entries_by_id",
    "find_call",
    "last_turns",
    "live_turns",
    "turns_at",
    "turns_by_id",
]

TURN_CHARS_MAX = 8_000
"""Quotable characters of a turn: the start of a longer one; an excerpt of a tool's long result."""

CALLS_BACK = 200
"""Entries of a session searched for the call when its result arrives."""


class _TurnRow(NamedTuple):
    """The columns of an entry that recall and packets need."""

    id: str
    session_id: str
    seq: int
    ts: str
    kind: str
    role: str
    trust: Trust
    flags: str


class _Last(NamedTuple):
    id: str
    kind: str
    role: str
    receipt_id: str | None


def _link(row: EntryRow) -> Linked:
    return Linked(row.id, row.user_id, row.session_id, row.seq, row.prev_hash, row.hash)


class LiveTurn:
    """An entry that can be recalled: the needed columns, and its whole text."""

    def __init__(self, row: EntryRow | _TurnRow, said: Mapping[str, Any], text: str) -> None:
        """`said` is the parsed body of the row."""
        self.id, self.session_id, self.seq, self.ts = row.id, row.session_id, row.seq, row.ts
        self.kind, self.role, self.trust, self._flags = row.kind, row.role, row.trust, row.flags
        self.link = _link(row) if isinstance(row, EntryRow) else None
        self._said = said
        self.text = text

    @classmethod
    def of_entry(cls, entry: LedgerEntry, text: str) -> LiveTurn:
        flags = ",".join(entry.flags)
        row = _TurnRow(
            entry.id, entry.scope.session_id, entry.seq, entry.ts, entry.kind, entry.role, entry.trust, flags
        )
        said: dict[str, Any] = {
            "speaker": entry.speaker,
            "metadata": entry.metadata,
            "tags": entry.tags,
            "entities": entry.entities,
        }
        if entry.tool is not None:
            said["tool"] = entry.tool.to_wire()
        if entry.cited is not None:
            said["cited"] = entry.cited.to_wire()
        if entry.body is not None and entry.body.utc_offset is not None:
            said["utc_offset"] = entry.body.utc_offset
        return cls(row, said, text)

    @property
    def is_partly_analysed(self) -> bool:
        """True if it was over the work budget when written."""
        return bool(self._flags) and PARTLY_ANALYSED in self._flags.split(",")

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(self._flags.split(",")) if self._flags else ()

    @property
    def imported_from(self) -> str | None:
        """The system it was imported from, if it was not observed here."""
        return imported_from(self._flags.split(",")) if self._flags else None

    @property
    def speaker(self) -> str | None:
        return self._said.get("speaker")

    @property
    def local_ts(self) -> str:
        """Its time, by the speaker's clock."""
        offset = self._said.get("utc_offset")
        return local_form(self.ts, offset) if type(offset) is int else self.ts

    @property
    def metadata(self) -> JsonObject:
        return self._said.get("metadata") or {}

    @property
    def quotable(self) -> str:
        """The quotable part of its text."""
        return self.text[:TURN_CHARS_MAX]

    @property
    def call(self) -> str | None:
        """The call that a tool's result answers, in a line; None for anything else."""
        return self._call if "tool" in self._said else None

    @cached_property
    def _call(self) -> str | None:
        tool = self._said["tool"]
        return None if tool is None or is_chunk(tool, self.metadata) else tell_call(tool)

    @property
    def cited(self) -> dict[str, str] | None:
        """The evidence named by an answer's marks, by number, on the page it was given for; None for anything else."""
        return self._cited if "cited" in self._said else None

    @cached_property
    def _cited(self) -> dict[str, str] | None:
        cited = self._said["cited"]
        if cited is None:
            return None
        from muniment.core.text.sentences import named_by_marks

        return named_by_marks(self.text, cited["evidence_ids"], cited["unknown_marks"]) or None

    @property
    def is_ok(self) -> bool:
        """False for a tool's result that failed."""
        return bool((self._said.get("tool") or {}).get("ok", True))

    @cached_property
    def read(self) -> ReadTurn:
        """The turn for a pool. Not validated again: the entry was when it was written."""
        turn = self._turn("")
        said = self._said
        line = None if self.call is None else self._line(turn)
        return _readers().read_turn(turn, tuple(said.get("tags", ())), tuple(said.get("entities", ())), line)

    def about(self, query: str) -> Turn:
        """The turn for a pool; for a tool's long result, the parts that match a query."""
        is_long = len(self.text) > TURN_CHARS_MAX and self.call is not None
        return self._turn(query) if is_long and query else self.read.turn

    def _line(self, turn: Turn) -> str:
        return result_line(self.call or turn.role, self.text, self.is_ok)

    def _turn(self, query: str) -> Turn:
        text, excerpt, call, cited = self.text[:TURN_CHARS_MAX], None, self.call, self.cited
        if call is not None and len(self.text) > TURN_CHARS_MAX:
            from muniment.memory.tool_results import excerpt_of

            excerpt = excerpt_of(self.text, query, TURN_CHARS_MAX)
            text = excerpt.text
        readers = _readers()
        is_plain = excerpt is None and cited is None
        return readers.turn.unchecked(
            {
                "id": self.id,
                "session_id": self.session_id,
                "seq": self.seq,
                "kind": self.kind,
                "role": self.role,
                "speaker": call or self.speaker,
                "ts": self.local_ts,
                "text": text,
                "trust": self.trust,
                "flags": tuple(self._flags.split(",")) if self._flags else (),
                "excerpt": excerpt,
                "cited": cited,
            },
            readers.plain
            if is_plain
            else readers.fields_of(has_excerpt=excerpt is not None, is_answer=cited is not None),
        )


class _Readers(NamedTuple):
    """The readers of turns to be shown."""

    read_turn: type[ReadTurn]
    turn: type[Turn]
    fields_of: Callable[..., set[str]]
    plain: set[str]
    """The fields of a turn without an excerpt or marks."""


@cache
def _readers() -> _Readers:
    """Load the readers with the first turn that is shown."""
    from muniment.memory.turns import ReadTurn, Turn, fields_of

    return _Readers(ReadTurn, Turn, fields_of, fields_of(has_excerpt=False, is_answer=False))


def entries_by_id(reader: Reader, tenant_id: str, ids: Sequence[str]) -> list[LedgerEntry]:
    """The entries with these ids, in order; missing ones are omitted."""
    found = {entry.id: entry for entry in load_entries(reader, tenant_id, list(by_ids(reader, ENTRIES, ids)))}
    return [found[id_] for id_ in ids if id_ in found]


def turns_by_id(
    ctx: Context,
    reader: Reader,
    tenant_id: str,
    ids: Sequence[str],
    *,
    is_asked_later: bool = False,
    is_near: bool = False,
) -> dict[str, LiveTurn]:
    """The turns with these ids that were not forgotten.

    With `is_asked_later`, the caller checks all of them against the store before showing any, so cached ones are not
    checked here. With `is_near`, turns whose text is not in their row are omitted rather than fetched.
    """
    known = ctx.cache(TurnCache).get(tenant_id, ids)
    if known and not is_asked_later:
        for entry in select(reader, ENTRIES, (("id", "in", tuple(known)),), into=EntryReceipt):
            if entry.receipt_id is not None:
                del known[entry.id]
    unknown = [id_ for id_ in ids if id_ not in known]
    if is_near and unknown:
        rows = by_ids(reader, ENTRIES, unknown, where=(HOLDS_BODY,))
        unknown = [row.id for row in rows if _is_whole(row)]
    return known | _fresh(ctx, reader, tenant_id, unknown)


def _is_whole(row: EntryRow) -> bool:
    """True if the row holds the whole text."""
    return "blob" not in (read_body(row) or {})


def last_turns(
    ctx: Context, reader: Reader, tenant_id: str, where: tuple[Condition, ...], count: int
) -> list[LiveTurn]:
    """The turns among the last `count` entries of a user that meet the conditions, oldest first."""
    order = ("user_id", "session_id", "seq")
    rows = select(reader, ENTRIES, where, into=_Last, order=order, descending=True, limit=count)
    ids = [id_ for id_, kind, role, receipt_id in reversed(rows) if receipt_id is None and can_be_turn(kind, role)]
    known = ctx.cache(TurnCache).get(tenant_id, ids)
    known |= _fresh(ctx, reader, tenant_id, [id_ for id_ in ids if id_ not in known])
    return [known[id_] for id_ in ids]


def check_cited(ctx: Context, reader: Reader, tenant_id: str, ids: Iterable[str]) -> None:
    """Check that cited events are in their chains where they were written (TM-12); each is checked once.

    Ids of other things, such as facts, are skipped.
    """
    seen = ctx.cache(PlaceCache)
    unseen = seen.unseen(tenant_id, ids)
    if unseen:
        turns = ctx.cache(TurnCache).get(tenant_id, unseen)  # their rows were read and checked against their hashes
        links = {id_: turn.link for id_, turn in turns.items() if turn.link is not None}
        others = [id_ for id_ in unseen if id_ not in links]
        check_places(reader, tenant_id, [*links.values(), *by_ids(reader, ENTRIES, others, into=Linked)])
        seen.add(tenant_id, unseen)


class _Placed(NamedTuple):
    id: str
    seq: int


def turns_at(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, session_id: str, seqs: Iterable[int]
) -> dict[int, LiveTurn]:
    """The turns of a session with these numbers, by number, without forgotten ones."""
    where: tuple[Condition, ...] = (
        ("user_id", "=", user_id),
        ("session_id", "=", session_id),
        ("seq", "in", tuple(sorted(set(seqs)))),
        ("receipt_id", "=", None),
    )
    placed = select(reader, ENTRIES, where, into=_Placed, order=("user_id", "session_id", "seq"))
    known = ctx.cache(TurnCache).get(tenant_id, [each.id for each in placed])
    known |= _fresh(ctx, reader, tenant_id, [each.id for each in placed if each.id not in known])
    return {each.seq: known[each.id] for each in placed if each.id in known}


def _fresh(ctx: Context, reader: Reader, tenant_id: str, ids: Sequence[str]) -> dict[str, LiveTurn]:
    """Read turns from the store, check them, and cache all but long ones."""
    rows = {row.id: row for row in by_ids(reader, ENTRIES, ids)}
    for id_ in ids:
        if id_ not in rows:  # entries are never removed: a forgotten one leaves its place
            raise damaged_entry(id_, "it is missing")
    turns = {turn.id: turn for turn in live_turns(reader, (rows[id_] for id_ in ids), tenant_id)}
    ctx.cache(TurnCache).put(tenant_id, (turn for turn in turns.values() if len(turn.text) <= TURN_CHARS_MAX))
    return turns


def find_call(ctx: Context, scope: Scope, name: Any, call_id: Any) -> dict[str, Any] | None:
    """The arguments of a call that the session recorded separately from its result; None if there is none.

    The newest call with this id among the last entries of the session is used.
    """
    where: tuple[Condition, ...] = (("user_id", "=", scope.user_id), ("session_id", "=", scope.session_id))
    if not isinstance(call_id, str):
        return None  # refused by the record

    def work(reader: Reader) -> list[LiveTurn]:
        return last_turns(ctx, reader, scope.tenant_id, where, CALLS_BACK)

    for turn in reversed(ctx.engine.read(scope.tenant_id, work)):
        if turn.role == "assistant":
            for call in calls_in(turn.metadata):
                if call.call_id == call_id and call.name == name:
                    return call.args
    return None


def live_turns(reader: Reader, rows: Iterable[EntryRow], tenant_id: str | None = None) -> Iterator[LiveTurn]:
    """The turns among these entries, with their texts, from the row or its blob, each checked against its hash.

    With a tenant, the row's speaker, place and time are checked too.
    """
    for row in rows:
        if tenant_id is not None:
            check_header(tenant_id, row)
        said = read_body(row) if can_be_turn(row.kind, row.role) else None
        if said is not None:
            name = said.get("blob")
            text = said.get("content") or "" if name is None else blob_text(reader, row.id, name, row.salt)
            yield LiveTurn(row, said, text)


# -- caches --------------------------------------------------------------------------------------------
#
# In-memory caches of turns between calls. Never the only copy.


T = TypeVar("T")

TURNS_MAX = 4096
GLEANED_MAX = 512
PLACES_MAX = 16_384


class PlaceCache:
    """Events whose place in the chain was checked, by tenant; the oldest ids are evicted. Thread-safe."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def unseen(self, tenant_id: str, ids: Iterable[str]) -> list[str]:
        """The ids not yet checked, deduplicated."""
        with self._lock:
            return [id_ for id_ in dict.fromkeys(ids) if (tenant_id, id_) not in self._held]

    def add(self, tenant_id: str, ids: Iterable[str]) -> None:
        with self._lock:
            for id_ in ids:
                self._held[tenant_id, id_] = None
            while len(self._held) > PLACES_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


class TurnCache:
    """Turns of sessions with active packets, by tenant and event. Thread-safe.

    An entry never changes until it is forgotten: a caller must have checked in the store that it was not.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], LiveTurn] = OrderedDict()
        self._gleaned: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tenant_id: str, ids: Iterable[str]) -> dict[str, LiveTurn]:
        """The cached turns of these events, by event id."""
        found: dict[str, LiveTurn] = {}
        with self._lock:
            for id_ in ids:
                turn = self._held.get((tenant_id, id_))
                if turn is not None:
                    self._held.move_to_end((tenant_id, id_))
                    found[id_] = turn
        return found

    def put(self, tenant_id: str, turns: Iterable[LiveTurn]) -> None:
        with self._lock:
            for turn in turns:
                self._held[tenant_id, turn.id] = turn
            while len(self._held) > TURNS_MAX:
                self._held.popitem(last=False)

    def glean(self, what: str, tenant_id: str, ids: Iterable[str], read: Callable[[], T]) -> T:
        """The result of `read` for exactly these turns in this order, cached until they change."""
        key = (what, tenant_id, *ids)
        with self._lock:
            if key in self._gleaned:
                self._gleaned.move_to_end(key)
                return cast("T", self._gleaned[key])
        found = read()
        with self._lock:
            self._gleaned[key] = found
            while len(self._gleaned) > GLEANED_MAX:
                self._gleaned.popitem(last=False)
        return found

    def clear(self, tenant_id: str | None = None) -> None:
        """Drop everything read of the tenant, after a forget."""
        with self._lock:
            drop_tenant(self._held, tenant_id)
            for key in [key for key in self._gleaned if tenant_id in (None, key[1])]:
                del self._gleaned[key]
