"""Pointers, spans, quotes, evidence ids (LG-03, LG-04), and points in time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from pydantic import ValidationError

from muniment.core.instants import format_instant, parse_instant
from muniment.core.scope import ChunkSpan, EventSpan, Span, UrlCitation, derive_evidence_id, quote_hash
from muniment.errors import InvalidInput, QuoteMismatch
from muniment.store.ledger import cut, locate_quote, pointer_address
from products import for_each

TEXT = "I moved to Köln. 我搬家了 🏠!"
WHOLE = TEXT.encode()


@pytest.mark.req("LG-03")
@given(st.text(max_size=40), st.data())
def test_every_span_on_character_borders_gives_its_bytes_and_every_other_is_refused(text: str, data: Any) -> None:
    whole = text.encode()
    borders = {len(text[:at].encode()) for at in range(len(text) + 1)}
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole) + 2))
    pointer = EventSpan(event_id="e", span=Span(start=start, end=end))
    legal = end <= len(whole) and (start == end or {start, end} <= borders)
    if legal:
        assert cut(pointer, whole).data == whole[start:end]
    else:
        with pytest.raises(QuoteMismatch):
            cut(pointer, whole)


@pytest.mark.req("LG-03")
def test_a_quote_is_found_checked_and_addressed() -> None:
    pointer = EventSpan(event_id="e", quote="我搬家了")
    found = cut(pointer, WHOLE)
    assert found.text == "我搬家了"
    assert WHOLE[found.span.start : found.span.end].decode() == "我搬家了"
    assert locate_quote(WHOLE, "我搬家了") == found.span
    assert cut(EventSpan(event_id="e", quote="我搬家了", span=found.span), WHOLE) == found
    assert cut(EventSpan(event_id="e"), WHOLE).data == WHOLE
    assert cut(EventSpan(event_id="e", quote=""), WHOLE).data == b""


@pytest.mark.req("LG-03")
@for_each(
    ("span", "quote", "path"),
    [
        (None, "I moved to Koln", "$.quote"),
        (None, "i moved", "$.quote"),
        ((0, 7), "I move", "$.quote"),
        ((1, 8), "I moved", "$.quote"),
        ((0, 10_000), None, "$.span"),
        ((12, 13), None, "$.span"),  # in the middle of ö
        ((0, len(WHOLE) - 2), None, "$.span"),  # in the middle of the house
    ],
)
def test_what_does_not_stand_there_is_refused(span: tuple[int, int] | None, quote: str | None, path: str) -> None:
    made = None if span is None else Span(start=span[0], end=span[1])
    with pytest.raises(QuoteMismatch) as caught:
        cut(EventSpan(event_id="e", span=made, quote=quote), WHOLE)
    assert caught.value.path == path


def test_a_span_cannot_end_before_it_starts() -> None:
    with pytest.raises(ValidationError):
        Span(start=2, end=1)
    with pytest.raises(ValidationError):
        Span(start=-1, end=1)


@pytest.mark.req("LG-04")
def test_evidence_ids_are_pinned_deterministic_and_namespaced() -> None:
    span = Span(start=0, end=3)
    assert derive_evidence_id("ledger", "evt_1", span) == "ev_1f5c5e48fb95603d3b5b36e08e7116fd"
    ids = [
        derive_evidence_id("ledger", "evt_1", span),
        derive_evidence_id("docs", "evt_1", span),
        derive_evidence_id("ledger", "evt_2", span),
        derive_evidence_id("ledgerevt", "_1", span),
        derive_evidence_id("ledger", "evt_1", Span(start=0, end=4)),
        derive_evidence_id("ledger", "evt_1", Span(start=1, end=3)),
        derive_evidence_id("ledger", "evt_1", span, quote_hash("abc")),
        derive_evidence_id("ledger", "evt_1", span, quote_hash("abd")),
    ]
    assert len(set(ids)) == len(ids)
    assert ids == [*ids]


@pytest.mark.req("LG-03", "LG-04")
def test_pointers_of_the_three_namespaces_never_share_an_address() -> None:
    pointers = [
        EventSpan(event_id="x"),
        ChunkSpan(corpus_id="docs", chunk_id="x"),
        UrlCitation(cid="x", url="https://example.com"),
    ]
    assert len({pointer_address(pointer) for pointer in pointers}) == 3
    assert len({cut(pointer, WHOLE).evidence_id for pointer in pointers}) == 3


@pytest.mark.parametrize(
    ("given_", "written"),
    [
        ("2026-05-01", "2026-05-01T00:00:00.000000Z"),
        ("2026-05-01T12:00:00", "2026-05-01T12:00:00.000000Z"),
        (" 2026-05-01 12:00:00.5 ", "2026-05-01T12:00:00.500000Z"),
        ("2026-05-01T12:00:00+02:00", "2026-05-01T10:00:00.000000Z"),
        ("2026-05-01T12:00:00Z", "2026-05-01T12:00:00.000000Z"),
        (datetime(2026, 5, 1, 12), "2026-05-01T12:00:00.000000Z"),
        (datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=-5))), "2026-05-01T17:00:00.000000Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_instants_have_one_form(given_: Any, written: str) -> None:
    assert format_instant(parse_instant(given_)) == written
    assert format_instant(parse_instant(written)) == written


@for_each("bad", ["", "now", "2026-13-01", "2026-05-01T25:00", "12:00", "\0", "\ud800", "1e9"])
def test_what_is_no_instant_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_instant(bad)
    assert caught.value.path == "$.ts"


def test_an_instant_before_the_first_year_is_refused() -> None:
    with pytest.raises(InvalidInput):
        parse_instant(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))))


def test_instants_sort_as_they_read() -> None:
    moments = [
        datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=step) for step in (0, 1, 999_999, 10**6, 10**12)
    ]
    assert sorted(map(format_instant, moments)) == list(map(format_instant, moments))
    assert date(2026, 1, 1).isoformat() < format_instant(moments[0])
