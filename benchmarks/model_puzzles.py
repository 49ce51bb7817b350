"""Tool puzzles for a real model: a desk whose documentation misleads, and quirks that stand nowhere.

A task is solved by one call, and the model names two: the second is made where the first is not accepted. Of each desk
one thing is hidden: which of four tools is accepted (`tool`), which of three grades (`grade`), or which tool for which
form of paper (`form`, which the task tells). The documentation names a usual tool and a usual grade; what is hidden is
never the usual one. A call that is not accepted says a number and nothing else, and a right one is refused now and then
(`FLAKY`). The order of the tools is shuffled from task to task. Nothing here reads or writes a memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from benchmarks.learning.families import DEEDS, NOUNS, PAIRS, PEOPLE, VALUES, names_of

__all__ = ["KINDS", "SYSTEM", "Asked", "Desk", "Made", "asked_of", "calls_in", "make_desks", "play", "user_text"]

KINDS = ("tool", "grade", "form")
FLAKY = 0.05
SYSTEM = (
    "You are a clerk who works with tools. You name the call that you make first, and another one that is made only if"
    " the first is not accepted. You answer with JSON alone and no other word."
)
_USUAL = "The usual way to {deed} a {noun}."
_OTHERS = (
    "Works through the {noun} line by line.",
    "Takes the {noun} as a whole.",
    "Goes by the newest entry of the {noun}.",
    "Goes by the oldest entry of the {noun}.",
    "Asks the register for the {noun}.",
)
_FORM = '{"first": {"tool": "…", "grade": "…"}, "second": {"tool": "…", "grade": "…"}}'
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


class Desk(NamedTuple):
    """Where one stream of tasks is worked on. The first tool and the first grade are the usual ones."""

    name: str
    kind: str
    noun: str
    deed: str
    tools: tuple[str, ...]
    words: tuple[str, ...]
    grades: tuple[str, ...]
    forms: tuple[str, ...]
    rights: Mapping[str, str]
    """The hidden tool or grade, by form; by nothing where the form does not matter."""

    @property
    def intent(self) -> dict[str, str]:
        return {"domain_tag": "desk", "task_family": self.name}


class Asked(NamedTuple):
    """One task."""

    text: str
    number: str
    form: str
    tools: tuple[str, ...]
    """As the documentation lists them this time."""
    draws: str


class Made(NamedTuple):
    """A call, and what the desk said."""

    tool: str
    grade: str
    content: str
    accepted: bool


def make_desks(seed: str, count: int) -> list[Desk]:
    """So many desks, the kinds in turn."""
    random = Random(f"{seed} desks")
    names = iter(names_of(random, 4 * count))
    desks = []
    for place in range(count):
        kind = KINDS[place % len(KINDS)]
        noun, deed = random.choice(NOUNS), random.choice(DEEDS).lower()
        tools = tuple(next(names) for _ in range(4))
        grades = tuple(random.sample(VALUES, 3))
        forms = random.choice(PAIRS) if kind == "form" else ()
        hidden = random.sample(grades[1:] if kind == "grade" else tools[1:], 2)
        rights = dict(zip(forms or ("",), hidden, strict=False))
        words = (_USUAL, *random.sample(_OTHERS, 3))
        desks.append(Desk(f"{noun}-{deed}-{place}", kind, noun, deed, tools, words, grades, forms, rights))
    return desks


def asked_of(desk: Desk, draws: str) -> Asked:
    random = Random(f"{draws} task")
    number, form = str(random.randrange(1_000, 10_000)), random.choice(desk.forms) if desk.forms else ""
    text = f"{desk.deed.capitalize()} the {desk.noun} of {random.choice(PEOPLE)}, no. {number}"
    text += f", which is {form}." if form else "."
    return Asked(text, number, form, tuple(random.sample(desk.tools, len(desk.tools))), draws)


def user_text(desk: Desk, asked: Asked, told: str) -> str:
    """What the model is asked: the documentation, what it is told, the task."""
    words = dict(zip(desk.tools, desk.words, strict=True))
    lines = [f"- {tool}(ref, grade): {words[tool].format(noun=desk.noun, deed=desk.deed)}" for tool in asked.tools]
    documented = "\n".join(["Tools:", *lines, f"grade is one of {', '.join(desk.grades)}; {desk.grades[0]} is usual."])
    parts = [documented, told, f"Task: {asked.text}", f"Answer in this form: {_FORM}"]
    return "\n\n".join(part for part in parts if part)


def calls_in(answer: str, desk: Desk) -> list[tuple[str, str]]:
    """The calls that an answer names, first and second; none where it is no JSON or names no tool of the desk."""
    found = _OBJECT.search(answer)
    try:
        said = json.loads(found[0]) if found else None
    except ValueError:
        return []
    if not isinstance(said, dict):
        return []
    calls = []
    for place in ("first", "second"):
        call = said.get(place)
        if isinstance(call, dict) and call.get("tool") in desk.tools:
            grade = call.get("grade")
            calls.append((str(call["tool"]), grade if grade in desk.grades else ""))
    return calls


def play(desk: Desk, asked: Asked, calls: Sequence[tuple[str, str]]) -> list[Made]:
    """The calls as they go, until one is accepted."""
    random = Random(f"{asked.draws} desk")
    is_flaky = random.random() < FLAKY
    made: list[Made] = []
    for tool, grade in calls:
        accepted = is_right(desk, asked, tool, grade) and not (is_flaky and not made)
        said = (
            f"{desk.noun} {asked.number} accepted" if accepted else f"not accepted, code {random.randrange(100, 999)}"
        )
        made.append(Made(tool, grade, said, accepted))
        if accepted:
            break
    return made


def is_right(desk: Desk, asked: Asked, tool: str, grade: str) -> bool:
    right = desk.rights[asked.form]
    return grade == right if desk.kind == "grade" else tool == right


def arguments(asked: Asked, made: Made) -> dict[str, Any]:
    return {"ref": asked.number, "grade": made.grade}
