"""The search index of one scope: arrays over its turns and postings of their terms, in memory or over segments."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, date, datetime
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from muniment.core.canonical import digest
from muniment.core.text.analyzer import analyze, ascii_words, term_hash, term_hashes
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.times.turn_dates import date_terms
from muniment.memory._segments import ROLES as STORED_ROLES
from muniment.memory._segments import Segment, join_names, merge_segments

__all__ = [
    "FIELDS_KEY",
    "FIELDS_MAX",
    "FIELD_CHARS_MAX",
    "ONLY_ASKS",
    "QUESTION",
    "ROLES",
    "Floats",
    "Ints",
    "MemoryIndex",
    "ScopeIndex",
    "SpokenTurn",
    "StoredIndex",
    "field_term",
    "field_terms",
    "index_text",
    "role_number",
]

Ints = npt.NDArray[np.integer]
Floats = npt.NDArray[np.floating]

ROLES = ("user", "assistant", "other")
"""Speaker roles, as numbered in the array `role`."""

QUESTION = "#q"
"""The term of a turn that ends with a question."""

ONLY_ASKS = 2
"""The weight of that term if the turn is only a question."""

_SENTENCE_END = lazy_pattern(r"[.!?;。！？\n]")

_EMPTY: tuple[Ints, Ints] = (np.empty(0, np.int32), np.empty(0, np.int32))
_KEPT_MAX = 32
"""A store has one policy or a few; older entries beyond this are dropped."""

T = TypeVar("T")

# -- fields: short labels such as `topic="food"` that an event lists, for filtering -------

FIELDS_KEY = "muniment:fields"
"""The metadata key that holds an event's list of fields."""
FIELDS_MAX, FIELD_CHARS_MAX = 256, 256
"""Maximum number of fields indexed, and their maximum length."""
_OWN_RANGE = 0xFFFFFF << 40
"""The top range of term hashes; about one in sixteen million ordinary words falls into it."""


def field_terms(metadata: Mapping[str, Any]) -> list[int]:
    """The terms of an event's fields; empty unless its value is a list of short strings."""
    listed = metadata.get(FIELDS_KEY)
    if not isinstance(listed, list | tuple):
        return []
    fields = [each for each in listed if isinstance(each, str) and 0 < len(each) <= FIELD_CHARS_MAX]
    return [field_term(field) for field in dict.fromkeys(fields[:FIELDS_MAX])]


def field_term(field: str) -> int:
    """The term of a field."""
    return _OWN_RANGE | int.from_bytes(digest(field.encode())[:5], "big")


def _without_fields(terms: frozenset[int]) -> frozenset[int]:
    """The terms of a turn except those of its fields."""
    return frozenset([term for term in terms if term < _OWN_RANGE]) if max(terms, default=0) >= _OWN_RANGE else terms


# -- turns --------------------------------------------------------------------------------------------


def role_number(role: str) -> int:
    return ROLES.index(role) if role in ROLES else len(ROLES) - 1


class ScopeIndex(Protocol):
    """The turns of one scope, as arrays of equal length N in ordinal order, and their postings."""

    @property
    def session(self) -> Ints:
        """The number of the turn's session. Turns of one session are adjacent."""

    @property
    def speaker(self) -> Ints:
        """An index into `speakers`."""

    @property
    def role(self) -> Ints:
        """An index into `ROLES`."""

    @property
    def ts(self) -> Ints:
        """When it was sent, in whole seconds since 1970 UTC."""

    @property
    def length(self) -> Ints:
        """Its number of terms, repetitions included (see `index_text`)."""

    @property
    def speakers(self) -> Sequence[str]:
        """The names of the scope's speakers."""

    def prepare(self, terms: Sequence[int]) -> None:
        """Prefetch the postings of these terms in one go."""

    def postings(self, term: int) -> tuple[Ints, Ints]:
        """The ordinals of turns whose own text has the term (a hash), ascending, with the count in each."""

    def terms(self, ordinal: int) -> frozenset[int]:
        """The hashes of the turn's own terms; called for a handful of turns per query."""

    def written_number(self, ordinal: int) -> int:
        """The number of the turn in write order."""

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """A value that `make` derives from the index alone and `key`; cached, as the turns never change."""


class Kept:
    """Cache for values derived from an index. Usable from any thread: at worst two compute the same value."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _KEPT_MAX:
                self._kept = {}
            found = self._kept[key] = make()
        return cast("T", found)


def index_text(text: str, said: date) -> tuple[int, list[int]]:
    """The indexed form of a turn: its word count, and the hashes of its terms, repeated by weight.

    Terms are the words, the dates that its "yesterday" and "last May" meant on the day it was sent, and a mark if it is
    a question. Only words count towards the length.
    """
    spelled = ascii_words(text) if text.isascii() else None
    words = analyze(text, spelled)
    return len(words), list(term_hashes([*words, *date_terms(text, said, spelled), *_asks(text)]))


def _asks(text: str) -> list[str]:
    body = text.rstrip(" \t\r\n\"')]*”’")
    if not body.endswith(("?", "？")):
        return []
    return [QUESTION] if _SENTENCE_END.search(body, 0, len(body) - 1) else [QUESTION] * ONLY_ASKS


class SpokenTurn(NamedTuple):
    """A turn to be indexed."""

    session: str
    speaker: str
    role: str
    said_at: datetime
    text: str


class MemoryIndex(Kept):
    """A scope's index in memory, built once from its turns in ordinal order."""

    def __init__(self, turns: Iterable[SpokenTurn]) -> None:
        super().__init__()
        sessions: dict[str, int] = {}
        speakers: dict[str, int] = {}
        rows: list[tuple[int, int, int, int, int]] = []
        gathered: dict[int, tuple[list[int], list[int]]] = {}
        self._terms: list[frozenset[int]] = []
        for number, turn in enumerate(turns):
            said_at = turn.said_at.astimezone(UTC)
            length, terms = index_text(turn.text, said_at.date())
            rows.append(
                (
                    sessions.setdefault(turn.session, len(sessions)),
                    speakers.setdefault(turn.speaker, len(speakers)),
                    role_number(turn.role),
                    int(said_at.timestamp()),
                    length,
                )
            )
            counted = Counter(terms)
            self._terms.append(frozenset(counted))
            for term, count in counted.items():
                ordinals, counts = gathered.setdefault(term, ([], []))
                ordinals.append(number)
                counts.append(count)
        table = np.array(rows, np.int64).reshape(-1, 5)
        self.session: Ints = table[:, 0].astype(np.int32)
        self.speaker: Ints = table[:, 1].astype(np.int32)
        self.role: Ints = table[:, 2].astype(np.int8)
        self.ts: Ints = np.ascontiguousarray(table[:, 3])
        self.length: Ints = table[:, 4].astype(np.int32)
        self.speakers: Sequence[str] = tuple(speakers)
        self._postings: dict[int, tuple[Ints, Ints]] = {
            term: (np.array(ordinals, np.int32), np.array(counts, np.int32))
            for term, (ordinals, counts) in gathered.items()
        }

    def prepare(self, terms: Sequence[int]) -> None:
        """Do nothing: the postings of all terms are in memory."""

    def postings(self, term: int) -> tuple[Ints, Ints]:
        return self._postings.get(term, _EMPTY)

    def terms(self, ordinal: int) -> frozenset[int]:
        return self._terms[ordinal]

    def written_number(self, ordinal: int) -> int:
        return ordinal


POSTINGS_KEPT = 1 << 20
"""Maximum number of cached postings: a search asks for a term several times."""
TERMS_KEPT = 4096
"""Maximum number of turns whose terms are cached."""
_ROLE_NAMES = {f"{term_hash(role):016x}": role for role in STORED_ROLES}
"""Nameless speakers go by their role."""
RECENT_MAX, RECENT_SHARE = 32, 8
"""Limits on new segments: their number before a merge, and their share of all turns before the directory is rebuilt."""
Names = Callable[[Sequence[str]], Sequence[str]]
"""Maps turn ids to the names of their speakers."""


class StoredIndex(Kept):
    """The turns of one user. Immutable, so any thread may read it: `extended` and `without` return new indexes.

    Turns are numbered twice: in ordinal order, which the arrays follow, and in write order, in which their segments
    hold them. If the two agree, `_order` and `_place` are None.
    """

    def __init__(self, segments: Sequence[Segment], names: Names) -> None:
        super().__init__()
        self._segments: tuple[Segment, ...] = ()
        self._starts = [0]
        self._order: Ints | None = None
        """Write-order numbers, in ordinal order."""
        self._place: Ints | None = None
        """Ordinals by write-order number; -1 for turns of excluded sessions."""
        self._sessions: dict[str, int] = {}
        self._begun: Ints = np.empty(0, np.int64)
        """The time of each session's first turn."""
        self._voices: tuple[str, ...] = ()
        self._first: Ints = np.empty(0, np.int64)
        """The ordinal of each speaker's first turn."""
        self._seq: Ints = np.empty(0, np.int64)
        self.session: Ints = np.empty(0, np.int32)
        self.ts: Ints = np.empty(0, np.int64)
        self.role: Ints = np.empty(0, np.int8)
        self.length: Ints = np.empty(0, np.int32)
        self.speaker: Ints = np.empty(0, np.int32)
        self.speakers: Sequence[str] = ()
        self._directory, self._listed = _Directory(()), 0
        self._recent: dict[int, tuple[tuple[int, int, int], ...]] = {}
        """The locations of a term's postings in segments newer than the directory."""
        self._postings: dict[int, tuple[Ints, Ints]] = {}
        self._postings_kept = 0
        self._terms: dict[int, frozenset[int]] = {}
        if segments:
            self._add(segments, names)

    def __len__(self) -> int:
        return len(self.session)

    @property
    def session_ids(self) -> Sequence[str]:
        """Session ids, by session number."""
        return tuple(self._sessions)

    def extended(self, segments: Sequence[Segment], names: Names) -> StoredIndex:
        """The index with more turns. It costs a copy of the arrays: nothing is sorted or looked up again, unless a
        session turns out to begin earlier than known and changes its position.
        """
        if not segments:
            return self
        other = copy(self)
        other._kept = {}
        if not other._add(segments, names):
            return StoredIndex((*self._segments, *segments), names)
        added = {name for segment in segments for name in segment.sessions}
        for key, view in self._kept.items():
            if isinstance(view, StoredIndex) and isinstance(key, tuple) and added <= key[1]:
                other._kept[key] = view  # the excluded sessions have no new turns
        return other

    def without(self, sessions: frozenset[str]) -> StoredIndex:
        """The index as if these sessions had never existed; computed once."""
        numbers = [self._sessions[name] for name in sessions if name in self._sessions]
        return self.kept(("without", sessions), lambda: self._left_out(numbers)) if numbers else self

    def _left_out(self, numbers: Sequence[int]) -> StoredIndex:
        gone = np.zeros(len(self._sessions), bool)
        gone[numbers] = True
        stays = ~gone[self.session]
        other = copy(self)
        other._kept, other._terms = {}, {}
        other._postings, other._postings_kept = {}, 0
        left = [name for name, is_gone in zip(self._sessions, gone.tolist(), strict=True) if not is_gone]
        other._sessions = {name: number for number, name in enumerate(left)}
        other._begun = self._begun[~gone]
        other.session = (np.cumsum(~gone, dtype=np.int32) - 1)[self.session[stays]].astype(np.int32)
        other._seq, other.ts, other.role = self._seq[stays], self.ts[stays], self.role[stays]
        other._order = stays.nonzero()[0] if self._order is None else self._order[stays]
        other.length = self.length[stays]
        place = np.where(stays, np.cumsum(stays) - 1, -1).astype(np.int32)
        other._place = place if self._place is None else place[self._place]
        speaker = self.speaker[stays]
        spoken, first = np.unique(speaker, return_index=True)
        other._renumber_speakers(
            [self._voices[number] for number in spoken.tolist()],
            [self.speakers[number] for number in spoken.tolist()],
            spoken.searchsorted(speaker),
            first,
        )
        return other

    def _add(self, segments: Sequence[Segment], names: Names) -> bool:
        """Add the turns of some segments; return False if existing turns would change places."""
        more = _Written.of(segments)
        rank = self._rank_sessions(more)
        if rank is None:
            return False
        key = (rank << 32) + more.seq  # a sequence number has 32 bits
        sort = None if bool((key[1:] > key[:-1]).all()) else np.argsort(key, kind="stable")
        if sort is not None:
            rank, key = rank[sort], key[sort]
        size = len(self)
        last = (int(self.session[-1]) << 32) + int(self._seq[-1]) if size else -1
        is_behind = int(key[0]) > last
        at: Ints = np.full(len(key), size)
        if not is_behind:
            at = ((self.session.astype(np.int64) << 32) + self._seq).searchsorted(key)
        new = _Places(at, at + np.arange(len(key)), sort, is_behind)
        self.session = _inserted(self.session, new, rank)
        self._seq = _inserted(self._seq, new, new.sorted(more.seq))
        self.ts = _inserted(self.ts, new, new.sorted(more.ts))
        self.role = _inserted(self.role, new, new.sorted(more.role))
        self.length = _inserted(self.length, new, new.sorted(more.length))
        numbers = self._starts[-1] + (np.arange(len(key)) if sort is None else sort)
        is_in_order = self._order is None and is_behind and sort is None
        order = np.arange(size) if self._order is None else self._order
        self._order = None if is_in_order else _inserted(order, new, numbers)
        if not is_in_order:
            self._place_new(new, size)
        self._add_speakers(more, new, names, segments)
        listed, written = self._listed, self._starts[-1]
        self._add_segments(segments)
        if not is_behind:
            self._terms = {}
        if is_behind and self._listed == listed:
            self._add_postings(segments, written)
        else:
            self._postings, self._postings_kept = {}, 0
        return True

    def _rank_sessions(self, more: _Written) -> Ints | None:
        """Rank the sessions of new turns by first time stamp, then id; None if existing sessions would be reordered."""
        begun = np.full(len(more.sessions), np.iinfo(np.int64).max)
        np.minimum.at(begun, more.session, more.ts)
        starts = dict(zip(more.sessions, begun.tolist(), strict=True))
        known = self._sessions
        if not all(name in known and start >= self._begun[known[name]] for name, start in starts.items()):
            for name, start in zip(known, self._begun.tolist(), strict=True):
                starts[name] = min(start, starts.get(name, start))
            ordered = sorted(starts, key=lambda name: (starts[name], name))
            self._sessions = {name: number for number, name in enumerate(ordered)}
            moved = np.array([self._sessions[name] for name in known], np.int64)
            if not (moved[1:] > moved[:-1]).all():
                return None
            self._begun = np.array([starts[name] for name in ordered], np.int64)
            if len(moved) and moved[-1] != len(moved) - 1:
                self.session = moved[self.session].astype(np.int32)
        return np.array([self._sessions[name] for name in more.sessions], np.int64)[more.session]

    def _place_new(self, new: _Places, size: int) -> None:
        """Insert the new turns into the write-order mapping."""
        place = np.arange(size, dtype=np.int32) if self._place is None else self._place
        if not new.is_behind:
            place = place + new.at.searchsorted(place, side="right").astype(np.int32)
        fresh = np.empty(len(new.ordinals), np.int32)
        fresh[slice(None) if new.sort is None else new.sort] = new.ordinals
        self._place = np.concatenate((place, fresh))

    def _add_speakers(self, more: _Written, new: _Places, names: Names, segments: Sequence[Segment]) -> None:
        """Number the new speakers: a role by its hash, others by the ledger's name for their first turn."""
        numbers = {voice: number for number, voice in enumerate(self._voices)}
        spoke = np.array([numbers.setdefault(voice, len(numbers)) for voice in more.voices], np.int64)
        speaker = new.sorted(spoke[more.speaker])
        first = np.full(len(numbers), np.iinfo(np.int64).max)
        held = self._first
        first[: len(held)] = held if new.is_behind else held + new.at.searchsorted(held, side="right")
        np.minimum.at(first, speaker, new.ordinals)
        named = [*self.speakers, *(_ROLE_NAMES.get(voice) for voice in list(numbers)[len(held) :])]
        unknown = [number for number, name in enumerate(named) if name is None]
        if unknown:
            ids = [id_ for segment in segments for id_ in segment.ids]
            nth = first[unknown].tolist()
            by_ordinal = dict(zip(new.ordinals.tolist(), range(len(new.ordinals)), strict=True))
            sort = new.sort
            at = [by_ordinal[ordinal] if sort is None else int(sort[by_ordinal[ordinal]]) for ordinal in nth]
            for number, name in zip(unknown, names([ids[place] for place in at]), strict=True):
                named[number] = name
        self._renumber_speakers(
            list(numbers), [name or "" for name in named], _inserted(self.speaker, new, speaker), first
        )

    def _renumber_speakers(self, voices: Sequence[str], names: Sequence[str], speaker: Ints, first: Ints) -> None:
        """Number the speakers by their first turns."""
        order = np.argsort(first)
        if not (order[1:] > order[:-1]).all():
            numbers = np.empty(len(order), np.int32)
            numbers[order] = np.arange(len(order), dtype=np.int32)
            speaker, first = numbers[speaker], first[order]
        self._voices = tuple([voices[number] for number in order.tolist()])
        self.speakers = tuple([names[number] for number in order.tolist()])
        self._first, self.speaker = first, speaker.astype(np.int32, copy=False)

    def _add_segments(self, segments: Sequence[Segment]) -> None:
        """List the terms of new segments outside the directory; merge the segments and rebuild it if there are many."""
        total = len(self)
        recent = (*self._segments[self._listed :], *segments)
        size = sum(map(len, recent))
        if size * RECENT_SHARE > total:
            self._segments = (*self._segments[: self._listed], *recent)
            self._directory, self._listed, self._recent = _Directory(self._segments), len(self._segments), {}
        elif len(recent) > RECENT_MAX:
            merged = merge_segments(recent)
            self._segments = (*self._segments[: self._listed], merged)
            self._recent = _spans({}, [merged], self._listed)
        else:
            self._recent = _spans(self._recent, segments, len(self._segments))
            self._segments = (*self._segments, *segments)
        self._starts = [0, *accumulate(map(len, self._segments))]

    def _add_postings(self, segments: Sequence[Segment], start: int) -> None:
        """Update cached postings: turns numbered from `start` on are appended."""
        found, fresh = dict(self._postings), dict[int, list[tuple[Ints, Ints]]]()
        for segment in segments:
            hashes, offsets, docs, counts = segment.terms
            bounds = offsets.tolist()
            for term, begin, end in zip(hashes.tolist(), bounds, bounds[1:], strict=False):
                if term in found:
                    fresh.setdefault(term, []).append((docs[begin:end] + np.uint32(start), counts[begin:end]))
            start += len(segment)
        for term, pieces in fresh.items():
            more = self._placed(pieces)
            found[term] = _behind(found[term], more)
            self._postings_kept += len(more[0])
        self._postings = found

    def session_number(self, session_id: str) -> int | None:
        """The number of a session; None if it has no turn."""
        return self._sessions.get(session_id)

    def session_span(self, number: int) -> tuple[int, int]:
        """The half-open ordinal range of a session's turns."""
        begin, end = self.session.searchsorted((number, number + 1))
        return int(begin), int(end)

    def written_number(self, ordinal: int) -> int:
        return ordinal if self._order is None else int(self._order[ordinal])

    def _find(self, ordinal: int) -> tuple[Segment, int]:
        """The segment that holds a turn, and its number there."""
        number = self.written_number(ordinal)
        block = bisect_right(self._starts, number) - 1
        return self._segments[block], number - self._starts[block]

    def id(self, ordinal: int) -> str:
        """The event id of the turn."""
        segment, number = self._find(ordinal)
        return segment.ids[number]

    def ids(self) -> list[str]:
        """All event ids, in ordinal order."""
        flat = [id_ for segment in self._segments for id_ in segment.ids]
        return flat if self._order is None else [flat[number] for number in self._order.tolist()]

    def newest(self, among: npt.NDArray[np.bool_], count: int) -> list[int]:
        """The ordinals of the newest turns in a mask, newest first."""
        (ordinals,) = among.nonzero()
        found: list[int] = ordinals[np.lexsort((-ordinals, -self.ts[ordinals]))][:count].tolist()
        return found

    @property
    def written(self) -> int:
        """The number of turns written, excluded sessions included."""
        return self._starts[-1]

    def written_ids(self, start: int = 0) -> list[str]:
        """Event ids in write order from a number on, excluded sessions included."""
        block = bisect_right(self._starts, start) - 1
        ids = [id_ for segment in self._segments[block:] for id_ in segment.ids]
        return ids[start - self._starts[block] :]

    @property
    def written_order(self) -> Ints | slice:
        """The write-order number of each turn, in ordinal order."""
        return slice(None) if self._order is None else self._order

    def prepare(self, terms: Sequence[int]) -> None:
        fresh = [term for term in terms if term not in self._postings]
        if fresh:
            self._fetched(fresh)

    def postings(self, term: int) -> tuple[Ints, Ints]:
        found = self._postings.get(term)
        return self._fetched([term])[0] if found is None else found

    def _fetched(self, terms: Sequence[int]) -> list[tuple[Ints, Ints]]:
        listed = self._directory.places(terms)
        spans = [(*found, *self._recent.get(term, ())) for term, found in zip(terms, listed, strict=True)]
        found = [self._looked_up(places) if places else _EMPTY for places in spans]
        if self._postings_kept > POSTINGS_KEPT:
            self._postings, self._postings_kept = {}, 0
        self._postings.update(zip(terms, found, strict=True))
        self._postings_kept += sum([len(numbers) + 16 for numbers, _ in found])
        return found

    def _looked_up(self, places: Sequence[tuple[int, int, int]]) -> tuple[Ints, Ints]:
        pieces: list[tuple[Ints, Ints]] = []
        for block, begin, end in places:
            terms = self._segments[block].terms
            start = self._starts[block]
            docs = terms.docs[begin:end] + np.uint32(start) if start else terms.docs[begin:end]
            pieces.append((docs, terms.counts[begin:end]))
        return self._placed(pieces)

    def _placed(self, pieces: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
        """Convert write-order turn numbers and their term counts to ordinal order."""
        numbers = pieces[0][0] if len(pieces) == 1 else np.concatenate([docs for docs, _ in pieces])
        counts = pieces[0][1] if len(pieces) == 1 else np.concatenate([count for _, count in pieces])
        counted = counts.astype(np.int32)
        if self._place is None:
            return numbers.view(np.int32), counted
        placed = self._place[numbers]
        stays = placed >= 0
        if not stays.all():
            placed, counted = placed[stays], counted[stays]
        if (placed[1:] > placed[:-1]).all():
            return placed, counted
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


class _Written(NamedTuple):
    """The turns of some segments, concatenated as arrays."""

    sessions: tuple[str, ...]
    session: Ints
    voices: tuple[str, ...]
    speaker: Ints
    seq: Ints
    ts: Ints
    role: Ints
    length: Ints

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> _Written:
        sessions, session = join_names([(segment.sessions, segment.session) for segment in segments])
        voices, speaker = join_names([(segment.speakers, segment.speaker) for segment in segments])
        seq, ts, role = (_joined(segments, name) for name in ("seq", "ts", "role"))
        length = _joined(segments, "length").astype(np.int32)
        return cls(sessions, session, voices, speaker, seq.astype(np.int64), ts, role, length)


class _Places(NamedTuple):
    """The insertion positions of new turns."""

    at: Ints
    """The ordinal that each goes before, ascending."""
    ordinals: Ints
    """Their own ordinals."""
    sort: Ints | None
    """The permutation from write order to ordinal order; None if the two agree."""
    is_behind: bool
    """True if all go after the existing turns."""

    def sorted(self, values: Ints) -> Ints:
        return values if self.sort is None else values[self.sort]


def _inserted(held: Ints, new: _Places, values: Ints) -> Ints:
    if new.is_behind:
        return np.concatenate((held, values.astype(held.dtype, copy=False)))
    return np.insert(held, new.at, values)


def _behind(held: tuple[Ints, Ints], more: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    return np.concatenate((held[0], more[0])), np.concatenate((held[1], more[1]))


def _spans(
    held: Mapping[int, tuple[tuple[int, int, int], ...]], segments: Sequence[Segment], number: int
) -> dict[int, tuple[tuple[int, int, int], ...]]:
    """The postings locations of each term in segments, numbered from `number`, merged with those already held."""
    found = dict(held)
    for block, segment in enumerate(segments, number):
        offsets = segment.terms.offsets.tolist()
        for term, begin, end in zip(segment.terms.hashes.tolist(), offsets, offsets[1:], strict=False):
            found[term] = (*found.get(term, ()), (block, begin, end))
    return found


class _Directory:
    """The postings locations of each term over all segments: one lookup instead of one per segment."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        tables = [segment.terms for segment in segments]
        self._hashes = _flat([table.hashes for table in tables], np.uint64)
        self._offsets = tables[0].offsets if len(tables) == 1 else None
        """The offsets of a single segment; for several, the arrays below."""
        if self._offsets is None:
            order = np.argsort(self._hashes, kind="stable")  # concatenated sorted runs: effectively a merge
            self._hashes = self._hashes[order]
            self._begins = _flat([table.offsets[:-1] for table in tables])[order]
            self._ends = _flat([table.offsets[1:] for table in tables])[order]
            sizes = [len(table.hashes) for table in tables]
            self._blocks = np.repeat(np.arange(len(tables), dtype=np.int32), sizes)[order]

    def places(self, terms: Sequence[int]) -> list[list[tuple[int, int, int]]]:
        """The (segment, start, end) locations of each term, in segment order."""
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
