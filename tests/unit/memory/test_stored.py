"""An index put together from segments is the index made in one go: same arrays, same postings, same answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.policy import RecallPolicy
from muniment.core.text.analyzer import term_hash
from muniment.errors import IntegrityFailure
from muniment.memory import _index as stored
from muniment.memory._index import MemoryIndex, SpokenTurn, StoredIndex, index_text
from muniment.memory._segments import (
    IndexedTurn,
    Segment,
    build_segment,
    decode_segment,
    drop_turns,
    encode_segment,
    merge_segments,
)
from muniment.memory.ranking import rank

NOW = date(2026, 6, 1)
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
WORDS = (
    "Berlin", "flat", "moved", "May", "dog", "dogs", "yesterday", "last week", "invoice", "paid", "7 May 2025",
    "我住在柏林", "강아지", "current", "running", "ran", "pets", "vegetarian",
)  # fmt: skip
QUESTIONS = (
    "Where does Ana live now?",
    "What did Ben say about the flat in Berlin?",
    "When did I move?",
    "How many pets do I have?",
    "Which dogs were running last week?",
    "柏林",
    "강아지는 어디 있어요?",
    "",
)


@dataclass(frozen=True)
class Said:
    """A turn, in the order of writing."""

    id: str
    seq: int
    turn: SpokenTurn


@st.composite
def conversations(draw: st.DrawFn) -> list[Said]:
    """Turns of sessions that run at the same time, and of sessions whose clock was wrong."""
    heads: dict[str, int] = {}
    said = []
    for number in range(draw(st.integers(0, 30))):
        session = draw(st.sampled_from(("s1", "s2", "s3", "세션")))
        heads[session] = heads.get(session, 0) + draw(st.integers(1, 3))
        words = draw(st.lists(st.sampled_from(WORDS), max_size=6)) * draw(st.sampled_from((1, 1, 1, 30)))
        turn = SpokenTurn(
            session=session,
            speaker=draw(st.sampled_from(("Ana", "Ben", "user", "assistant"))),
            role=draw(st.sampled_from(("user", "assistant", "tool"))),
            said_at=BEGIN + timedelta(hours=draw(st.integers(0, 5000))),
            text=" ".join(words) + draw(st.sampled_from((".", "?", ""))),
        )
        said.append(Said(f"evt_{number}", heads[session], turn))
    return said


def _indexed(said: Said) -> IndexedTurn:
    turn = said.turn
    length, terms = index_text(turn.text, turn.said_at.date())
    return IndexedTurn(
        id=said.id,
        session_id=turn.session,
        seq=said.seq,
        speaker=f"{term_hash(turn.speaker):016x}",
        role=turn.role,
        ts=int(turn.said_at.timestamp()),
        length=length,
        terms=terms,
    )


def _segments(said: Sequence[Said], cuts: Sequence[int]) -> list[Segment]:
    """Blocks over the turns as they were written, each through its bytes."""
    edges = sorted({0, len(said), *(cut for cut in cuts if cut < len(said))})
    parts = [build_segment([_indexed(each) for each in said[a:b]]) for a, b in pairwise(edges) if a < b]
    return [decode_segment(encode_segment(part)) for part in parts]


def _stored(segments: Sequence[Segment], said: Sequence[Said]) -> StoredIndex:
    speakers = {each.id: each.turn.speaker for each in said}
    return StoredIndex(segments, lambda ids: [speakers[id_] for id_ in ids])


def _in_order(said: Sequence[Said]) -> list[Said]:
    starts: dict[str, datetime] = {}
    for each in said:
        at = each.turn.said_at
        starts[each.turn.session] = min(at, starts.get(each.turn.session, at))
    return sorted(said, key=lambda each: (starts[each.turn.session], each.turn.session, each.seq))


def _assert_same(found: StoredIndex, said: Sequence[Said]) -> None:
    ordered = _in_order(said)
    wanted = MemoryIndex(each.turn for each in ordered)
    assert len(found) == len(ordered)
    assert found.ids() == [each.id for each in ordered]
    assert [found.id(ordinal) for ordinal in range(len(ordered))] == found.ids()
    for name in ("session", "speaker", "role", "ts", "length"):
        ours, theirs = getattr(found, name), getattr(wanted, name)
        assert ours.dtype == theirs.dtype, name
        np.testing.assert_array_equal(ours, theirs, name)
    assert tuple(found.speakers) == tuple(wanted.speakers)
    terms = {term for ordinal in range(len(ordered)) for term in wanted.terms(ordinal)} | {term_hash("nowhere")}
    for term in sorted(terms):
        for ours, theirs in zip(found.postings(term), wanted.postings(term), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    for ordinal in range(len(ordered)):
        assert found.terms(ordinal) == wanted.terms(ordinal)
    for question in QUESTIONS:
        assert rank(question, found, RecallPolicy(), NOW, 10) == rank(question, wanted, RecallPolicy(), NOW, 10)


cuts = st.lists(st.integers(1, 29), max_size=6)


@pytest.mark.soak
@settings(max_examples=examples(20), deadline=None)
@given(conversations(), cuts)
def test_segments_make_the_index_of_the_whole(said: list[Said], at: list[int]) -> None:
    _assert_same(_stored(_segments(said, at), said), said)


@settings(max_examples=examples(15), deadline=None)
@given(conversations(), cuts, st.integers(0, 6))
def test_merging_some_of_the_segments_changes_nothing(said: list[Said], at: list[int], first: int) -> None:
    segments = _segments(said, at)
    tail = segments[first:]
    merged = [*segments[:first], merge_segments(tail)] if tail else segments
    _assert_same(_stored(merged, said), said)


@settings(max_examples=examples(40), deadline=None)
@given(conversations(), cuts, st.lists(st.sampled_from(("s1", "s2", "s3", "세션", "nowhere")), max_size=3), st.data())
def test_an_index_grows_and_leaves_sessions_out_as_if_it_were_built_from_scratch(
    said: list[Said], at: list[int], left_out: list[str], data: st.DataObject
) -> None:
    """Each step adds some blocks; postings were asked for before it, and sessions are left out after it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "RECENT_MAX", data.draw(st.sampled_from((1, 3, 32))))
        patch.setattr(stored, "RECENT_SHARE", data.draw(st.sampled_from((0, 2, 8))))
        _grow_and_compare(said, at, frozenset(left_out), data)


def _grow_and_compare(said: list[Said], at: list[int], left_out: frozenset[str], data: st.DataObject) -> None:
    speakers = {each.id: each.turn.speaker for each in said}
    index, segments, held = _stored([], said), _segments(said, at), 0
    terms = [term_hash(word) for word in ("berlin", "dog", "flat")]
    while segments:
        count = data.draw(st.integers(1, len(segments)))
        taken, segments = segments[:count], segments[count:]
        index.prepare(terms)
        before = index, index.ids(), [index.postings(term)[0].tolist() for term in terms]
        index = index.extended(taken, lambda ids: [speakers[id_] for id_ in ids])
        held += sum(map(len, taken))
        _assert_same(index, said[:held])
        kept = [each for each in said[:held] if each.turn.session not in left_out]
        _assert_same(index.without(left_out), kept)
        old, ids, postings = before
        assert old.ids() == ids
        assert [old.postings(term)[0].tolist() for term in terms] == postings


@settings(max_examples=examples(15), deadline=None)
@given(conversations(), cuts, st.sets(st.integers(0, 29)))
def test_dropped_turns_were_never_there(said: list[Said], at: list[int], lost: set[int]) -> None:
    names = {f"evt_{number}" for number in lost}
    dropped = [drop_turns(segment, names) for segment in _segments(said, at)]
    kept = [each for each in said if each.id not in names]
    _assert_same(_stored([segment for segment in dropped if segment is not None], kept), kept)


def test_what_is_kept_of_lookups_is_bounded_and_answers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "POSTINGS_KEPT", 40)
    monkeypatch.setattr(stored, "TERMS_KEPT", 3)
    said = [
        Said(f"evt_{number}", number + 1, SpokenTurn("s1", "Ana", "user", BEGIN, f"word{number} dog word{number % 3}"))
        for number in range(20)
    ]
    index = _stored(_segments(said, [7]), said)
    _assert_same(index, said)
    _assert_same(index, said)


@pytest.mark.soak
@settings(max_examples=30, deadline=None)
@given(conversations(), st.data())
def test_rows_kept_elsewhere_are_brought_into_ordinal_order(said: list[Said], data: st.DataObject) -> None:
    index = _stored(_segments(said, [5, 11]), said)
    shuffled = data.draw(st.permutations([each.id for each in said]))
    places = index.aligned("all", [shuffled])
    assert places is not None
    assert np.array(shuffled, object)[places].tolist() == index.ids()
    assert index.aligned("all", []) is places  # the same state: not compared again
    if said:
        assert index.aligned("fewer", [shuffled[1:]]) is None


def test_a_damaged_segment_is_refused() -> None:
    data = bytearray(
        encode_segment(build_segment([_indexed(Said("evt_1", 1, SpokenTurn("s", "a", "user", BEGIN, "x")))]))
    )
    data[12] = 0
    with pytest.raises(IntegrityFailure):
        decode_segment(bytes(data))
