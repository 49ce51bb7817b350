"""How a call that failed was mended, as features: what was changed between it and the next try of the same tool.

retried:run_tests!KeyError@src/cart.py                     the failed call was made again
mended:run_tests!KeyError@src/cart.py                      and held
mend:run_tests!KeyError@src/cart.py>edit:src/cart.py~get   what was done in between
mend:book!payment does not add up>arg:amount               which argument was another

Of a call that never held, all that was tried counts; of one that did, what was done last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from muniment.learning.fold.blame import is_error
from muniment.learning.fold.edits import edits_in
from muniment.learning.fold.results import met
from muniment.learning.stored_memory import StepFacts

__all__ = ["MEND", "MENDED", "RETRIED", "corrections_of", "mend_parts"]

MEND: Final = "mend:"
MENDED: Final = "mended:"
RETRIED: Final = "retried:"
_BETWEEN_MAX = 8

ReadArguments = Callable[[str], Mapping[str, Any]]


def corrections_of(calls: Sequence[StepFacts], read_arguments: ReadArguments) -> Iterator[str]:
    """The features of a run's corrections."""
    failures: dict[str, list[int]] = {}
    for place, step in enumerate(calls):
        if (condition := _error_of(step)) is not None:
            failures.setdefault(condition, []).append(place)
    for condition, places in failures.items():
        tries = [(place, again) for place in places if (again := _again(calls, place)) is not None]
        if not tries:
            continue
        yield f"{RETRIED}{condition}"
        held = next((one for one in reversed(tries) if _error_of(calls[one[1]]) is None), None)
        if held is not None:
            yield f"{MENDED}{condition}"
        for place, again in tries if held is None else [held]:
            yield from (f"{MEND}{condition}>{what}" for what in _between(calls, place, again, read_arguments))


def mend_parts(rest: str) -> tuple[str, str]:
    """Of what stands behind `mend:`: the error, and what was done about it."""
    condition, _, what = rest.partition(">")
    return condition, what


def _error_of(step: StepFacts) -> str | None:
    """The error a call ended in, as closely as it can be named; None for one that held."""
    if not is_error(step):
        return None
    found = [condition for condition in met(step) if "!" in condition]
    return max(found, key=len) if found else f"{step.action}!"


def _again(calls: Sequence[StepFacts], place: int) -> int | None:
    later = (at for at in range(place + 1, len(calls)) if calls[at].action == calls[place].action)
    return next(later, None)


def _between(calls: Sequence[StepFacts], place: int, again: int, read_arguments: ReadArguments) -> Iterator[str]:
    """The files and arguments that were changed; where there are none, the tools that were called."""
    steps = calls[place + 1 : again][-_BETWEEN_MAX:]
    found = [name for step in steps if not is_error(step) for name in edits_in(read_arguments(step.detail or ""))]
    found += [f"arg:{name}" for name in _changed(calls[place], calls[again], read_arguments)]
    yield from dict.fromkeys(found or [f"tool:{step.action}" for step in steps])


def _changed(one: StepFacts, other: StepFacts, read_arguments: ReadArguments) -> Iterable[str]:
    before, after = read_arguments(one.detail or ""), read_arguments(other.detail or "")
    return (name for name in sorted({*before, *after}) if before.get(name) != after.get(name))
