"""What a tree search asks for and what it is told, each as plain data, so that a search can be told it all again."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any, Literal, NamedTuple

from muniment.core.canonical import Written, canonical_text
from muniment.core.record import JsonObject, JsonValue
from muniment.errors import InvalidInput, MunimentError, TooLarge

__all__ = [
    "NUMBER_MAX",
    "SAID_CHARS_MAX",
    "Answer",
    "Ask",
    "Child",
    "Expanded",
    "Failed",
    "Scored",
    "Verified",
    "answer_wire",
    "children_of",
    "number_within",
    "read_answer",
    "state_text",
]

SAID_CHARS_MAX = 300
NUMBER_MAX = 1e100
AskKind = Literal["expand", "score", "verify"]


class Ask(NamedTuple):
    """What the search wants to know next: one call of one function."""

    kind: AskKind
    node: int
    state: JsonValue
    """A copy: the caller may do with it what it likes."""
    depth: int


class Child(NamedTuple):
    """A state that follows from another, and how likely it leads on, where that is known. States are JSON."""

    state: Any
    prior: float | None = None
    key: str | None = None
    """Equal keys are the same state; without one, equal JSON is."""


class Expanded(NamedTuple):
    """The states that follow, none where it is a dead end."""

    children: tuple[Child, ...]
    more: bool = False
    """There were more than may be taken."""
    refused: int = 0
    """Offered, and no states."""
    odd: int = 0
    """States whose prior or key is nonsense: kept without it."""
    said: str | None = None
    """What was wrong with the first of those."""
    cost: float = 0.0


class Scored(NamedTuple):
    """How promising a state is, from 0 to 1; None where nobody can say."""

    value: float | None
    cost: float = 0.0


class Verified(NamedTuple):
    """Whether a state is what is looked for."""

    verdict: Literal["pass", "fail", "unknown"]
    cost: float = 0.0
    result: JsonObject | None = None
    """What the verifier said, where it said more; the search does not read it."""


class Failed(NamedTuple):
    """The call came to nothing: it raised, hung or answered nonsense."""

    code: str
    """A reason code: tool_failure, tool_timeout, tool_output_invalid."""
    said: str
    cost: float = 0.0


Answer = Expanded | Scored | Verified | Failed


def children_of(offered: Iterable[Any], state_bytes_max: int, *, more: bool = False, cost: float = 0.0) -> Expanded:
    """What an expand function offered: `Child`s or bare states. What is no state is counted, the rest is kept."""
    found: list[Child] = []
    wrong: list[str] = []
    refused = 0
    for index, each in enumerate(offered):
        child = each if isinstance(each, Child) else Child(each)
        try:
            text = state_text(child.state, state_bytes_max)
        except MunimentError as error:
            refused += 1
            wrong.append(f"child {index}: {error}")
            continue
        prior, key = number_within(child.prior, NUMBER_MAX), child.key if isinstance(child.key, str) else None
        found.append(Child(text, prior, key))
        if (prior is None) != (child.prior is None) or (key is None) != (child.key is None):
            wrong.append(f"child {index}: a prior is a number from 0 to {NUMBER_MAX:g}, a key is text")
    said = wrong[0][:SAID_CHARS_MAX] if wrong else None
    return Expanded(tuple(found), more, refused, len(wrong) - refused, said, cost)


def state_text(state: Any, state_bytes_max: int) -> Written:
    """A state as its canonical JSON, which is what a search keeps."""
    text = Written(canonical_text(state))
    size = len(text.encode())
    if size > state_bytes_max:
        raise TooLarge(f"a state of {size} bytes is over the limit of {state_bytes_max}", path="$.state")
    return text


def number_within(given: Any, most: float) -> float | None:
    """A number from 0 to `most`, of whatever kind; None for anything else."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    return float(given) if is_number and 0 <= given <= most else None


# -- as plain data ------------------------------------------------------------------------------------


def answer_wire(answer: Answer) -> list[Any]:
    """An answer in one row, for `canonical_text`."""
    match answer:
        case Expanded(children):
            return ["expanded", [list(child) for child in children], *answer[1:]]
        case Scored():
            return ["scored", *answer]
        case Verified():
            return ["verified", *answer]
        case Failed():
            return ["failed", *answer]


def read_answer(row: Any, state_bytes_max: int) -> Answer:
    """The answer that a row was made of."""
    match row:
        case ["expanded", list(children), bool(more), int(refused), int(odd), str() | None as said, cost]:
            if all(isinstance(child, list) and len(child) == 3 for child in children):
                read = children_of((Child(*child) for child in children), state_bytes_max, more=more, cost=_cost(cost))
                return read._replace(refused=refused + read.refused, odd=odd + read.odd, said=said or read.said)
        case ["scored", int() | float() | None as value, cost]:
            return Scored(None if value is None else float(value), _cost(cost))
        case ["verified", "pass" | "fail" | "unknown" as verdict, cost, dict() | None as result]:
            return Verified(verdict, _cost(cost), result)
        case ["failed", str(code), str(said), cost]:
            return Failed(code, said, _cost(cost))
    raise InvalidInput(f"{row!r:.60} is no answer to a search", path="$.answer")


def _cost(cost: Any) -> float:
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        return float(cost)
    raise InvalidInput("a cost is a number", path="$.answer.cost")
