"""How long a record lasts: the grammar, its nonsense, and the instant it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import InvalidInput
from muniment.learning.keys import DAYS_MAX, Ttl, expires_at, has_expired, parse_ttl, ttl_text
from muniment.learning.records import StoredMemory
from products import for_each

pytestmark = pytest.mark.req("RC-21", "RC-06")

NOW = "2026-05-01T12:00:00.000000Z"


@for_each(
    ("text", "ttl", "until"),
    [
        ("session", Ttl("session"), None),
        ("hours:6", Ttl("hours", 6), "2026-05-01T18:00:00.000000Z"),
        ("days:14", Ttl("days", 14), "2026-05-15T12:00:00.000000Z"),
        ("days:007", Ttl("days", 7), "2026-05-08T12:00:00.000000Z"),
        (f"days:{DAYS_MAX}", Ttl("days", DAYS_MAX), "2126-04-07T12:00:00.000000Z"),
    ],
)
def test_ttls(text: str, ttl: Ttl, until: str | None) -> None:
    assert parse_ttl(text) == ttl
    assert expires_at(ttl, NOW) == until
    assert parse_ttl(ttl_text(ttl)) == ttl


@for_each(
    ("text", "reason"),
    [
        ("days:-1", "not_a_ttl"),
        ("days:1e9", "not_a_ttl"),
        ("days:1.5", "not_a_ttl"),
        ("days:", "not_a_ttl"),
        ("days", "not_a_ttl"),
        ("", "not_a_ttl"),
        ("DAYS:3", "not_a_ttl"),
        ("Session", "not_a_ttl"),
        (" days:3", "not_a_ttl"),
        ("days:3\n", "not_a_ttl"),
        ("days:３", "not_a_ttl"),
        ("days:" + "9" * 5000, "not_a_ttl"),
        ("session:1", "unknown_unit"),
        ("weeks:2", "unknown_unit"),
        ("hours:0", "no_time"),
        ("days:000", "no_time"),
        ("days:36501", "too_long"),
        ("hours:876001", "too_long"),
    ],
)
def test_nonsense_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_ttl(text, path="$.record.ttl")
    assert caught.value.details == {"reason": reason}
    assert caught.value.path == "$.record.ttl"


@given(st.text() | st.text(alphabet="dayshours:0123456789"))
def test_any_text_is_a_ttl_or_refused(text: str) -> None:
    try:
        ttl = parse_ttl(text)
    except InvalidInput:
        return
    assert ttl.unit == "session" or ttl.n > 0


def test_time_ends_with_the_calendar() -> None:
    with pytest.raises(InvalidInput, match="9999"):
        expires_at(Ttl("days", DAYS_MAX), "9990-01-01")


def test_expiry_is_past_its_instant_and_a_pin_shields() -> None:
    memory = StoredMemory(
        id="a", kind="seed", level="user", version=1, record={}, status="active", created_at=NOW, expires_at=NOW
    )
    assert not has_expired(memory, NOW)
    assert has_expired(memory, "2026-05-01T12:00:00.000001Z")
    assert not has_expired(memory.model_copy(update={"status": "pinned"}), "2027-05-01")
    assert not has_expired(memory.model_copy(update={"expires_at": None}), "2027-05-01")
