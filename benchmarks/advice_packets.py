"""What a packet tells a model that is asked for advice: are the turns in it that an adviser must know?

    python -m benchmarks.advice_packets                 both halves of the chats
    python -m benchmarks.advice_packets --half choosing one of them, and nothing is written

The chats are those of `benchmarks.advice_chats`: 100 to 300 turns in sessions of twenty, two or more a day, small talk
but for a few turns of which the question has no word. Settings are the defaults: no model, no vectors, nothing
extracted. Each question is asked in a session of its own, with and without the turns that `packets.advice` brings in.
`needed` is the share of the turns that an answer must know which stand in the text, `complete` the share of questions
that have them all, `outdated` of what was replaced that stands there as if it held, `others` of what looks alike and is
nobody's own word, `tokens` the mean of the packet's.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import muniment
from benchmarks.advice_chats import CHOOSING, JUDGING, Asked, Chat
from benchmarks.harness import report
from muniment.packets import gathering

BUDGETS = (512, 1024)
SESSION_TURNS = 20
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_THINGS = ("hallway", "fence", "shed", "bike", "lamp", "printer", "garden", "gate", "roof", "sofa", "piano", "window")
_COLOURS = ["green", "blue", "white", "red", "grey", "yellow", "brown", "black"]
_PEOPLE = ["Jonas", "Petra", "Sam", "Nadia", "Felix", "Ines", "Oskar", "Clara"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
FILLERS = {
    "english": (
        "We painted the {thing} {colour}.",
        "The {thing} broke again on {day}.",
        "{person} called about the {thing}.",
        "It rained all {day}.",
        "I watched a film with {person} on {day}, it was fine.",
        "Dinner on {day} was late because of the {thing}.",
        "{person} is going on about the {thing} again.",
        "Can you remind me what a {thing} costs?",
        "How do I clean a {colour} {thing}?",
        "The train was late on {day}.",
        "I finally fixed the {thing}.",
        "{person} gave me a {colour} {thing}.",
        "What was the name of that song?",
        "I slept badly, {person} was loud.",
        "The service at the shop was slow on {day}.",
        "We went for a walk with {person}.",
    ),
    "german": (
        "Wir haben das Haus am {day} gestrichen.",
        "{person} hat wegen der Lampe angerufen.",
        "Es hat den ganzen Tag geregnet.",
        "Der Zug war am {day} zu spät.",
        "Ich habe mit {person} einen Film gesehen.",
        "Wie putzt man ein Fenster?",
        "Das Fahrrad ist schon wieder kaputt.",
        "{person} kommt am {day} vorbei.",
    ),
}
REPLIES = {
    "english": ("Noted.", "I see.", "That sounds like a day.", "Tell me more about the {thing}.", "Good to hear."),
    "german": ("Verstehe.", "Gut zu wissen.", "Erzähl mir mehr."),
}


def turns_of(chat: Chat) -> list[tuple[str, str]]:
    """The turns of a chat in order: who says what. The same for each call."""
    rng = random.Random(chat.name)
    told: list[tuple[str, str] | None] = [None] * chat.turns
    fixed = [(place, "user", text) for _, place, text in chat.said] + [(at, who, text) for who, at, text in chat.others]
    for place, role, text in sorted(fixed):
        at = int(place * (chat.turns - 1))
        while told[at] is not None:
            at += 1
        told[at] = role, text
    fillers, replies = FILLERS[chat.language], REPLIES[chat.language]

    def filled(lines: Sequence[str]) -> str:
        words = {"thing": _THINGS, "colour": _COLOURS, "person": _PEOPLE, "day": _DAYS}
        return rng.choice(lines).format(**{name: rng.choice(choices) for name, choices in words.items()})

    return [
        each if each is not None else ("assistant", filled(replies)) if at % 2 else ("user", filled(fillers))
        for at, each in enumerate(told)
    ]


def written(chat: Chat) -> muniment.Memory:
    """A store of memory that holds the chat."""
    mem = muniment.open(":memory:")
    for at, (role, text) in enumerate(turns_of(chat)):
        session = at // SESSION_TURNS
        run = mem.run(user_id="asker", session_id=f"s{session}", run_id=f"r{session}")
        said = START + timedelta(hours=11 * session, minutes=2 * at)
        if role == "tool":
            run.observe_tool("fetch", args={"page": at}, content=text)
        else:
            run.observe(role, text, ts=said.isoformat())
    return mem


@contextmanager
def without_standing(is_off: bool) -> Iterator[None]:
    """Without the turns that are brought in for advice, where that is wanted."""
    if is_off:
        with patch.object(gathering, "asks_for_advice", lambda _query: False):
            yield
    else:
        yield


def is_told(text: str, said: str) -> bool:
    """Does the page say it as something that holds?"""
    return any(said in line and "superseded" not in line and "outdated" not in line for line in text.splitlines())


def ask(mem: muniment.Memory, chat: Chat, asked: Asked, tokens: int, *, is_off: bool) -> dict[str, Any]:
    said = {name: text for name, _, text in chat.said}
    now = START + timedelta(days=400)
    with without_standing(is_off):
        build = mem.run(user_id="asker", session_id=f"asking, {tokens}, {is_off}: {asked.text}").compose(
            "responder", query=asked.text, max_tokens=tokens, now=now
        )
    return {
        "missing": [name for name in asked.needed if said[name] not in build.text],
        "outdated": [old for old, _ in chat.replaced if is_told(build.text, said[old])],
        "others": [text for _, _, text in chat.others if text in build.text],
        "tokens": build.tokens,
        "text": build.text,
    }


def measure(chats: Sequence[Chat], *, shows: bool) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    answers: dict[tuple[bool, int], list[tuple[Chat, Asked, dict[str, Any]]]] = {}
    for chat in chats:
        with written(chat) as mem:
            for is_off in (True, False):
                for tokens in BUDGETS:
                    told = [(chat, each, ask(mem, chat, each, tokens, is_off=is_off)) for each in chat.asked]
                    answers.setdefault((is_off, tokens), []).extend(told)
    for (is_off, tokens), told in answers.items():
        needed = sum(len(asked.needed) for _, asked, _ in told)
        replaced, others = (sum(len(getattr(chat, name)) for chat, _, _ in told) for name in ("replaced", "others"))
        rows[f"{'without' if is_off else 'with'}, {tokens} tokens"] = {
            "questions": len(told),
            "needed": round(1 - sum(len(each["missing"]) for _, _, each in told) / needed, 3),
            "complete": round(sum(not each["missing"] for _, _, each in told) / len(told), 3),
            "outdated": round(sum(len(each["outdated"]) for _, _, each in told) / replaced, 3),
            "others": round(sum(len(each["others"]) for _, _, each in told) / others, 3),
            "tokens": round(sum(each["tokens"] for _, _, each in told) / len(told)),
        }
    if shows:
        for chat, asked, each in answers[False, BUDGETS[-1]]:
            if each["missing"] or each["outdated"] or each["others"]:
                print(chat.name, "|", asked.text, "|", {key: each[key] for key in ("missing", "outdated", "others")})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("choosing", "judging"), help="one half, of which nothing is written")
    asked = parser.parse_args()
    halves = {"choosing": CHOOSING, "judging": JUDGING}
    if asked.half:
        for name, row in measure(halves[asked.half], shows=True).items():
            print(name, row)
        return
    rows = {
        f"{half}, {name}": row for half, chats in halves.items() for name, row in measure(chats, shows=False).items()
    }
    report("advice_packets", rows, {"budgets": list(BUDGETS), "session_turns": SESSION_TURNS})


if __name__ == "__main__":
    main()
