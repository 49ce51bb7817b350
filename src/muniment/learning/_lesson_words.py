"""The text of a lesson: its sentence without figures, its condition, and a summary of its results. Pure."""

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
"""Openings of a condition, removed because "when" is added anyway."""
_STANDINGS: Mapping[str, str] = {"trial": "On trial: ", "suspended": "In doubt: "}
_MEASURED_MIN = 5
"""Minimum runs with and without it before figures are shown: "0 of 1" would mislead."""
EVENTS_MAX = 3
"""Maximum events cited by a lesson in a prompt."""


def sentence_of(said: Any) -> str:
    """Remove the figures counted when the text was written: newer ones are added."""
    text = " ".join(str(said or "").split())
    cut = _FIGURES.sub("", text).strip()
    return cut if cut.endswith((".", "!", "?")) or not cut else f"{cut}."


def condition_words(predicates: Iterable[str], when: str | None = None) -> str:
    """`lookup tasks in shop, when size is large`: the conditions of a record in plain words.

    `when` is the writer's own description, besides the tested conditions.
    """
    known, others = _conditions(predicates)
    if when and not others:
        others = [_WHEN.sub("", when)]
    family, domain = known.get("task_family"), known.get("domain_tag")
    place = (f"{family} tasks" if family else ANY_TASK) + (f" in {domain}" if domain else "")
    return f"{place}, when {' and '.join(others)}" if others else place


def _conditions(predicates: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The kind of work, and the further conditions, in words."""
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
    """The name and value of an equality condition; (None, None) for any other."""
    found = _EQUAL.fullmatch(text)
    if found is None:
        return None, None
    try:
        return found[1], json.loads(found[2])
    except ValueError:  # predicate escapes that JSON lacks
        return None, None


def _name(path: str) -> str:
    return path.replace(".", " ").replace("_", " ")


def figure_words(had: Tally, without: Tally) -> str:
    """`Runs told this passed 9 of 12, others 3 of 11.` A side without runs is omitted.

    The source runs' figures say `with it` about a call, these are about the lesson: for a warning the two are opposite.
    """
    others = f", others {without.passes} of {without.n}" if without.n else ""
    return f"Runs told this passed {had.passes} of {had.n}{others}." if had.n else ""


def lesson_line(memory: StoredMemory) -> str:
    """Render a lesson for a prompt: the sentence, its condition unless the sentence contains it, the figures.

    Figures are from runs with and without it, or from its source runs until there are enough. The kind of work is
    omitted, as the reader is doing it. Lessons that are unproven or in doubt are marked as such at the start, to be
    weighed and not obeyed.
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
    """`On trial: ` or `In doubt: ` for lessons at these stages; empty for those active or signed."""
    if memory.lesson is None or memory.status == "pinned":
        return ""
    return _STANDINGS.get(memory.lesson.stage, "")


def cited_events(memory: StoredMemory) -> list[str]:
    """The events a lesson is based on that its readers may know: none above a user."""
    return list(texts_in(memory.record, "lesson", "event_ids")[:EVENTS_MAX]) if memory.level == "user" else []


def texts_in(record: Mapping[str, Any], *path: str) -> Sequence[str]:
    """A list of texts deep in a record; empty if absent."""
    held: Any = record
    for name in path:
        held = held.get(name) if isinstance(held, Mapping) else None
    return [each for each in held if isinstance(each, str)] if isinstance(held, list | tuple) else []
