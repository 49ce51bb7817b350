"""From characters to bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.sentences import ByteOffsets


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_place_is_where_the_bytes_before_it_end(text: str) -> None:
    offsets = ByteOffsets(text)
    assert [offsets[at] for at in range(len(text) + 1)] == [len(text[:at].encode()) for at in range(len(text) + 1)]
