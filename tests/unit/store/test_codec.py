"""How values are stored: each code leads back to its value, sorts as its value does, and damage becomes no value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment.core.instants import format_instant
from muniment.errors import InvalidInput
from muniment.store.engines import codec

DAMAGED = "\ufffd"
HEX = "0123456789abcdef"
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)
minted = st.builds("{}_{}".format, st.sampled_from(codec.PREFIXES), st.text(HEX, min_size=32, max_size=32))
look_alikes = st.builds(
    "{}_{}{}".format,
    st.sampled_from(codec.PREFIXES),
    st.one_of(st.text(HEX, max_size=34), st.sampled_from(["", "0", "f" * 31, "f" * 32, "0" * 31, "0" * 33, "9", "a"])),
    st.one_of(st.just(""), st.text("/:@`gGA-_9a\x7fé😀", max_size=2), texts),
)
ids = st.one_of(minted, look_alikes, texts, st.sampled_from(["", "evt", "evt_", "evt`", "zzz" * 2000]))
words = st.one_of(st.sampled_from(codec.WORDS), texts, st.builds("{}{}".format, st.sampled_from(codec.WORDS), texts))
times = st.one_of(
    st.just(""),
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), timezones=st.just(UTC)).map(
        format_instant
    ),
)
CODES = [
    (ids, codec.encode_id, codec.decode_id),
    (words, codec.encode_word, codec.decode_word),
    (times, codec.encode_instant, codec.decode_instant),
]


@pytest.mark.parametrize(("values", "encode", "decode"), CODES, ids=["id", "word", "instant"])
def test_codes_lead_back_and_sort_as_their_values(values: Any, encode: Any, decode: Any) -> None:
    @given(st.lists(values, max_size=20))
    def check(some: list[str]) -> None:
        assert [decode(encode(each)) for each in some] == some
        assert sorted(some, key=encode) == sorted(some)
        assert len({encode(each) for each in some}) == len(set(some))

    check()


@given(
    st.one_of(texts, texts.map('{{"content":"{}"}}'.format), st.sampled_from(['{"content":"', '{"content":"}', "{{"]))
)
@example('{"content":""}')
@example('{"content":"{"}')
@example('{"content":"a","ts":"b"}')
@example('{"content":"\\""}')
@example("{{}")
def test_bodies_lead_back(body: str) -> None:
    assert codec.decode_body(codec.encode_body(body)) == body


def test_a_plain_text_is_stored_as_it_is() -> None:
    assert codec.encode_body('{"content":"See you at nine."}') == "See you at nine."


@given(st.one_of(texts, st.text(max_size=3).map(lambda part: part * 600)).filter(str.isprintable))
def test_long_texts_lead_back(text: str) -> None:
    assert codec.unpack(codec.pack(text)) == text
    assert codec.unpack_bytes(codec.pack_bytes(text.encode())) == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "2026-W01-1T00:00:00.000000Z",  # the same moment has another text
        "2026-01-01 00:00:00.000000Z",
        "2026-01-01T00:00:00,000000Z",
        "2026-01-01T24:00:00.000000Z",
        "2026-01-01T00:00:60.000000Z",
        "2026-01-01T00:00:00.000000z",
        "2026-01-01T00:00:00Z",
        "0000-01-01T00:00:00.000000Z",
        "tomorrow",
    ],
)
def test_a_time_has_one_form(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time"):
        codec.encode_instant(text)


@given(st.one_of(st.binary(max_size=40), st.integers(), st.none(), texts))
@example(b"")
@example(b"\0" + bytes(16))
@example(b"\x10" + bytes(3))
@example(b"\xff" + bytes(16))
@example(b"\x11evt_" + b"0" * 32)
@example(codec.encode_id("evt_x")[:17] + b"evt_y ")
def test_what_is_no_id_becomes_none(code: Any) -> None:
    """Two codes of one id would be two rows under it."""
    text = codec.decode_id(code)
    assert text.startswith(DAMAGED) or codec.encode_id(text) == code


@given(texts)
@example("=user")
@example("Auser")
@example("")
def test_what_is_no_word_becomes_none(code: str) -> None:
    word = codec.decode_word(code)
    assert word.startswith(DAMAGED) or codec.encode_word(word) == code


@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(max_size=3)))
def test_what_is_no_time_becomes_none(code: Any) -> None:
    text = codec.decode_instant(code)
    assert text.startswith(DAMAGED) or codec.encode_instant(text) == code


@pytest.mark.parametrize("held", [b"", b"\1x", b"\2x", b"x", 7, 1.5, "text"])
def test_damaged_packs_raise_nothing(held: Any) -> None:
    assert isinstance(codec.unpack(held), str)
    assert isinstance(codec.unpack_bytes(held), bytes)


def test_the_vocabulary_fits_its_letters() -> None:
    assert len(set(codec.WORDS)) == len(codec.WORDS) <= 52


@given(st.one_of(st.lists(minted, min_size=1, max_size=50), st.lists(ids, max_size=20)).map("\n".join))
def test_lists_of_ids_lead_back(text: str) -> None:
    assert codec.decode_ids(codec.encode_ids(text)) == text


@given(st.binary(max_size=60))
def test_damaged_lists_of_ids_become_no_ids(held: bytes) -> None:
    text = codec.decode_ids(held)
    assert text.startswith(DAMAGED) or codec.decode_ids(codec.encode_ids(text)) == text


def test_a_hundred_minted_ids_take_less_than_their_raw_bytes() -> None:
    named = [f"evt_{'01a1f5000d15'}{number * 7919 % 1_000_003:020x}" for number in range(100)]
    assert len(codec.encode_ids("\n".join(named))) < 100 * 17
