"""Generated worlds with the truth known: families of tasks, each with a right way that nobody tells the agent.

A run of a family opens something, may look at what it opened, makes its choices and hands in. One choice decides
(`way`), another is without effect (`side`), so that chance has something to offer. What is right, by kind of family:

    tool         one tool of three
    argument     one value of three of an argument
    order        which of two steps comes first
    input        one tool of three, by something that the task says
    result       one tool of three, by what a tool answered
    confounded   the thorough tool helps on every task, and the agent takes it on hard tasks, which fail more often:
                 across tasks it looks harmful. Twelve tasks come again and again, so that it can be seen within a task
    even         nothing; every way passes alike
    skip         whether a step is made or left out      } held out: nothing in the library was chosen by these three
    pair         both choices, one of two tools each     }
    named        the value of an argument that the task itself names: copied from another task it is wrong
    code         `benchmarks.learning.code`: the change that mends a failing test, by the error and the folder

The tool that the documentation names is a wrong one, and the agent leans to it. What is right changes with the
segment of a stream: A, then B (drift), then A again. Names are drawn anew for each seed. Tasks are half hard; a
right way passes most of the time, a wrong one seldom (`RATES`). Nothing here is seen by the library but
tasks, calls and verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, Protocol

from benchmarks.learning.reading import Kind, Said, Slot, concerns, odds_told, read_text

__all__ = [
    "HELD_OUT",
    "KINDS",
    "Call",
    "Choose",
    "Family",
    "Given",
    "Played",
    "Shares",
    "expected_told",
    "make_held_out",
    "make_plain",
    "names_of",
    "pick",
    "segment_of",
    "shares_told",
]

KINDS = ("tool", "argument", "order", "input", "result", "confounded", "even")
HELD_OUT = ("skip", "pair", "named")
RATES: Mapping[tuple[bool, bool], float] = {
    (True, False): 0.9, (True, True): 0.7, (False, False): 0.3, (False, True): 0.1,
}  # fmt: skip
"""How often a run passes, by whether its way was right and whether its task is hard."""
CONFOUNDED: Mapping[tuple[bool, bool], float] = {
    (True, False): 0.95, (True, True): 0.45, (False, False): 0.75, (False, True): 0.2,
}  # fmt: skip
PAIRED: Mapping[tuple[int, bool], float] = {
    (2, False): 0.9, (2, True): 0.7, (1, False): 0.5, (1, True): 0.3, (0, False): 0.2, (0, True): 0.1,
}  # fmt: skip
"""How often a run passes, by how many of two choices were right and whether its task is hard."""
LEANS = 1.5
"""The odds of what the documentation names, against 1."""
SEGMENTS = (0.4, 0.4, 0.2)
"""Of a family's runs: world A, world B, world A again."""
OPEN_MIND = 0.05
"""The share of draws in which the agent does as it likes."""
POOL = 12
EVEN = 0.5
_TROUBLE = (0.25, 0.15)
"""Of wrong and of right calls, how many come back with an error."""

_NUMBER = re.compile(r"\d+")
VERBS = ("pull", "scan", "merge", "fold", "lift", "trace", "stack", "prune", "sweep", "weave", "stage", "slice", "pack")
NOUNS = ("ledger", "index", "roster", "basket", "claim", "parcel", "invoice", "voucher", "meter", "permit", "docket")
VALUES = ("amber", "cobalt", "ivory", "slate", "ochre", "crimson", "teal", "umber", "indigo", "olive", "sienna", "jade")
PAIRS = (("narrow", "wide"), ("sealed", "loose"), ("dated", "undated"), ("local", "foreign"), ("paired", "single"))
DEEDS = ("Close", "Settle", "Reissue", "Transfer", "Archive", "Reconcile")
PEOPLE = ("Amsel", "Borg", "Castel", "Duarte", "Eriks", "Faber", "Greco", "Hollis", "Ibsen", "Jung", "Kovacs", "Lund")


class Given(NamedTuple):
    """A task, and what the agent can see of it. `draws` names its chances: the same in every arm."""

    family: str
    text: str
    hard: bool
    seen: Mapping[str, str]
    """What the agent sees by the time it chooses, by name: in the task, or in a result."""
    features: Mapping[str, Any]
    """What a caller would tell the runner of the task."""
    draws: str


class Call(NamedTuple):
    tool: str
    args: Mapping[str, Any]
    content: str
    ok: bool = True


class Played(NamedTuple):
    calls: tuple[Call, ...]
    chosen: Mapping[str, str]
    passed: bool
    """In truth; what the verifier says may differ."""


Shares = Mapping[str, Sequence[float]]
"""How likely each option of each slot is."""
Choose = Callable[[Slot, Sequence[str]], str]
"""One of the options that are left."""


class Family(Protocol):
    """Tasks of one kind, the agent's choices in them, and the truth."""

    name: str
    kind: str
    domain: str
    slots: tuple[Slot, ...]
    values: Mapping[str, tuple[str, ...]]
    """What the agent can see, by name, with all its values: what a condition may speak of."""

    def task(self, draws: str) -> Given: ...
    def leaning(self, slot: Slot, given: Given, /) -> Sequence[float]: ...
    def right(self, given: Given, segment: int) -> str | None: ...
    def play(self, given: Given, segment: int, choose: Choose, random: Random) -> Played: ...
    def expected(self, given: Given, segment: int, shares: Shares) -> float: ...
    def situations(self) -> Iterator[tuple[float, Given]]: ...


def segment_of(number: int, runs: int) -> int:
    """0, 1 or 2: where in its stream a run of a family stands."""
    first = round(runs * SEGMENTS[0])
    return 0 if number < first else 1 if number < first + round(runs * SEGMENTS[1]) else 2


# -- the agent ----------------------------------------------------------------------------------------


def shares_told(family: Family, given: Given, told: Sequence[str]) -> dict[str, list[float]]:
    """How likely the agent takes each option, after what it is told."""
    said: list[Said] = []
    for text in told:
        if concerns(text, family.values, given.seen):
            said += read_text(text, family.slots)
    shares = {}
    for slot in family.slots:
        leaning = family.leaning(slot, given)
        plain, shifted = odds_told(slot, leaning, ()), odds_told(slot, leaning, said)
        shares[slot.name] = [OPEN_MIND * a + (1 - OPEN_MIND) * b for a, b in zip(plain, shifted, strict=True)]
    return shares


def expected_told(family: Family, given: Given, segment: int, told: Sequence[str]) -> float:
    """How often the agent passes this task, after what it is told: worked out, not drawn."""
    return family.expected(given, segment, shares_told(family, given, told))


def pick(options: Sequence[str], shares: Sequence[float], drawn: float) -> str:
    """The one that a draw from 0 to 1 falls on."""
    reached, whole = 0.0, sum(shares)
    for option, share in zip(options, shares, strict=True):
        reached += share / whole
        if drawn < reached:
            return option
    return options[-1]


# -- plain families -----------------------------------------------------------------------------------


@dataclass
class Plain:
    """A family of any kind but `code`."""

    name: str
    kind: str
    domain: str
    slots: tuple[Slot, ...]
    values: Mapping[str, tuple[str, ...]]
    rights: tuple[Mapping[str, str], Mapping[str, str]]
    """The right option in A and in B, by what is seen; by nothing where nothing matters."""
    tools: Mapping[str, str]
    """The names of the tools without a choice: open, look, carry (whose argument is chosen), again, hand."""
    noun: str
    deed: str
    pool: tuple[tuple[str, bool], ...] = field(default=())

    def task(self, draws: str) -> Given:
        random = Random(f"{draws} task")
        seen = {name: random.choice(values) for name, values in self.values.items()}
        hard = random.random() < 0.5
        text = f"{self.deed} the {self.noun} of {random.choice(PEOPLE)}, no. {random.randrange(1_000, 10_000)}"
        if self.pool:
            text, hard = self.pool[random.randrange(len(self.pool))]
        elif self.kind == "input":
            text += f", which is {next(iter(seen.values()))}"
        elif self.kind == "named":
            seen = {"named": random.choice(self.slots[0].options)}
            text += f", with grade {seen['named']}"
        features = dict(seen) if self.kind == "input" else {}
        return Given(self.name, f"{text}.", hard, seen, features, draws)

    def leaning(self, slot: Slot, given: Given, /) -> Sequence[float]:
        if self.kind == "confounded" and slot.name == "way":
            return (0.85, 0.15) if given.hard else (0.15, 0.85)
        return slot.odds

    def right(self, given: Given, segment: int) -> str | None:
        rights = self.rights[1 if segment == 1 else 0]
        return rights.get(next(iter(given.seen.values()), ""))

    def rate(self, given: Given, segment: int, way: str, side: str = "") -> float:
        right = self.right(given, segment)
        if right is None:
            return EVEN
        if self.kind == "pair":
            return PAIRED[(way == right) + (side == self.rights[segment % 2]["side"]), given.hard]
        return (CONFOUNDED if self.kind == "confounded" else RATES)[way == right, given.hard]

    def expected(self, given: Given, segment: int, shares: Shares) -> float:
        way, side = self.slots
        sides = list(zip(side.options, shares["side"], strict=True)) if self.kind == "pair" else [("", 1.0)]
        return sum(
            share * other * self.rate(given, segment, option, beside)
            for option, share in zip(way.options, shares["way"], strict=True)
            for beside, other in sides
        )

    def situations(self) -> Iterator[tuple[float, Given]]:
        known = {"named": self.slots[0].options} if self.kind == "named" else self.values
        seen: list[dict[str, str]] = [{name: value} for name, values in known.items() for value in values]
        for each in seen or [{}]:
            for hard in (False, True):
                yield 0.5 / len(seen or [{}]), Given(self.name, "", hard, each, {}, "")

    def play(self, given: Given, segment: int, choose: Choose, random: Random) -> Played:
        chosen = {slot.name: choose(slot, slot.options) for slot in self.slots}
        passed = random.random() < self.rate(given, segment, chosen["way"], chosen["side"])
        number = _NUMBER.findall(given.text)[-1]
        calls = [Call(self.tools["open"], {"ref": number}, f"{self.noun} {number}: {random.randrange(3, 90)} lines")]
        if self.kind == "result":
            value = next(iter(given.seen.values()))
            calls.append(Call(self.tools["look"], {}, f"{self.noun} {number} is {value}, owner known"))
        right = self.right(given, segment)
        trouble = random.random() < _TROUBLE[chosen["way"] == right]
        calls += self._chosen_calls(chosen, trouble, random)
        if trouble:
            calls.append(Call(self.tools["again"], {}, f"{random.randrange(1, 9)} lines left"))
        calls.append(Call(self.tools["hand"], {"ref": number}, "handed in"))
        return Played(tuple(calls), chosen, passed)

    def _chosen_calls(self, chosen: Mapping[str, str], trouble: bool, random: Random) -> list[Call]:
        """The calls of the two choices, in the order that is chosen where an order is."""
        said = f"error {random.randrange(11, 99)}: rejected" if trouble else f"{random.randrange(3, 90)} lines done"
        side = [] if not chosen["side"] else [Call(chosen["side"], {}, "ready")]
        if self.kind == "order":
            one, two = chosen["way"].split(">")
            return [Call(one, {}, "done"), *side, Call(two, {}, said, not trouble)]
        if self.kind == "skip":
            step = [] if not chosen["way"] else [Call(chosen["way"], {}, "ready")]
            return [*side, *step, Call(self.tools["carry"], {}, said, not trouble)]
        if self.kind in ("argument", "named"):
            return [*side, Call(self.tools["carry"], {"grade": chosen["way"]}, said, not trouble)]
        return [*side, Call(chosen["way"], {}, said, not trouble)]


def names_of(random: Random, count: int) -> list[str]:
    """So many names of tools that differ."""
    pairs = [f"{verb}_{noun}" for verb in VERBS for noun in NOUNS]
    return random.sample(pairs, count)


def make_plain(seed: str, kinds: Sequence[str] = KINDS) -> list[Plain]:
    """The families of a seed. No name stands in two of them."""
    return [each for each in _make(Random(f"{seed} families"), KINDS) if each.kind in kinds]


def make_held_out(seed: str) -> list[Plain]:
    """The families of a seed that had no part in any choice."""
    return _make(Random(f"{seed} held out"), HELD_OUT)


def _make(random: Random, kinds: Sequence[str]) -> list[Plain]:
    names = iter(names_of(random, 12 * len(kinds)))
    nouns = iter(random.sample(NOUNS, len(kinds)))
    grades = random.sample(VALUES, len(VALUES))
    pairs = iter(random.sample(PAIRS, len(PAIRS)))
    made = []
    for kind in kinds:
        noun, deed = next(nouns), random.choice(DEEDS)
        tools = {part: next(names) for part in ("open", "look", "carry", "again", "hand")}
        slots, options = _slots(kind, names, grades, tools, random)
        seen = next(pairs) if kind in ("input", "result") else ()
        rights = _rights(kind, options, seen, random)
        if kind == "pair":
            rights = tuple(  # type: ignore[assignment]
                {**each, "side": side} for each, side in zip(rights, slots[1].options[::-1], strict=True)
            )
        pool = _pool(noun, deed, random) if kind == "confounded" else ()
        values = {"condition": seen} if seen else {}
        family = f"{noun}-{deed.lower()}"
        made.append(Plain(family, kind, "desk", slots, values, rights, tools, noun, deed, pool))
    return made


def _slots(
    kind: str, names: Iterator[str], grades: list[str], tools: Mapping[str, str], random: Random
) -> tuple[tuple[Slot, ...], tuple[str, ...]]:
    """The two choices of a family, and the options of the one that decides."""
    if kind in ("argument", "named"):
        options = tuple(grades.pop() for _ in range(3))
    elif kind == "order":
        one, two = next(names), next(names)
        options = (f"{one}>{two}", f"{two}>{one}")
    elif kind == "skip":
        options = (next(names), "")
    else:
        options = tuple(next(names) for _ in range(2 if kind in ("confounded", "pair") else 3))
    sorts: Mapping[str, Kind] = {"order": "order", "argument": "argument", "named": "argument", "skip": "step"}
    sort: Kind = sorts.get(kind, "tool")
    way = Slot("way", sort, options, (LEANS, *(1.0 for _ in options[1:])), tools["open"], tools["hand"])
    step = kind != "pair" and random.random() < 0.5
    side = Slot("side", "step" if step else "tool", (next(names), "" if step else next(names)), (1.0, 1.0))
    return (way, side), options


def _rights(
    kind: str, options: tuple[str, ...], seen: Sequence[str], random: Random
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What is right in A and in B: by each value where there is one. The first option is the documented one."""
    if kind == "even":
        return {}, {}
    if kind == "confounded":
        return {"": options[0]}, {"": options[1]}
    if kind in ("order", "skip", "pair"):
        return {"": options[1]}, {"": options[0]}
    if kind == "named":
        return {each: each for each in options}, dict(zip(options, (*options[1:], options[0]), strict=True))
    if not seen:
        first, second = random.sample(options[1:], 2)
        return {"": first}, {"": second}
    one, two = random.sample(options[1:], 2)
    # in B both change, and one of the two is what the documentation says
    return {seen[0]: one, seen[1]: two}, {seen[0]: two, seen[1]: options[0]}


def _pool(noun: str, deed: str, random: Random) -> tuple[tuple[str, bool], ...]:
    """Tasks that come again, half of them hard; the agent can see which."""
    made = []
    for place, number in enumerate(random.sample(range(1_000, 10_000), POOL)):
        hard = place % 2 == 1
        more = f" and its {random.randrange(3, 9)} disputes" if hard else ""
        made.append((f"{deed} the {noun} of {random.choice(PEOPLE)}{more}, no. {number}", hard))
    return tuple(made)
