"""What ranking knows of a scope: arrays over its turns and postings of their terms, in memory or over segments."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from muniment.core.canonical import digest
from muniment.core.text.analyzer import analyze, ascii_words, term_hash, term_hashes
from muniment.core.text.names import name_terms
from muniment.core.text.passages import passage_spans
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.stated.attributes import marks
from muniment.core.text.stated.measures import value_marks
from muniment.core.text.times.turn_dates import date_terms
from muniment.memory.recall.segments import ROLES as STORED_ROLES
from muniment.memory.recall.segments import IndexedPassage, Segment, join_names

__all__ = [
    "FIELDS_KEY",
    "FIELDS_MAX",
    "FIELD_CHARS_MAX",
    "ONLY_ASKS",
    "QUESTION",
    "ROLES",
    "Floats",
    "Ints",
    "Kept",
    "MemoryIndex",
    "Parts",
    "ReadPassage",
    "ScopeIndex",
    "SpokenTurn",
    "StoredIndex",
    "field_term",
    "field_terms",
    "index_text",
    "read_text",
    "role_number",
]

Ints = npt.NDArray[np.integer]
Floats = npt.NDArray[np.floating]

ROLES = ("user", "assistant", "other")
"""Who speaks, as the array `role` numbers them."""

QUESTION = "#q"
"""The term of a turn that ends by asking."""

ONLY_ASKS = 2
"""How often that term counts where there is nothing but the question."""

_SENTENCE_END = lazy_pattern(r"[.!?;。！？\n]")

_EMPTY: tuple[Ints, Ints] = (np.empty(0, np.int32), np.empty(0, np.int32))
_KEPT_MAX = 32
"""A store has one policy, or a few: more is let go of."""

T = TypeVar("T")

# -- fields: short words such as `topic="food"` that an event lists, and is told from others by -------

FIELDS_KEY = "muniment:fields"
"""Under this key of an event's metadata stands the list of its fields."""
FIELDS_MAX, FIELD_CHARS_MAX = 256, 256
"""What of the list is indexed: so many of them, none longer than this."""
_OWN_RANGE = 0xFFFFFF << 40
"""The highest range of the hashes of terms: of sixteen million words that somebody says, about one falls into it."""


def field_terms(metadata: Mapping[str, Any]) -> list[int]:
    """The terms of the fields that an event lists; what is no list of short words has none."""
    listed = metadata.get(FIELDS_KEY)
    if not isinstance(listed, list | tuple):
        return []
    fields = [each for each in listed if isinstance(each, str) and 0 < len(each) <= FIELD_CHARS_MAX]
    return [field_term(field) for field in dict.fromkeys(fields[:FIELDS_MAX])]


def field_term(field: str) -> int:
    """The term of a field."""
    return _OWN_RANGE | int.from_bytes(digest(field.encode())[:5], "big")


def _without_fields(terms: frozenset[int]) -> frozenset[int]:
    """What is left of the terms of a turn without those of its fields."""
    return frozenset([term for term in terms if term < _OWN_RANGE]) if max(terms, default=0) >= _OWN_RANGE else terms


# -- turns --------------------------------------------------------------------------------------------


def role_number(role: str) -> int:
    return ROLES.index(role) if role in ROLES else len(ROLES) - 1


class Parts(NamedTuple):
    """The passages of turns of which some have several, in ordinal order; those of a turn stand side by side."""

    turn: Ints
    """Whose passage it is, an ordinal."""
    first: Ints
    """For each turn, the number of its first passage."""
    length: Ints
    """How many terms it has, with repetitions."""

    def of(self, turns: Ints) -> tuple[Ints, Ints]:
        """The passages of some turns, turn by turn; and where those of each begin."""
        sizes = np.append(self.first, len(self.turn))[turns + 1] - self.first[turns]
        starts: Ints = np.cumsum(sizes) - sizes
        return np.arange(int(np.add.reduce(sizes))) + (self.first[turns] - starts).repeat(sizes), starts


class ScopeIndex(Protocol):
    """The turns of one scope, as arrays of equal length N in ordinal order, and their postings."""

    @property
    def session(self) -> Ints:
        """The number of the turn's session: equal for turns of one session, which lie side by side."""

    @property
    def speaker(self) -> Ints:
        """An index into `speakers`."""

    @property
    def role(self) -> Ints:
        """An index into `ROLES`."""

    @property
    def ts(self) -> Ints:
        """When it was said, in whole seconds since 1970 UTC."""

    @property
    def length(self) -> Ints:
        """How many terms it has, with repetitions (`index_text` gives it)."""

    @property
    def parts(self) -> Parts | None:
        """Their passages; None where each turn is one."""

    @property
    def speakers(self) -> Sequence[str]:
        """The names of those who speak in the scope."""

    def prepare(self, terms: Sequence[int]) -> None:
        """Look up terms that will be asked for, all at once."""

    def postings(self, term: int) -> tuple[Ints, Ints]:
        """The ordinals whose own text has the term (hash), ascending, and how often each has it."""

    def part_postings(self, term: int) -> tuple[Ints, Ints]:
        """The numbers of the passages that have the term, ascending, and how often each has it."""

    def terms(self, ordinal: int) -> frozenset[int]:
        """The hashes of the turn's own terms; asked for a handful of turns of a query."""

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` works out of the index alone and `key`: done once, as its turns never change."""


class Kept:
    """The part of an index that keeps what was worked out of it. By any thread: at worst two make the same."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _KEPT_MAX:
                self._kept = {}
            found = self._kept[key] = make()
        return cast("T", found)


class ReadPassage(NamedTuple):
    """A passage as it is read whenever it was said: all but the days that it speaks of."""

    text: str
    ascii_words: list[str] | None
    terms: list[str]
    told: list[str]
    names: list[str]


def read_text(text: str) -> list[ReadPassage]:
    """The passages of a text, read; one of nothing for an empty text."""
    spans = passage_spans(text)
    if len(spans) < 2:
        return [_read(text)]
    return [_read(text[start:end]) for start, end in spans]


def _read(text: str) -> ReadPassage:
    words = ascii_words(text) if text.isascii() else None
    terms = analyze(text, words)
    told = [*marks(text, terms), *value_marks(text, words)]
    return ReadPassage(text, words, terms, told, name_terms(text))


def index_text(text: str, said: date, read: Sequence[ReadPassage] | None = None) -> list[IndexedPassage]:
    """What is indexed for a turn: for each of its passages the hashes of its terms, each as often as it counts.

    The words of the passage, the dates that its "yesterday" and "last May" meant on the day it was said, what it states
    of a person and the kinds of the values that it states (`core.text.stated`), what the spellings of the names in it
    have in common; in the last one a mark if the turn asks. Only words count towards the length. An empty turn is one
    passage of nothing. `read` is what `read_text` made of it, where that was done before.
    """
    passages = read_text(text) if read is None else read
    asks, last = _asks(text), len(passages) - 1
    return [_passage(each, said, asks if at == last else []) for at, each in enumerate(passages)]


def _passage(read: ReadPassage, said: date, asks: list[str]) -> IndexedPassage:
    days = date_terms(read.text, said, read.ascii_words)
    return IndexedPassage(len(read.terms), list(term_hashes([*read.terms, *days, *read.told, *read.names, *asks])))


def _asks(text: str) -> list[str]:
    body = text.rstrip(" \t\r\n\"')]*”’")
    if not body.endswith(("?", "？")):
        return []
    return [QUESTION] if _SENTENCE_END.search(body, 0, len(body) - 1) else [QUESTION] * ONLY_ASKS


class SpokenTurn(NamedTuple):
    """A turn as it comes to be indexed."""

    session: str
    speaker: str
    role: str
    said_at: datetime
    text: str


class MemoryIndex(Kept):
    """A scope's index in memory, built once from its turns; they are given in ordinal order."""

    def __init__(self, turns: Iterable[SpokenTurn]) -> None:
        super().__init__()
        sessions: dict[str, int] = {}
        speakers: dict[str, int] = {}
        rows: list[tuple[int, int, int, int, int]] = []
        extents: list[int] = []
        gathered: dict[int, tuple[list[int], list[int]]] = {}
        self._terms: list[frozenset[int]] = []
        for turn in turns:
            said_at = turn.said_at.astimezone(UTC)
            passages = index_text(turn.text, said_at.date())
            rows.append(
                (
                    sessions.setdefault(turn.session, len(sessions)),
                    speakers.setdefault(turn.speaker, len(speakers)),
                    role_number(turn.role),
                    int(said_at.timestamp()),
                    len(passages),
                )
            )
            self._terms.append(frozenset(term for passage in passages for term in passage.terms))
            for passage in passages:
                for term, count in Counter(passage.terms).items():
                    numbers, counts = gathered.setdefault(term, ([], []))
                    numbers.append(len(extents))
                    counts.append(count)
                extents.append(passage.length)
        table = np.array(rows, np.int64).reshape(-1, 5)
        self.session: Ints = table[:, 0].astype(np.int32)
        self.speaker: Ints = table[:, 1].astype(np.int32)
        self.role: Ints = table[:, 2].astype(np.int8)
        self.ts: Ints = np.ascontiguousarray(table[:, 3])
        self.parts, self.length = _measured(table[:, 4], np.array(extents, np.int32))
        self.speakers: Sequence[str] = tuple(speakers)
        self._postings: dict[int, tuple[Ints, Ints]] = {
            term: (np.array(numbers, np.int32), np.array(counts, np.int32))
            for term, (numbers, counts) in gathered.items()
        }

    def prepare(self, terms: Sequence[int]) -> None:
        """Do nothing: the postings of all terms are at hand."""

    def part_postings(self, term: int) -> tuple[Ints, Ints]:
        return self._postings.get(term, _EMPTY)

    def postings(self, term: int) -> tuple[Ints, Ints]:
        return _by_turn(self.parts, *self.part_postings(term))

    def terms(self, ordinal: int) -> frozenset[int]:
        return self._terms[ordinal]


def _measured(counts: Ints, extents: Ints) -> tuple[Parts | None, Ints]:
    """The passages of turns that have so many each, and the lengths of the turns."""
    if len(counts) == len(extents):
        return None, extents
    first = np.zeros(len(counts), np.int64)
    np.cumsum(counts[:-1], out=first[1:])
    turn = np.arange(len(counts), dtype=np.int32).repeat(counts)
    return Parts(turn, first, extents), np.add.reduceat(extents, first).astype(np.int32)


def _by_turn(parts: Parts | None, numbers: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """The turns of some passages, each once, and how often it has what they have."""
    if parts is None or not len(numbers):
        return numbers, counts
    turns = parts.turn[numbers]
    starts = np.flatnonzero(np.concatenate(([True], turns[1:] != turns[:-1])))
    if len(starts) == len(turns):
        return turns, counts
    return turns[starts], np.add.reduceat(counts, starts)


POSTINGS_KEPT = 1 << 20
"""Postings that were looked up are kept until there are so many of them: a search asks for a term several times."""
TERMS_KEPT = 4096
"""Terms of turns that were looked up are kept until there are so many of them."""
_ROLE_NAMES = {f"{term_hash(role):016x}": role for role in STORED_ROLES}
"""Who speaks without a name goes by their role."""
Names = Callable[[Sequence[str]], Sequence[str]]
"""From ids of turns to the names of those who spoke them."""


class StoredIndex(Kept):
    """The turns of one user. Built once for a state of the segments, then only read, by any thread."""

    def __init__(self, segments: Sequence[Segment], names: Names) -> None:
        super().__init__()
        self._segments = segments
        self._starts, self._part_starts = [0], [0]
        for segment in segments:
            self._starts.append(self._starts[-1] + len(segment))
            self._part_starts.append(self._part_starts[-1] + len(segment.extents))
        sessions, session = join_names([(segment.sessions, segment.session) for segment in segments])
        voices, speaker = join_names([(segment.speakers, segment.speaker) for segment in segments])
        ts = _joined(segments, "ts").astype(np.int64, copy=False)
        self.session_ids, rank = _ranks(sessions, session, ts)
        order = _order(rank, _joined(segments, "seq"))
        self._order = order
        self._place: Ints | None = None
        """Numbers of passages by their number in the order of writing; None where the two are the same."""
        if order is not None:
            rank, ts = rank[order], ts[order]
            voices, speaker = _by_first_turn(voices, speaker[order])
        self.session: Ints = rank.astype(np.int32)
        self.ts: Ints = ts
        self.role: Ints = self._ordered("role").astype(np.int8)
        self.parts, self.length = self._measure()
        self.speaker: Ints = speaker.astype(np.int32)
        self.speakers: Sequence[str] = self._speaker_names(voices, names)
        self._directory = _Directory(segments)
        self._postings: dict[int, tuple[tuple[Ints, Ints], tuple[Ints, Ints]]] = {}
        """Of passages, and of turns."""
        self._postings_kept = 0
        self._terms: dict[int, frozenset[int]] = {}
        self._aligned: tuple[Hashable, Ints | slice | None] | None = None

    def _speaker_names(self, voices: Sequence[str], names: Names) -> tuple[str, ...]:
        """Who speaks, in order: a role by its hash, anybody else by what the ledger says of their first turn."""
        named = [_ROLE_NAMES.get(voice) for voice in voices]
        unknown = [number for number, name in enumerate(named) if name is None]
        if unknown:
            first = [self.id(int((self.speaker == number).argmax())) for number in unknown]
            for number, name in zip(unknown, names(first), strict=True):
                named[number] = name
        return tuple([name or "" for name in named])

    def __len__(self) -> int:
        return self._starts[-1]

    def session_number(self, session_id: str) -> int | None:
        """The number of a session; None of one that has no turn."""
        return self.kept("session numbers", lambda: {name: at for at, name in enumerate(self.session_ids)}).get(
            session_id
        )

    def session_span(self, number: int) -> tuple[int, int]:
        """The ordinals of a session's turns: from the first up to before the second."""
        begin, end = self.session.searchsorted((number, number + 1))
        return int(begin), int(end)

    def _measure(self) -> tuple[Parts | None, Ints]:
        """The passages and the lengths of the turns; and where passages stand that were written in another order."""
        counts = _joined(self._segments, "parts").astype(np.int64)
        extents = _joined(self._segments, "extents").astype(np.int32)
        if self._order is not None:
            ends = np.cumsum(counts)
            lasting = counts[self._order]
            before = np.cumsum(lasting) - lasting
            written = np.arange(len(extents)) + ((ends - counts)[self._order] - before).repeat(lasting)
            self._place = np.empty(len(extents), np.int32)
            self._place[written] = np.arange(len(extents), dtype=np.int32)
            counts, extents = lasting, extents[written]
        return _measured(counts, extents)

    def _ordered(self, name: str) -> Ints:
        joined = _joined(self._segments, name)
        return joined if self._order is None else joined[self._order]

    def _find(self, ordinal: int) -> tuple[Segment, int]:
        """The segment that holds a turn, and its number there."""
        number = ordinal if self._order is None else int(self._order[ordinal])
        block = bisect_right(self._starts, number) - 1
        return self._segments[block], number - self._starts[block]

    def id(self, ordinal: int) -> str:
        """The event that the turn is."""
        segment, number = self._find(ordinal)
        return segment.ids[number]

    def ids(self) -> list[str]:
        """All events, in ordinal order."""
        flat = [id_ for segment in self._segments for id_ in segment.ids]
        return flat if self._order is None else [flat[number] for number in self._order.tolist()]

    def newest(self, among: npt.NDArray[np.bool_], count: int) -> list[int]:
        """The ordinals of the newest of some turns, newest first."""
        (ordinals,) = among.nonzero()
        found: list[int] = ordinals[np.lexsort((-ordinals, -self.ts[ordinals]))][:count].tolist()
        return found

    def aligned(self, state: Hashable, blocks: Sequence[Sequence[str]]) -> Ints | slice | None:
        """For each turn its place among the ids of `blocks`, end to end: rows kept elsewhere, in ordinal order.

        None where one is missing. `state` names what stands in the blocks: for the same one, nothing is compared again.
        """
        aligned = self._aligned
        if aligned is None or aligned[0] != state:
            aligned = self._aligned = state, self._places(blocks)
        return aligned[1]  # not what another thread may have put there meanwhile

    def _places(self, blocks: Sequence[Sequence[str]]) -> Ints | slice | None:
        if self._order is None and [segment.ids for segment in self._segments] == blocks:
            return slice(None)  # written together, and in the order of the turns
        places = {id_: place for place, id_ in enumerate(id_ for ids in blocks for id_ in ids)}
        found = [places.get(id_, -1) for id_ in self.ids()]
        return None if -1 in found else np.array(found, np.int64)

    def prepare(self, terms: Sequence[int]) -> None:
        fresh = [term for term in terms if term not in self._postings]
        if fresh:
            self._fetched(fresh)

    def postings(self, term: int) -> tuple[Ints, Ints]:
        found = self._postings.get(term)
        return (self._fetched([term])[0] if found is None else found)[1]

    def part_postings(self, term: int) -> tuple[Ints, Ints]:
        found = self._postings.get(term)
        return (self._fetched([term])[0] if found is None else found)[0]

    def _fetched(self, terms: Sequence[int]) -> list[tuple[tuple[Ints, Ints], tuple[Ints, Ints]]]:
        passages = [self._looked_up(places) if places else _EMPTY for places in self._directory.places(terms)]
        found = [(held, _by_turn(self.parts, *held)) for held in passages]
        if self._postings_kept > POSTINGS_KEPT:
            self._postings, self._postings_kept = {}, 0
        self._postings.update(zip(terms, found, strict=True))
        self._postings_kept += sum([len(numbers) + 16 for numbers, _ in passages]) * (1 if self.parts is None else 2)
        return found

    def _looked_up(self, places: Sequence[tuple[int, int, int]]) -> tuple[Ints, Ints]:
        docs: list[Ints] = []
        counts: list[Ints] = []
        for block, begin, end in places:
            terms = self._segments[block].terms
            start = self._part_starts[block]
            docs.append(terms.docs[begin:end] + np.uint32(start) if start else terms.docs[begin:end])
            counts.append(terms.counts[begin:end])
        numbers = docs[0] if len(docs) == 1 else np.concatenate(docs)
        counted = (counts[0] if len(counts) == 1 else np.concatenate(counts)).astype(np.int32)
        if self._place is None:
            return numbers.view(np.int32), counted
        placed = self._place[numbers]
        sort = np.argsort(placed)
        return placed[sort], counted[sort]

    def terms(self, ordinal: int) -> frozenset[int]:
        found = self._terms.get(ordinal)
        if found is None:
            segment, number = self._find(ordinal)
            found = _without_fields(segment.terms_of(number))
            if len(self._terms) >= TERMS_KEPT:
                self._terms = {}
            self._terms[ordinal] = found
        return found


class _Directory:
    """Where the postings of each term lie, over all segments: one look instead of one for each of them."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        tables = [segment.terms for segment in segments]
        self._hashes = _flat([table.hashes for table in tables], np.uint64)
        self._offsets = tables[0].offsets if len(tables) == 1 else None
        """Of the one segment; of several, what follows."""
        if self._offsets is None:
            order = np.argsort(self._hashes, kind="stable")  # runs that are sorted already: a merge
            self._hashes = self._hashes[order]
            self._begins = _flat([table.offsets[:-1] for table in tables])[order]
            self._ends = _flat([table.offsets[1:] for table in tables])[order]
            sizes = [len(table.hashes) for table in tables]
            self._blocks = np.repeat(np.arange(len(tables), dtype=np.int32), sizes)[order]

    def places(self, terms: Sequence[int]) -> list[list[tuple[int, int, int]]]:
        """For each term its (segment, from, to) in the order of the segments."""
        wanted = np.array(terms, np.uint64)
        lefts = self._hashes.searchsorted(wanted)
        rights = self._hashes.searchsorted(wanted, side="right")
        if self._offsets is not None:
            spans = zip(self._offsets[lefts].tolist(), self._offsets[rights].tolist(), strict=True)
            return [[(0, begin, end)] if begin < end else [] for begin, end in spans]
        return [self._between(left, right) for left, right in zip(lefts.tolist(), rights.tolist(), strict=True)]

    def _between(self, left: int, right: int) -> list[tuple[int, int, int]]:
        if left == right:
            return []
        columns = (self._blocks, self._begins, self._ends)
        return list(zip(*[column[left:right].tolist() for column in columns], strict=True))


def _flat(arrays: Sequence[Ints], kind: type[np.integer] = np.uint32) -> Ints:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def _joined(segments: Sequence[Segment], name: str) -> Ints:
    return _flat([getattr(segment, name) for segment in segments], np.int64)


def _ranks(sessions: Sequence[str], session: Ints, ts: Ints) -> tuple[tuple[str, ...], Ints]:
    """The sessions by their first time stamp, then their id; and the place of each turn's session among them."""
    if len(sessions) < 2:
        return tuple(sessions), np.zeros(len(session), np.int64)
    starts = np.full(len(sessions), np.iinfo(np.int64).max)
    np.minimum.at(starts, session, ts)
    by_start = sorted(zip(starts.tolist(), sessions, range(len(sessions)), strict=True))
    ranks = np.empty(len(sessions), np.int64)
    ranks[[number for _, _, number in by_start]] = np.arange(len(sessions))
    return tuple([name for _, name, _ in by_start]), ranks[session]


def _by_first_turn(names: Sequence[str], numbers: Ints) -> tuple[tuple[str, ...], Ints]:
    """Names, and the numbers of them that turns have, renumbered by the first turn of each."""
    first = np.empty(len(names), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)  # of a number that is met again, the last one stays
    order = np.argsort(first)
    renumbered = np.empty(len(names), numbers.dtype)
    renumbered[order] = np.arange(len(names))
    return tuple([names[number] for number in order.tolist()]), renumbered[numbers]


def _order(rank: Ints, seq: Ints) -> Ints | None:
    """Numbers of turns in ordinal order; None where they were written in it."""
    place = (rank << 32) + seq  # a sequence number has 32 bits
    return None if (place[1:] > place[:-1]).all() else np.argsort(place, kind="stable")
