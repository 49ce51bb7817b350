"""Families that no part of the library was chosen by, made once for the decision of 0062.

    rare       one tool of five
    depth      a setting with four values; the nearer to the right one, the better
    trio       three steps that are each left out now and then; all three are needed
    fallback   half of the runs meet an error, and then one tool of three helps; without the error nothing matters
    steady     the documented tool is right, before and after the drift: there is nothing to learn

Fixed before the first run: six seeds, 120 runs of each family, salt `fresh`. Learning as it is stays if it passes .03
more often than the last five passes do, with the lower end of the interval above nothing. Otherwise the last five
passes take its place. The families are run once; a later choice needs new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from benchmarks.learning.families import (
    DEEDS,
    LEANS,
    NOUNS,
    PEOPLE,
    Call,
    Choose,
    Family,
    Given,
    Played,
    Shares,
    names_of,
)
from benchmarks.learning.reading import Slot

FRESH = ("rare", "depth", "trio", "fallback", "steady")
HARDER = 0.2
"""How much less often a hard task passes."""
DEPTHS = ("d8", "d40", "d200", "d1000")
BY_DISTANCE = (0.9, 0.6, 0.35, 0.2)
BY_STEPS = (0.15, 0.2, 0.5, 0.9)
"""How often a run passes that makes none, one, two or three of the steps."""
RIGHT, WRONG = 0.85, 0.2
OMITTED = 1.2
"""The odds of leaving a step out, against 1."""


@dataclass
class Fresh:
    name: str
    kind: str
    domain: str
    slots: tuple[Slot, ...]
    rights: tuple[str, str]
    """The right option of the first slot, before and after the drift."""
    tools: Mapping[str, str]
    noun: str
    deed: str
    values: Mapping[str, tuple[str, ...]]

    def task(self, draws: str) -> Given:
        random = Random(f"{draws} task")
        text = f"{self.deed} the {self.noun} of {random.choice(PEOPLE)}, no. {random.randrange(1_000, 10_000)}."
        seen = {"trouble": str(random.random() < 0.5)} if self.kind == "fallback" else {}
        return Given(self.name, text, random.random() < 0.5, seen, {}, draws)

    def leaning(self, slot: Slot, _given: Given, /) -> tuple[float, ...]:
        return slot.odds

    def right(self, _given: Given, segment: int) -> str | None:
        return self.rights[segment == 1]

    def rate(self, given: Given, segment: int, chosen: Mapping[str, str]) -> float:
        right, way = self.rights[segment == 1], chosen[self.slots[0].name]
        if self.kind == "trio":
            rate = BY_STEPS[sum(bool(option) for option in chosen.values())]
        elif self.kind == "depth":
            rate = BY_DISTANCE[abs(DEPTHS.index(way) - DEPTHS.index(right))]
        elif self.kind == "fallback" and given.seen["trouble"] == "False":
            rate = RIGHT
        else:
            rate = RIGHT if way == right else WRONG
        return max(0.05, rate - HARDER * given.hard)

    def expected(self, given: Given, segment: int, shares: Shares) -> float:
        mixed: list[tuple[float, dict[str, str]]] = [(1.0, {})]
        for slot in self.slots:
            mixed = [
                (share * each, chosen | {slot.name: option})
                for share, chosen in mixed
                for option, each in zip(slot.options, shares[slot.name], strict=True)
            ]
        return sum(share * self.rate(given, segment, chosen) for share, chosen in mixed)

    def situations(self) -> Iterator[tuple[float, Given]]:
        seen = [{"trouble": "True"}, {"trouble": "False"}] if self.kind == "fallback" else [{}]
        for each in seen:
            for hard in (False, True):
                yield 0.5 / len(seen), Given(self.name, "", hard, each, {}, "")

    def play(self, given: Given, segment: int, choose: Choose, random: Random) -> Played:
        chosen = {slot.name: choose(slot, slot.options) for slot in self.slots}
        passed = random.random() < self.rate(given, segment, chosen)
        number = given.text.rstrip(".").split()[-1]
        way = chosen[self.slots[0].name]
        calls = [Call(self.tools["open"], {"ref": number}, f"{self.noun} {number}: {random.randrange(3, 90)} lines")]
        done = f"{random.randrange(3, 90)} lines done"
        if self.kind == "trio":
            calls += [Call(option, {}, "ready") for option in chosen.values() if option]
            calls.append(Call(self.tools["carry"], {}, done))
        elif self.kind == "depth":
            calls.append(Call(self.tools["carry"], {"depth": way}, done))
        elif self.kind == "fallback":
            trouble = given.seen["trouble"] == "True"
            calls.append(Call(self.tools["carry"], {}, "error 71: queue is closed" if trouble else done, not trouble))
            calls += [Call(way, {}, done)] if trouble else []
        else:
            calls.append(Call(way, {}, done))
        calls.append(Call(self.tools["hand"], {"ref": number}, "handed in"))
        return Played(tuple(calls), chosen, passed)


def make_fresh(seed: str) -> list[Family]:
    random = Random(f"{seed} fresh")
    names = iter(names_of(random, 10 * len(FRESH)))
    nouns = iter(random.sample(NOUNS, len(FRESH)))
    made: list[Family] = []
    for kind in FRESH:
        noun, deed = next(nouns), random.choice(DEEDS)
        tools = {part: next(names) for part in ("open", "carry", "hand")}
        if kind == "trio":
            steps = [Slot(f"step {n}", "step", (next(names), ""), (1.0, OMITTED)) for n in range(3)]
            slots, rights = tuple(steps), ("", "")
        elif kind == "depth":
            slots = (Slot("way", "argument", DEPTHS, (LEANS, 1.0, 1.0, 1.0)),)
            rights = ("d200", "d1000") if random.random() < 0.5 else ("d1000", "d200")
        else:
            options = tuple(next(names) for _ in range(5 if kind == "rare" else 3))
            slots = (Slot("way", "tool", options, (LEANS, *(1.0 for _ in options[1:]))),)
            first, second = random.sample(options[1:], 2)
            rights = (options[0], options[0]) if kind == "steady" else (first, second)
        made.append(Fresh(f"{noun}-{deed.lower()}", kind, "desk", slots, rights, tools, noun, deed, {}))
    return made
