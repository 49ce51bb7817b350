"""Words of the stories: what a user asked, what the agent said and did, and what whoever goes on has to know."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Event(NamedTuple):
    """A turn of a run: somebody's words, or a call and its result."""

    role: str
    text: str
    tool: str = ""
    args: dict[str, Any] | None = None
    ok: bool = True


class Story(NamedTuple):
    """A long run and its essentials, each a set of words that have to be on the page near each other."""

    name: str
    objective: str
    done: str
    events: list[Event]
    essentials: list[tuple[str, ...]]


def user(text: str) -> Event:
    return Event("user", text)


def agent(text: str) -> Event:
    return Event("assistant", text)


def call(tool: str, result: str, *, ok: bool = True, **args: Any) -> Event:
    return Event("tool", result, tool, args, ok)


Noise = Callable[[random.Random, int], Event]


def interleave(key: list[Event], noise: Noise, count: int, seed: int) -> list[Event]:
    """The key events in their order with so many unimportant calls between them, most of them in the middle."""
    chance = random.Random(seed)
    gaps = [0] * (len(key) + 1)
    for _ in range(count):
        gaps[min(len(key), max(2, int(chance.gauss(len(key) * 0.6, len(key) * 0.25))))] += 1
    made: list[Event] = []
    number = 0
    for at, event in enumerate(key):
        for _ in range(gaps[at]):
            made.append(noise(chance, number))
            number += 1
        made.append(event)
    for _ in range(gaps[-1]):
        made.append(noise(chance, number))
        number += 1
    return made


def table(chance: random.Random, head: str, rows: int) -> str:
    """A result of many lines that nobody needs."""
    words = ("north", "delta", "plain", "amber", "ridge", "sable", "crane", "linden")
    lines = (f"{n:>4}  {chance.choice(words)}-{chance.randrange(1000)}  {chance.random():.3f}" for n in range(rows))
    return "\n".join([head, *lines])


def counted_calls(story: Story) -> int:
    return sum(bool(event.tool) for event in story.events)


def found_in(text: str, essential: tuple[str, ...], within: int = 300) -> bool:
    """Are all words of an essential on the page, within so many characters of the first?"""
    page = " ".join(text.casefold().split())
    first, *others = (" ".join(word.casefold().split()) for word in essential)
    return any(_near(page, at, others, within) for at in _places(page, first))


def _places(page: str, word: str) -> Iterator[int]:
    at = page.find(word)
    while at >= 0:
        yield at
        at = page.find(word, at + 1)


def _near(page: str, at: int, others: list[str], within: int) -> bool:
    around = page[max(0, at - within) : at + within]
    return all(word in around for word in others)
