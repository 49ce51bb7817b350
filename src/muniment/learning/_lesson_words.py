"""The words of a lesson: its sentence without figures, its condition, and what came of it in a few figures. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.core.text.patterns import lazy_pattern
from muniment.learning.records import StoredMemory, Tally

__all__ = [
    "ANY_TASK",
    "EVENTS_MAX",
    "cited_events",
    "condition_words",
    "figure_words",
    "lesson_line",
    "sentence_of",
    "standing_words",
    "texts_in",
]

ANY_TASK = "any task"
_EQUAL = lazy_pattern(r'(?:x_features\.)?([A-Za-z_][\w.]*) == ("(?:[^"\\]|\\.)*"|true|false|-?[0-9][0-9.eE+-]*)')
_FIGURES = lazy_pattern(
    r"\s*[:(]?\s*((?:passed|mended) \d+ of \d+ with it, \d+ of \d+ without(?:, on the same tasks)?)\)?"
    r"|(?<=[.!?]) Runs told this passed \d+ of \d+(?:, others \d+ of \d+)?\."
)
_WHEN = lazy_pattern(r"(?i)^(?:when(?:ever)?|if|where)\s+(?=\S)")
"""How a writer may begin a condition: it is told behind "when" anyway."""
_STANDINGS: Mapping[str, str] = {"trial": "On trial: ", "suspended": "In doubt: "}
_MEASURED_MIN = 5
"""So many runs with it and as many without: fewer say nothing, and "0 of 1" reads as if they did."""
EVENTS_MAX = 3
"""Events that a lesson names in a prompt: enough to look at, and no list."""


def sentence_of(said: Any) -> str:
    """A text without the figures that were counted when it was written: newer ones stand beside it."""
    text = " ".join(str(said or "").split())
    cut = _FIGURES.sub("", text).strip()
    return cut if cut.endswith((".", "!", "?")) or not cut else f"{cut}."


def condition_words(predicates: Iterable[str], when: str | None = None) -> str:
    """`lookup tasks in shop, when size is large`: the conditions of a record as a person would say them.

    `when` is what its writer says of it, beside what is tested.
    """
    known, others = _conditions(predicates)
    if when and not others:
        others = [_WHEN.sub("", when)]
    family, domain = known.get("task_family"), known.get("domain_tag")
    place = (f"{family} tasks" if family else ANY_TASK) + (f" in {domain}" if domain else "")
    return f"{place}, when {' and '.join(others)}" if others else place


def _conditions(predicates: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The kind of work, and what else must hold, in words."""
    known: dict[str, str] = {}
    others: list[str] = []
    for text in predicates:
        name, value = _equal(text)
        if name in ("task_family", "domain_tag") and isinstance(value, str):
            known[name] = value
        elif name is None:
            others.append(text)
        elif isinstance(value, bool):
            others.append(f"{_name(name)} holds" if value else f"{_name(name)} does not hold")
        else:
            others.append(f"{_name(name)} is {value}")
    return known, others


def _equal(text: str) -> tuple[str | None, Any]:
    """What a condition says is equal to what; (None, None) of one that says something else."""
    found = _EQUAL.fullmatch(text)
    if found is None:
        return None, None
    try:
        return found[1], json.loads(found[2])
    except ValueError:  # escapes of a predicate that JSON does not have
        return None, None


def _name(path: str) -> str:
    return path.replace(".", " ").replace("_", " ")


def figure_words(had: Tally, without: Tally) -> str:
    """`Runs told this passed 9 of 12, others 3 of 11.` Of a side without runs nothing is said.

    What a lesson was learnt from says `with it` of a call, this of the lesson: of a warning the two are opposite.
    """
    others = f", others {without.passes} of {without.n}" if without.n else ""
    return f"Runs told this passed {had.passes} of {had.n}{others}." if had.n else ""


def lesson_line(memory: StoredMemory) -> str:
    """What a lesson says in a prompt: the sentence, its condition where the sentence does not say it, the figures.

    Figures are those of runs with it and without; before there are enough, those of the runs it was learnt from. The
    kind of work is not said: who is handed it is at that work. What is not yet shown to help, or no longer, is told as
    such in front: whoever reads it is to weigh it, and not to obey.
    """
    record = memory.record
    injection = record.get("injection")
    written = injection.get("content") if isinstance(injection, Mapping) else None
    said = " ".join(str(written or record.get("summary") or "").split())
    sentence = sentence_of(said)
    own = record.get("lesson")
    when = own.get("when") if isinstance(own, Mapping) else None
    conditions = [when] if isinstance(when, str) and when else _conditions(texts_in(record, "predicates"))[1]
    missing = [_WHEN.sub("", each) for each in conditions if each.casefold() not in sentence.casefold()]
    is_measured = min(memory.with_tally.n, memory.without_tally.n) >= _MEASURED_MIN
    told = f"{sentence} {figure_words(memory.with_tally, memory.without_tally)}" if is_measured else said
    told = told if told.endswith((".", "!", "?")) or not told else f"{told}."
    start = f"When {' and '.join(missing)}: " if missing else ""
    return f"{standing_words(memory)}{start}{told}"


def standing_words(memory: StoredMemory) -> str:
    """`On trial: ` and `In doubt: ` of lessons that stand so; nothing of what is in force, or was signed."""
    if memory.lesson is None or memory.status == "pinned":
        return ""
    return _STANDINGS.get(memory.lesson.stage, "")


def cited_events(memory: StoredMemory) -> list[str]:
    """The events that a lesson rests on, as far as whoever is told it may know of them: none above a user."""
    return list(texts_in(memory.record, "lesson", "event_ids")[:EVENTS_MAX]) if memory.level == "user" else []


def texts_in(record: Mapping[str, Any], *path: str) -> Sequence[str]:
    """A list of texts deep in a record; empty where there is none."""
    held: Any = record
    for name in path:
        held = held.get(name) if isinstance(held, Mapping) else None
    return [each for each in held if isinstance(each, str)] if isinstance(held, list | tuple) else []
