"""Segments: immutable blocks of the index over consecutive turns of one user, as arrays and as bytes.

A turn is indexed once, by the hashes of its own terms; neighbours' contributions are spread at query time. Segments are
always built whole: from turns, or from older segments (`merge_segments`). Equal turns give equal bytes.

    bytes = magic · the analyzer's version · length of the head · head (canonical JSON) · arrays, little-endian:
            `_LAYOUT`, `_POSTINGS`
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.canonical import canonical_bytes
from muniment.core.text.analyzer import ANALYZER_VERSION
from muniment.errors import IntegrityFailure

__all__ = [
    "ROLES",
    "IndexedTurn",
    "Postings",
    "Segment",
    "build_segment",
    "decode_segment",
    "drop_turns",
    "encode_segment",
    "is_outdated",
    "join_names",
    "merge_segments",
]

ROLES = ("user", "assistant", "tool")
COUNT_MAX = 65535
_MAGIC = b"MSEG"
_VERSION_BYTES = 2

Ints = npt.NDArray[Any]


class IndexedTurn(NamedTuple):
    """A turn in the index: its position, its speaker and its terms."""

    id: str
    session_id: str
    seq: int
    speaker: str
    """A key made of hashes; the index holds no names."""
    role: str
    ts: int
    """Seconds since 1970."""
    length: int
    """Its number of words, repetitions included."""
    terms: Sequence[int]
    """The result of `memory._index.index_text` for its text: hashes, repeated by weight."""


class Postings(NamedTuple):
    """Postings by term: hashes sorted, with the turns of term i at `offsets[i]:offsets[i+1]`."""

    hashes: Ints
    offsets: Ints
    docs: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive turns of one user: arrays by turn number, and the postings of their terms."""

    ids: tuple[str, ...]
    sessions: tuple[str, ...]
    speakers: tuple[str, ...]
    session: Ints
    seq: Ints
    speaker: Ints
    role: Ints
    ts: Ints
    length: Ints
    """The number of words of each turn, repetitions included."""
    terms: Postings
    analyzer: str = ANALYZER_VERSION
    """The analyzer version of the terms; an outdated one if parts of several versions were merged."""

    def __len__(self) -> int:
        return len(self.ids)

    def terms_of(self, number: int) -> frozenset[int]:
        """The terms of one turn. Scans all postings: less than a millisecond for a million."""
        (places,) = (self.terms.docs == number).nonzero()
        return frozenset(self.terms.hashes[self.terms.offsets.searchsorted(places, side="right") - 1].tolist())


_LAYOUT: tuple[tuple[str, str], ...] = (
    ("session", "<u4"),
    ("seq", "<u4"),
    ("speaker", "<u4"),
    ("role", "<u1"),
    ("ts", "<i8"),
    ("length", "<u4"),
)
_POSTINGS: tuple[tuple[str, str], ...] = (("hashes", "<u8"), ("offsets", "<u4"), ("docs", "<u4"), ("counts", "<u2"))


def build_segment(turns: Sequence[IndexedTurn]) -> Segment:
    """Build a segment over these turns, in this order."""
    ids, session_ids, seq, voices, roles, ts, lengths, terms = zip(*turns, strict=True)
    sessions, session = _numbered(session_ids)
    speakers, speaker = _numbered(voices)
    return Segment(
        ids=ids,
        sessions=sessions,
        speakers=speakers,
        session=session,
        seq=np.array(seq, "<u4"),
        speaker=speaker,
        role=np.array([*map(ROLES.index, roles)], "<u1"),
        ts=np.array(ts, "<i8"),
        length=np.array(lengths, "<u4"),
        terms=_postings(terms),
    )


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """The distinct names in order, and the index of each input among them."""
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return tuple(places), np.array([*map(places.__getitem__, names)], "<u4")


def _postings(of_turns: Sequence[Sequence[int]]) -> Postings:
    """Build postings. A term repeated in a turn is a run of equal (term, turn) pairs after sorting."""
    if len(of_turns) == 1:  # single turns are common, and a few numbers are faster without arrays
        counted = Counter(of_turns[0])
        terms = sorted(counted)
        return Postings(
            np.array(terms, "<u8"),
            np.arange(len(terms) + 1, dtype="<u4"),
            np.zeros(len(terms), "<u4"),
            np.array([min(counted[term], COUNT_MAX) for term in terms], "<u2"),
        )
    hashes = np.array([*chain.from_iterable(of_turns)], "<u8")
    docs = np.repeat(np.arange(len(of_turns), dtype="<u4"), [*map(len, of_turns)])
    order = hashes.argsort(kind="stable")
    hashes, docs = hashes[order], docs[order]
    first = _changes(hashes, docs)
    counts = np.diff(first, append=len(hashes))
    return _collected(hashes[first], docs[first], np.minimum(counts, COUNT_MAX))


def _changes(*columns: Ints) -> Ints:
    """Indexes of the rows that differ from the row before."""
    differs = np.ones(len(columns[0]), bool)
    if len(differs) > 1:
        np.logical_or.reduce([column[1:] != column[:-1] for column in columns], out=differs[1:])
    return differs.nonzero()[0]


def _grouped(hashes: Ints, docs: Ints, counts: Ints) -> Postings:
    """Postings from (term, turn, count) triples whose turns ascend."""
    order = hashes.argsort(kind="stable")
    return _collected(hashes[order], docs[order], counts[order])


def _collected(hashes: Ints, docs: Ints, counts: Ints) -> Postings:
    """Build postings from ordered triples."""
    first = _changes(hashes)
    offsets = np.empty(len(first) + 1, "<u4")
    offsets[:-1] = first
    offsets[-1] = len(hashes)
    return Postings(hashes[first], offsets, docs.astype("<u4", copy=False), counts.astype("<u2", copy=False))


def merge_segments(segments: Sequence[Segment]) -> Segment:
    """Merge several segments, in their order."""
    starts = np.cumsum([0, *(len(segment) for segment in segments)])
    sessions, session = join_names([(segment.sessions, segment.session) for segment in segments])
    speakers, speaker = join_names([(segment.speakers, segment.speaker) for segment in segments])
    return Segment(
        ids=tuple(id_ for segment in segments for id_ in segment.ids),
        sessions=sessions,
        speakers=speakers,
        session=session,
        seq=np.concatenate([segment.seq for segment in segments]),
        speaker=speaker,
        role=np.concatenate([segment.role for segment in segments]),
        ts=np.concatenate([segment.ts for segment in segments]),
        length=np.concatenate([segment.length for segment in segments]),
        terms=_merged([segment.terms for segment in segments], starts),
        analyzer=next((each.analyzer for each in segments if each.analyzer != ANALYZER_VERSION), ANALYZER_VERSION),
    )


def join_names(parts: Sequence[tuple[tuple[str, ...], Ints]]) -> tuple[tuple[str, ...], Ints]:
    """Merge name tables and renumber the references to them."""
    if len(parts) == 1:
        return parts[0]
    names: dict[str, int] = {}
    arrays: list[Ints] = []
    for table, numbers in parts:
        mapped = np.array([names.setdefault(name, len(names)) for name in table], "<u4")
        arrays.append(mapped[numbers] if len(numbers) else numbers)
    return tuple(names), np.concatenate(arrays) if arrays else np.empty(0, "<u4")


def _merged(parts: Sequence[Postings], starts: Ints) -> Postings:
    hashes = np.concatenate([np.repeat(part.hashes, np.diff(part.offsets)) for part in parts])
    docs = np.concatenate([part.docs + start for part, start in zip(parts, starts[:-1], strict=True)])
    return _grouped(hashes, docs, np.concatenate([part.counts for part in parts]))


def drop_turns(segment: Segment, lost: Set[str]) -> Segment | None:
    """The segment as if these turns had never been in it; None if it is empty."""
    kept = np.array([id_ not in lost for id_ in segment.ids], bool)
    if not kept.any():
        return None
    ids = tuple(id_ for id_ in segment.ids if id_ not in lost)
    sessions, session = _pruned(segment.sessions, segment.session[kept])
    speakers, speaker = _pruned(segment.speakers, segment.speaker[kept])
    return Segment(
        ids=ids,
        sessions=sessions,
        speakers=speakers,
        session=session,
        seq=segment.seq[kept],
        speaker=speaker,
        role=segment.role[kept],
        ts=segment.ts[kept],
        length=segment.length[kept],
        terms=_masked(segment.terms, kept),
        analyzer=segment.analyzer,
    )


def _pruned(names: tuple[str, ...], numbers: Ints) -> tuple[tuple[str, ...], Ints]:
    """A name table without unreferenced names, in order of first use."""
    used = dict.fromkeys(int(number) for number in numbers)
    renumbered = {number: place for place, number in enumerate(used)}
    return tuple(names[number] for number in used), np.array([renumbered[int(number)] for number in numbers], "<u4")


def _masked(postings: Postings, kept: Ints) -> Postings:
    numbers = np.cumsum(kept) - 1
    hashes = np.repeat(postings.hashes, np.diff(postings.offsets))
    stays = kept[postings.docs]
    return _grouped(hashes[stays], numbers[postings.docs[stays]], postings.counts[stays])


# -- bytes --------------------------------------------------------------------------------------------


def encode_segment(segment: Segment) -> bytes:
    arrays = [np.ascontiguousarray(getattr(segment, name), kind).tobytes() for name, kind in _LAYOUT]
    arrays += [np.ascontiguousarray(getattr(segment.terms, name), kind).tobytes() for name, kind in _POSTINGS]
    sizes = [len(segment.terms.hashes), len(segment.terms.docs)]
    head = canonical_bytes(
        {"ids": segment.ids, "sessions": segment.sessions, "speakers": segment.speakers, "sizes": sizes}
    )
    return b"".join([_MAGIC, segment.analyzer.encode(), len(head).to_bytes(4, "little"), head, *arrays])


def is_outdated(data: bytes) -> bool:
    """True if an encoded segment was built by another version of the analyzer."""
    return not data.startswith(_MAGIC + ANALYZER_VERSION.encode())


def decode_segment(data: bytes) -> Segment:
    """Decode a segment. The arrays are views into `data`; nothing is copied."""
    if not data.startswith(_MAGIC):
        raise IntegrityFailure("not a segment of the index", hint="run `muniment rebuild`")
    start = len(_MAGIC) + _VERSION_BYTES + 4
    end = start + int.from_bytes(data[start - 4 : start], "little")
    try:
        head = json.loads(data[start:end])  # our own bytes: no need for the strict reader
    except ValueError:
        raise IntegrityFailure("a segment of the index is damaged", hint="run `muniment rebuild`") from None
    count = len(head["ids"])
    place = end
    values: dict[str, Any] = {}
    for name, kind in _LAYOUT:
        values[name] = np.frombuffer(data, kind, count, place)
        place += values[name].nbytes
    terms, places = head["sizes"]
    parts: list[Ints] = []
    for (_, kind), size in zip(_POSTINGS, (terms, terms + 1, places, places), strict=True):
        parts.append(np.frombuffer(data, kind, size, place))
        place += parts[-1].nbytes
    return Segment(
        ids=tuple(head["ids"]),
        sessions=tuple(head["sessions"]),
        speakers=tuple(head["speakers"]),
        terms=Postings(*parts),
        analyzer=data[len(_MAGIC) : start - 4].decode("latin-1"),
        **values,
    )
