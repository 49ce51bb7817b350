"""Where an account of what was said is asked for, the packet spends its budget on the stretch that tells it."""

from __future__ import annotations

import pytest

import muniment

STRETCH = (
    "Then the battery: it must last a year.",
    "A year is hard with a screen that bright.",
    "Solar would spare the battery, but the parts cost more.",
    "Nobody wants to charge it every evening.",
    "Kinetic is cheaper, and people shake it anyway.",
    "Fine, then the battery stays small.",
)
MENTIONS = tuple(f"By the way, my {thing} needs a battery." for thing in ("watch", "clock", "torch", "radio", "lamp"))


@pytest.mark.parametrize("question", ["Summarize the discussion about the battery.", "总结一下关于battery的讨论"])
def test_the_turns_between_are_quoted_before_lone_mentions(question: str) -> None:
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="u", session_id="meeting")
        talk = [*STRETCH, *(f"The colour of part {number} is fine." for number in range(12))]
        for place, mention in enumerate(MENTIONS):
            talk += [mention, *(f"Lunch {place} item {number} was late." for number in range(7))]
        run.observe_many(
            [
                {
                    "role": "user",
                    "speaker": "Ann" if at % 2 else "Bob",
                    "content": text,
                    "ts": f"2024-01-01T09:{at:02}:00Z",
                }
                for at, text in enumerate(talk)
            ]
        )
        asking = mem.run(user_id="u", session_id="asking")
        hits = [hit.text for hit in asking.search(question, k=len(STRETCH))]
        text = asking.compose("responder", query=question, max_tokens=400).text
    assert sum(turn in hits for turn in STRETCH) >= 5
    assert sum(turn in text for turn in STRETCH) >= 5
