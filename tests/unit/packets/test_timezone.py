"""Days are the speaker's: by the offset of a time, else by the time zone that the store is opened with."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import muniment
from muniment.errors import InvalidInput

pytestmark = pytest.mark.req("TM-01")

LATE = datetime(2026, 5, 1, 22, 30, tzinfo=UTC)
"""Half past midnight of the next day in Berlin, half past seven in the morning in Tokyo."""


@pytest.mark.parametrize(
    ("timezone", "given", "day"),
    [
        (None, "2026-05-01T22:30:00Z", "1 May 2026:"),
        ("Europe/Berlin", "2026-05-01T22:30:00Z", "2 May 2026:"),
        ("Europe/Berlin", "2026-05-01T22:30:00+00:00", "2 May 2026:"),
        ("Europe/Berlin", "2026-05-01T22:30:00", "1 May 2026:"),
        ("Europe/Berlin", "2026-05-01T22:30:00-05:00", "1 May 2026:"),
        ("America/New_York", "2026-05-02T01:00:00Z", "1 May 2026:"),
        (None, "2026-05-02T07:30:00+09:00", "2 May 2026:"),
        ("Europe/Berlin", LATE, "2 May 2026:"),
    ],
)
def test_a_turn_stands_under_the_day_of_its_speaker(timezone: str | None, given: object, day: str) -> None:
    with muniment.open(":memory:", timezone=timezone) as mem:
        mem.run(user_id="ana", session_id="s").observe("user", "I moved the piano myself.", ts=given)
        text = mem.run(user_id="ana", session_id="t").compose("responder", query="Who moved the piano?").text
        assert f"{day}\n[1] user: I moved the piano myself." in text


def test_a_time_without_an_offset_is_one_of_the_zone() -> None:
    with muniment.open(":memory:", timezone="Asia/Tokyo") as mem:
        event = mem.run(user_id="ana", session_id="s").observe("user", "Good morning.", ts="2026-05-02T07:30:00")
        assert event.ts == "2026-05-01T22:30:00.000000Z"


@pytest.mark.parametrize(
    ("timezone", "given", "shown"),
    [
        (None, "2026-05-01T09:30:00+02:00", "2026-05-01T09:30:00.000000+02:00"),
        (None, "2026-05-01T09:30:00Z", "2026-05-01T09:30:00.000000Z"),
        ("America/New_York", "2026-05-01T09:30:00+05:30", "2026-05-01T09:30:00.000000+05:30"),
        ("America/New_York", "2026-12-01T09:30:00Z", "2026-12-01T04:30:00.000000-05:00"),
    ],
)
def test_an_entry_shows_its_time_with_the_offset_that_was_given(timezone: str | None, given: str, shown: str) -> None:
    with muniment.open(":memory:", timezone=timezone) as mem:
        event = mem.run(user_id="ana", session_id="s").observe("user", "Good morning.", ts=given)
        assert event.local_ts == shown
        assert mem.ledger.get(event.id).local_ts == shown


def test_what_is_said_now_has_the_day_of_the_zone() -> None:
    with muniment.open(":memory:", timezone="Europe/Berlin", clock=lambda: LATE) as mem:
        mem.run(user_id="ana", session_id="s").observe("user", "I moved the piano myself.")
        build = mem.run(user_id="ana", session_id="t").compose("responder", query="Who moved the piano?")
        assert "2 May 2026:\n[1] user: I moved the piano myself." in build.text
        assert "Today is Saturday, 2 May 2026." in build.text
        assert build.packet.meta.generated_at == "2026-05-02T00:30:00.000000+02:00"
        assert mem.replay(build.id).packet_bytes == build.packet_bytes
        assert mem.verify().entries


@pytest.mark.parametrize(
    ("timezone", "now", "today"),
    [
        (None, "2026-05-01T22:30:00Z", "Today is Friday, 1 May 2026."),
        (None, "2026-05-02T07:30:00+09:00", "Today is Saturday, 2 May 2026."),
        ("Asia/Tokyo", "2026-05-01T22:30:00Z", "Today is Saturday, 2 May 2026."),
        ("Asia/Tokyo", "2026-05-01T18:30:00-04:00", "Today is Friday, 1 May 2026."),
    ],
)
def test_today_is_the_day_of_whoever_asks(timezone: str | None, now: str, today: str) -> None:
    with muniment.open(":memory:", timezone=timezone) as mem:
        run = mem.run(user_id="ana", session_id="s")
        run.observe("user", "I moved the piano myself.", ts="2026-04-01T12:00:00Z")
        assert today in run.compose("planner", query="Who moved the piano?", now=now).text


def test_a_retry_under_a_key_is_answered_although_the_clock_went_on() -> None:
    ticks = iter([datetime(2026, 5, 1, hour, tzinfo=UTC) for hour in range(24)])
    with muniment.open(":memory:", timezone="Europe/Berlin", clock=lambda: next(ticks)) as mem:
        run = mem.run(user_id="ana", session_id="s")
        first = run.observe("user", "Book the table.", idempotency_key="k")
        assert run.observe("user", "Book the table.", idempotency_key="k") == first


@pytest.mark.parametrize("timezone", ["", "Berlin", "../etc/passwd", "/etc/localtime", 3, "Europe/Berlin\0"])
def test_what_is_no_time_zone_is_refused(timezone: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        muniment.open(":memory:", timezone=timezone)  # type: ignore[arg-type]
    assert caught.value.path == "$.timezone"
    assert caught.value.hint


def test_what_is_loaded_in_bulk_has_the_days_of_the_zone() -> None:
    with muniment.open(":memory:", timezone="Asia/Tokyo") as mem:
        content = "I moved the piano myself."
        mem.store.load([{"user_id": "ana", "session_id": "s", "role": "user", "content": content, "ts": str(LATE)}])
        text = mem.run(user_id="ana", session_id="t").compose("responder", query="Who moved the piano?").text
        assert f"2 May 2026:\n[1] user: {content}" in text
