"""The index in storage: written with the turns, read for a search, made anew by a forget; and as the store knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.instants import parse_instant
from muniment.core.limits import remembered
from muniment.core.ports.engine import Condition, Delete, Lock, Reader, Transaction
from muniment.core.ports.rows import by_ids, chunked, put, select, stream
from muniment.core.ports.schema import BACKLOG, ENTRIES, EntryRow
from muniment.core.ports.schema import SEGMENTS as SEGMENT_ROWS
from muniment.core.text.analyzer import analyze, term_hash, term_hashes
from muniment.errors import StoreDamaged
from muniment.memory.backlog.reading import FOR_INDEX, for_vectors
from muniment.memory.recall.index import ReadPassage, field_terms, index_text, read_text
from muniment.memory.recall.segments import (
    IndexedPassage,
    IndexedTurn,
    Segment,
    build_segment,
    decode_segment,
    drop_turns,
    encode_segment,
    is_outdated,
    merge_segments,
)
from muniment.memory.results.call_marks import call_marks
from muniment.memory.results.tool_text import call_words, further_words, is_chunk, speaker_told
from muniment.store.blocks import (
    BlockCache,
    BlockScope,
    append_block,
    drop_from_blocks,
    list_blocks,
    read_data,
    read_state,
)
from muniment.store.ledger.records import LedgerEntry
from muniment.store.ledger.rows import entry_of_row
from muniment.store.turns import _by_user, can_be_turn, is_turn, speaker_of, text_of, users_of

if TYPE_CHECKING:
    from muniment.core.ports.engine import Transaction
    from muniment.core.ports.schema import EntryRow
    from muniment.core.scope import Scope
    from muniment.store.context import Context
    from muniment.store.ledger.admission import Admitted
    from muniment.store.ledger.records import EntryDraft, LedgerEntry, ToolCall

__all__ = [
    "SEGMENTS",
    "RecallIndex",
    "SegmentCache",
    "SegmentCodec",
    "index_rows",
    "index_turns",
    "reindex_user",
    "segments_of",
    "turn_state",
    "unindex",
]

_TURNS_AT_ONCE = 4096
"""How many turns a block of an index that is made anew begins with."""
TEXT_CHARS_MAX = 64 * 1024
"""Characters that are indexed of a turn whose entry says nothing of it, as those of before: of a longer one, its start;
of a tool's, the words of the rest once each."""


class SegmentCodec:
    """Segments as blocks."""

    def size(self, block: Segment) -> int:
        return len(block)

    def weight(self, block: Segment) -> int:
        return block.nbytes

    def encode(self, block: Segment) -> bytes:
        return encode_segment(block)

    def decode(self, data: bytes) -> Segment:
        return decode_segment(data)

    def hold(self, block: Segment) -> Segment:
        return block

    def merge(self, blocks: Sequence[Segment]) -> Segment:
        return merge_segments(blocks)

    def drop(self, block: Segment, lost: Set[str]) -> Segment | None:
        return drop_turns(block, lost)


SEGMENTS = SegmentCodec()


class SegmentCache(BlockCache[Segment]):
    """Decoded parts of the index. They never change, so they can be kept."""

    def __init__(self) -> None:
        super().__init__(SEGMENTS)


def segments_of(user_id: str) -> BlockScope:
    return BlockScope("segments", (("user_id", user_id),))


def turn_state(reader: Reader, user_id: str) -> tuple[bytes, ...]:
    """Which turns of a user the index holds: where two states are equal, none was added or forgotten in between."""
    return read_state(reader, segments_of(user_id))


@lru_cache(maxsize=1024)
def _moment(ts: str) -> tuple[date, int]:
    """The day of a time stamp, and its seconds since 1970: turns that are written together often share it."""
    moment = parse_instant(ts)
    return moment.date(), int(moment.timestamp())


@remembered(1024)
def _voice(speaker: str) -> str:
    """Who speaks, as the index knows them."""
    return f"{term_hash(speaker):016x}"


def _reach(entry: LedgerEntry) -> int:
    """How many characters of a turn are analysed: as many as its entry says, since the policy may change."""
    return TEXT_CHARS_MAX if entry.analysed_chars is None else entry.analysed_chars


class ReadText(NamedTuple):
    """What was made of a long text before the transaction that writes it."""

    passages: Sequence[ReadPassage]
    """Of the part of it that is analysed."""
    rest: Sequence[int]
    """The hashes of the words behind that part."""


def _rest_terms(rest: str, tool: ToolCall | Mapping[str, Any] | None, metadata: Any, *, is_told: bool) -> Sequence[int]:
    """The hashes of the words behind what is analysed: of a tool's result, and where the entry says how far it was."""
    is_call = tool is not None and not is_chunk(tool, metadata)
    return list(term_hashes(analyze(further_words(rest)))) if rest and (is_call or is_told) else ()


def indexed(entry: LedgerEntry, text: str, read: ReadText | None = None) -> IndexedTurn:
    """A turn as the index holds it. `read` is what was made of its text before, if it was."""
    day, seconds = _moment(entry.ts)
    reach = _reach(entry)
    passages = index_text(text[:reach], day, None if read is None else read.passages)
    is_call = entry.tool is not None and not is_chunk(entry.tool, entry.metadata)
    told = [*term_hashes(analyze(call_words(entry.tool)))] if is_call and entry.tool is not None else []  # TM-03
    if read is not None:
        rest = read.rest
    else:
        rest = _rest_terms(text[reach:], entry.tool, entry.metadata, is_told=entry.analysed_chars is not None)
    if is_call or told or rest:
        length, terms = passages[0]
        marks = call_marks(entry.tool, text) if is_call and entry.tool is not None else []
        passages[0] = IndexedPassage(length + len(told) + len(rest), [*terms, *told, *rest, *term_hashes(marks)])
    fields = field_terms(entry.metadata)
    if fields:
        passages[0] = passages[0]._replace(terms=[*passages[0].terms, *fields])
    voice = _voice(speaker_of(entry))
    return IndexedTurn(entry.id, entry.scope.session_id, entry.seq, voice, entry.role, seconds, passages)


def index_turns(
    tx: Transaction,
    user_id: str,
    turns: Iterable[tuple[LedgerEntry, str]],
    kept: tuple[str, BlockCache[Segment]] | None = None,
    read: Mapping[str, ReadText] = MappingProxyType({}),
) -> None:
    """Add turns, each with its full text, to the user's index, in the transaction that writes them.

    `read` is what was made of some of their texts before it, by id: the longer ones should not hold its locks.
    """
    made = [indexed(entry, text, read.get(entry.id)) for entry, text in turns]
    if made:
        tx.do(Lock(("index", user_id)))
        append_block(tx, segments_of(user_id), SEGMENTS, build_segment(made), kept)


def unindex(tx: Transaction, lost: Sequence[str]) -> int:
    """Take turns out of their users' indexes; answers how many blocks were made anew."""
    changed = 0
    for user_id, ids in sorted(_by_user(tx, lost).items()):
        tx.do(Lock(("index", user_id)))
        changed += drop_from_blocks(tx, segments_of(user_id), SEGMENTS, ids)
    return changed


def reindex_user(tx: Transaction, tenant_id: str, user_id: str) -> int:
    """Make the user's index anew from the ledger; answers how many turns it holds."""
    tx.do(Lock(("index", user_id)))
    tx.do(Delete("segments", (("user_id", "=", user_id),)))
    _take_off_backlog(tx, user_id)
    order = ("recorded_at", "user_id", "session_id", "seq")
    held: list[IndexedTurn] = []
    count = 0
    for row in stream(tx, ENTRIES, (("user_id", "=", user_id),), order=order):
        entry = entry_of_row(tenant_id, row)
        if is_turn(entry):
            held.append(indexed(entry, text_of(tx, entry)))
            count += 1
    for portion in chunked(held, _TURNS_AT_ONCE):
        append_block(tx, segments_of(user_id), SEGMENTS, build_segment(portion))
    return count


def _take_off_backlog(tx: Transaction, user_id: str) -> None:
    """What waited for the index waits for its vectors now, as what did before: those are not made from the ledger."""
    of_user: Condition = ("user_id", "=", user_id)
    rows = select(tx, BACKLOG, (of_user, FOR_INDEX))
    if rows:
        tx.do(Delete("backlog", (of_user, FOR_INDEX)))
        put(tx, BACKLOG, [for_vectors(rows[-1])])


class _TurnKey(NamedTuple):
    id: str
    kind: str
    role: str
    session_id: str
    seq: int


def _waiting(reader: Reader, user_id: str) -> dict[str, list[range]]:
    """By session, which entries of a user were loaded in bulk and are not indexed yet."""
    found: dict[str, list[range]] = {}
    for row in stream(reader, BACKLOG, (("user_id", "=", user_id), FOR_INDEX)):
        found.setdefault(row.session_id, []).append(range(row.first, row.last + 1))
    return found


def index_fault(reader: Reader, tenant_id: str, user_id: str, *, is_complete: bool = True) -> str | None:
    """What of a user's index is not what the ledger gives, block by block; None where it is.

    What another version of the analyzer has indexed cannot be made again: of that, only which turns there are.
    `is_complete`: every turn should be in it, apart from the backlog.
    """
    held: set[str] = set()
    place = segments_of(user_id)
    for entry in list_blocks(reader, place):
        try:
            (data,) = read_data(reader, place, [entry])
            segment = decode_segment(data)
        except StoreDamaged as error:
            return error.message
        ids = list(segment.ids)
        if len(ids) != entry.turns:
            return f"the index from turn {entry.first} on holds another number of turns than it says"
        if not held.isdisjoint(ids):
            return f"turns stand twice in the index, again from {entry.first} on"
        held.update(ids)
        if is_outdated(data):
            continue
        rows = {row.id: row for row in by_ids(reader, ENTRIES, ids)}
        turns = [entry_of_row(tenant_id, rows[id_]) for id_ in ids if id_ in rows and rows[id_].user_id == user_id]
        made = [indexed(turn, text_of(reader, turn)) for turn in turns if is_turn(turn)]
        if len(made) != len(ids) or encode_segment(build_segment(made)) != data:
            return f"the index from turn {entry.first} on is not what was said"
    where: tuple[Condition, ...] = (("user_id", "=", user_id), ("receipt_id", "=", None))
    waiting = _waiting(reader, user_id)
    for row in stream(reader, ENTRIES, where, into=_TurnKey):
        if can_be_turn(row.kind, row.role) and not any(row.seq in each for each in waiting.get(row.session_id, ())):
            if is_complete and row.id not in held:
                return f"the turn {row.id} is not in the index"
            held.discard(row.id)
    return f"the turn {min(held)} in the index is none" if held else None


def index_rows(tx: Transaction, tenant_id: str, rows: Sequence[EntryRow]) -> None:
    """Index imported entries, in the transaction that writes them and their blobs."""
    turns: dict[str, list[tuple[LedgerEntry, str]]] = {}
    for row in rows:
        entry = entry_of_row(tenant_id, row)
        if is_turn(entry):
            turns.setdefault(entry.scope.user_id, []).append((entry, text_of(tx, entry)))
    for user_id in sorted(turns):
        index_turns(tx, user_id, turns[user_id])


# Vectors bring numpy's typing and an embedder's blocks: a store without an embedder loads none of it.


class _Prepared(NamedTuple):
    """What is made of a draft before its transaction: of a long text all it says; a vector, if there is an embedder."""

    read: ReadText | None
    vector: Any


READ_BEFORE_CHARS = 2_000
"""A text of so many characters is read before the transaction that writes it: a shorter one is read in no time."""


def _read_before(admitted: Admitted) -> ReadText | None:
    text, body = admitted.text, admitted.body
    if len(text) <= READ_BEFORE_CHARS:
        return None
    reach = body.get("analysed_chars", TEXT_CHARS_MAX)
    is_told = "analysed_chars" in body
    rest = _rest_terms(text[reach:], body.get("tool"), body.get("metadata"), is_told=is_told)
    return ReadText(read_text(text[:reach]), rest)


class RecallIndex:
    """See `TurnIndex`. What is prepared of a draft is its vector, and what was read of a long text."""

    def prepare(self, ctx: Context, drafts: Sequence[EntryDraft], admitted: Sequence[Admitted]) -> Mapping[int, Any]:
        places = [place for place, draft in enumerate(drafts) if can_be_turn(draft.kind, draft.role)]
        if ctx.embedder is None:
            long = [at for at in places if len(drafts[at].content) > READ_BEFORE_CHARS]
            return {at: _Prepared(_read_before(admitted[at]), None) for at in long}
        if not places:
            return {}
        from muniment.memory.vectoring import embed_turns

        said = [(speaker_told(admitted[at].body, drafts[at].role), admitted[at].text) for at in places]
        vectors = zip(places, embed_turns(ctx.embedder, said), strict=True)
        return {at: _Prepared(_read_before(admitted[at]), vector) for at, vector in vectors}

    def add(
        self,
        ctx: Context,
        tx: Transaction,
        scope: Scope,
        said: Sequence[tuple[LedgerEntry, str]],
        prepared: Sequence[tuple[str, Any]],
    ) -> None:
        read = {id_: made.read for id_, made in prepared if made.read is not None}
        index_turns(tx, scope.user_id, said, (scope.tenant_id, ctx.cache(SegmentCache)), read)
        if ctx.embedder is not None and prepared:
            import numpy as np

            from muniment.memory.vectoring import VectorCache, add_vectors

            ids, vectors = zip(*[(id_, made.vector) for id_, made in prepared], strict=True)
            kept = (scope.tenant_id, ctx.cache(VectorCache))
            add_vectors(tx, scope.user_id, ctx.embedder, ids, np.stack(vectors), kept)

    def add_rows(self, tx: Transaction, tenant_id: str, rows: Sequence[EntryRow]) -> None:
        index_rows(tx, tenant_id, rows)

    def remove(self, tx: Transaction, entry_ids: Sequence[str]) -> dict[str, int]:
        from muniment.memory.vectoring import remove_vectors

        return {
            "segments": unindex(tx, entry_ids),
            "vectors": remove_vectors(tx, users_of(tx, entry_ids), frozenset(entry_ids)),
        }

    def outdated(self, reader: Reader, users: Sequence[str] | None = None) -> int:
        asked: list[tuple[Condition, ...]] = [()]
        if users is not None:
            asked = [(("user_id", "in", some),) for some in chunked(users)]
        rows = (row for where in asked for row in stream(reader, SEGMENT_ROWS, where))
        return len({row.user_id for row in rows if is_outdated(row.data)})

    def fault(self, reader: Reader, tenant_id: str, user_id: str, *, is_complete: bool = True) -> str | None:
        return index_fault(reader, tenant_id, user_id, is_complete=is_complete)

    def rebuild(self, tx: Transaction, tenant_id: str, user_id: str) -> int:
        return reindex_user(tx, tenant_id, user_id)
