"""A talk of sixty turns that MCP's tools are asked about: the same for every version of the tools."""

from __future__ import annotations

from typing import Any

__all__ = ["ASKED", "fill", "turns"]

ASKED = ("When do we travel to Lisbon?", "What did the mechanic say about the car?", "Which book club evening is next?")
_SUBJECTS = (
    ("the trip to Lisbon", "the flight leaves at {n} and the hotel near the river wants a deposit"),
    ("the car", "the mechanic found {n} worn parts and wants to look at the brakes again on Friday"),
    ("the book club", "the next evening is about chapter {n}, and everyone brings a question about the narrator"),
    ("the garden", "we planted {n} rows of beans beside the wall, and the slugs had half of them by Monday"),
)


def turns() -> list[dict[str, Any]]:
    """Sixty turns over thirty days, each of a paragraph."""
    made = []
    for number in range(60):
        subject, said = _SUBJECTS[number % len(_SUBJECTS)]
        text = f"About {subject}: {said.format(n=number + 2)}. " * 3 + f"That was note {number} on {subject}."
        role = "user" if number % 2 == 0 else "assistant"
        made.append({"role": role, "content": text, "ts": f"2026-03-{1 + number // 2:02d}T10:{number:02d}:00Z"})
    return made


def fill(run: Any) -> None:
    """The talk as the events of a run, and three facts on them."""
    entries = run.observe_many(turns())
    for at, (key, value) in enumerate((("trip.city", "Lisbon"), ("car.day", "Friday"), ("book.club", "evening"))):
        run.remember(key, value, sources=[entries[at].id])
