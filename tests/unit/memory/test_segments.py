"""Segments: built, merged, written, read and forgotten, always as if made in one go."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import IntegrityFailure
from muniment.memory._segments import (
    IndexedTurn,
    build_segment,
    decode_segment,
    drop_turns,
    encode_segment,
    merge_segments,
)

terms = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=12)


@st.composite
def turn_lists(draw: st.DrawFn) -> list[IndexedTurn]:
    count = draw(st.integers(1, 24))
    return [
        IndexedTurn(
            id=f"evt_{number}",
            session_id=draw(st.sampled_from(("s1", "s2", "세션"))),
            seq=number + 1,
            speaker=draw(st.sampled_from(("", "0a", "0b"))),
            role=draw(st.sampled_from(("user", "assistant", "tool"))),
            ts=draw(st.integers(-(2**40), 2**40)),
            length=draw(st.integers(0, 1000)),
            terms=draw(terms),
        )
        for number in range(count)
    ]


@given(turn_lists(), st.lists(st.integers(1, 23), max_size=3))
def test_merging_parts_gives_the_bytes_of_the_whole(turns: list[IndexedTurn], cuts: list[int]) -> None:
    edges = sorted({0, len(turns), *(cut for cut in cuts if cut < len(turns))})
    parts = [build_segment(turns[start:end]) for start, end in itertools.pairwise(edges)]
    assert encode_segment(merge_segments(parts)) == encode_segment(build_segment(turns))


@given(turn_lists())
def test_bytes_read_back(turns: list[IndexedTurn]) -> None:
    data = encode_segment(build_segment(turns))
    again = decode_segment(data)
    assert encode_segment(again) == data
    assert again.ids == tuple(turn.id for turn in turns)
    assert again.length.tolist() == [turn.length for turn in turns]
    for number, turn in enumerate(turns):
        assert again.terms_of(number) == set(turn.terms)
        found = {
            int(hash_): int(again.terms.counts[place])
            for index, hash_ in enumerate(again.terms.hashes)
            for place in range(again.terms.offsets[index], again.terms.offsets[index + 1])
            if again.terms.docs[place] == number
        }
        assert found == Counter(turn.terms)


def test_a_term_counts_as_far_as_its_number_can() -> None:
    turn = IndexedTurn("evt_1", "s1", 1, "0a", "user", 0, 70_000, [7] * 70_000 + [8])
    assert build_segment([turn]).terms.counts.tolist() == [65535, 1]


@given(turn_lists(), st.sets(st.integers(0, 23)))
def test_dropping_turns_is_as_if_they_had_never_been(turns: list[IndexedTurn], lost: set[int]) -> None:
    names = {f"evt_{number}" for number in lost}
    left = [turn for turn in turns if turn.id not in names]
    dropped = drop_turns(build_segment(turns), names)
    if not left:
        assert dropped is None
    else:
        assert dropped is not None
        assert encode_segment(dropped) == encode_segment(build_segment(left))


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(IntegrityFailure):
        decode_segment(b"something else")
