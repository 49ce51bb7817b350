"""Statements of several sessions within one second: the later one stands, whatever the sessions are called."""

from __future__ import annotations

import pytest

from muniment.handles.memory import Memory

EARLIER, LATER = "I live in Berlin these days.", "I live in Hamburg these days."


def _seen(mem: Memory) -> list[str]:
    return [hit.text for hit in mem.run(user_id="ana", session_id="asks").search("Where do I live these days?")]


@pytest.mark.req("LG-02")
@pytest.mark.parametrize(("first", "second"), [("b", "a"), ("a", "b")])
@pytest.mark.parametrize("stamps", [("12:00:00.100", "12:00:00.900"), ("12:00:00", "12:00:00")])
def test_the_later_of_two_sessions_stands(any_mem: Memory, first: str, second: str, stamps: tuple[str, str]) -> None:
    """The order of writing decides within a second."""
    _, new = (
        any_mem.run(user_id="ana", session_id=session).observe("user", text, ts=f"2026-05-01T{ts}Z")
        for session, text, ts in zip((first, second), (EARLIER, LATER), stamps, strict=True)
    )
    expected = [LATER, EARLIER]
    assert _seen(any_mem) == expected
    any_mem.store.rebuild()
    assert _seen(any_mem) == expected
    any_mem.forget(event=new.id)
    assert _seen(any_mem) == [EARLIER]
