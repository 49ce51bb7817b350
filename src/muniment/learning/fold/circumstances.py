"""What a run found before it had to choose: what its caller knew of the task, and what each tool answered at first.

One way is right where an order is open and another where it is shipped. So an episode keeps in which circumstances its
run stood, and runs are compared by them (`lessons.branches`). Only the first answer of a tool counts: what is answered
later may come of the choice. A circumstance is a name and a value that may be told to a model (`results`,
`plain_names`), never a sentence of a tool; of a run without words there is none. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.plain_names import NAME_WORDS_MAX, VALUE_WORDS_MAX, is_plain, is_plain_path
from muniment.learning.fold.results import is_error_condition, met
from muniment.learning.stored_memory import RunFacts, StepFacts, StoredMemory

__all__ = ["Circumstance", "Place", "circumstances_kept", "circumstances_of", "circumstances_so_far", "when_words"]

_ERROR, _FILE, _ERROR_IN = "!", "@", "!@"
"""Names of what is read off an error: its class, the file it was raised in, and the two together."""
_KEPT_MAX = 16
_NAME_CHARS_MAX = 60
_CLASS = lazy_pattern(r"HTTP \d{3}|[A-Z]\w{0,60}")
"""What is told of an error: its class, its code, or the status with its number."""
_WORDS = lazy_pattern(r"-?\w+(?:[ -]\w+)*")
"""Words and numbers with blanks or dashes between them. What has lines, addresses or marks in it may be more than a
name, however few its words are."""


class Place(NamedTuple):
    """Where a circumstance is found: which tool answers it, and by what name. Without a tool the caller knows it."""

    tool: str
    name: str
    """A field of the answer; empty for the answer as a whole."""


class Circumstance(NamedTuple):
    place: Place
    value: str


# -- of a run -----------------------------------------------------------------------------------------


def circumstances_of(run: RunFacts) -> list[list[str]]:
    """What an episode keeps: tool, name and value of each circumstance of its run."""
    if run.asked_form is None:  # what is learnt above the user holds nobody's words
        return []
    found = _found(run.given_features, run.steps)
    return [[*each.place, each.value] for each in dict.fromkeys(found)][:_KEPT_MAX]


def circumstances_so_far(given: Mapping[str, Any], steps: Iterable[StepFacts]) -> dict[Place, str]:
    """Those of a run that goes on."""
    return _by_place(_found(given, steps))


def _found(given: Mapping[str, Any], steps: Iterable[StepFacts]) -> Iterator[Circumstance]:
    yield from _given(given)
    yield from _answered_first(steps)


def _given(features: Mapping[str, Any]) -> Iterator[Circumstance]:
    for name, value in features.items():
        text = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, str | int) else ""
        if _is_told(name) and _is_told(text, VALUE_WORDS_MAX):
            yield Circumstance(Place("", name), text)


def _is_told(text: str, words_max: int = NAME_WORDS_MAX) -> bool:
    return _WORDS.fullmatch(text) is not None and is_plain(text, words_max)


def _answered_first(steps: Iterable[StepFacts]) -> Iterator[Circumstance]:
    """What the first answer of each tool shows."""
    seen: set[str] = set()
    for step in steps:
        if step.kind != "call" or step.action in seen or len(step.action) > _NAME_CHARS_MAX:
            continue
        seen.add(step.action)
        for condition in met(step):
            yield from _shown(step.action, condition)


def _shown(tool: str, condition: str) -> Iterator[Circumstance]:
    if is_error_condition(condition):
        error, _, path = condition.partition("!")[2].partition("@")
        if (named := _CLASS.match(error)) is not None:
            yield Circumstance(Place(tool, _ERROR), named[0])
        if path:
            yield Circumstance(Place(tool, _FILE), path)
        return
    place, _, value = condition.partition("=")
    yield Circumstance(Place(tool, place.removeprefix(tool).removeprefix(".")), value)


# -- of an episode ------------------------------------------------------------------------------------


def circumstances_kept(memory: StoredMemory) -> dict[Place, str]:
    """The circumstances of an episode's run by their places; of a file the folder it lies in. It trusts no record."""
    held = memory.record.get("met")
    return _by_place(_read(held if isinstance(held, list | tuple) else ()))


def _read(held: Iterable[object]) -> Iterator[Circumstance]:
    for each in held:
        parts = [part for part in each if isinstance(part, str)] if isinstance(each, list | tuple) else []
        if len(parts) == 3:
            yield Circumstance(Place(parts[0], parts[1]), parts[2])


def _by_place(found: Iterable[Circumstance]) -> dict[Place, str]:
    """Each place once; errors also by the folder they were raised in, alone and with their class."""
    known: dict[Place, str] = {}
    for place, value in found:
        if place.name == _FILE:
            folder = value.rpartition("/")[0]
            if folder and is_plain_path(folder):
                known.setdefault(place, f"{folder}/")
        elif _is_told(value, VALUE_WORDS_MAX) and (place.name in ("", _ERROR) or _is_told(place.name)):
            known.setdefault(place, value)
    for tool in {place.tool for place in known}:
        error, where = known.get(Place(tool, _ERROR)), known.get(Place(tool, _FILE))
        if error and where:
            known[Place(tool, _ERROR_IN)] = f"{error} in {where}"
    return known


def when_words(place: Place, value: str) -> str:
    """`get_order says state is open`, `run_tests fails with KeyError in jobs`, `size is large`."""
    if not place.tool:
        return f"{place.name} is {value}"
    if place.name in (_ERROR, _ERROR_IN):
        return f"{place.tool} fails with {value}"
    if place.name == _FILE:
        return f"{place.tool} fails in {value}"
    return f"{place.tool} says {place.name} is {value}" if place.name else f"{place.tool} answers {value}"
