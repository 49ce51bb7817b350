"""A task climbed rung by rung: what it began with, and what each further rung recovered.

The unit is the task. Its first rung was chosen before anything was known of it, so tasks that began differently can be
compared. What came later came because nothing had passed, so it is compared with nothing but the same task: without the
rung it would have stayed as it was. Tasks that passed before count too, as tasks that the rung brought nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muniment.rules.flowmap.rows import FlowTask, Rung, Tried

__all__ = ["Begun", "Climbed", "begun", "climbed"]

PROBE_MAX = 4
"""Attempts of the first band; more are a full search."""


class Begun(NamedTuple):
    """The first rung of a task: one attempt, or several of a kind."""

    mode: str
    tier: str | None
    k: int
    """How many it could have had."""
    passed: bool | None
    cost: float


class Climbed(NamedTuple):
    """What a further rung, or further attempts, did to a task that they were open to."""

    mode: str = ""
    tier: str = ""
    k: str = ""
    """One of the three is said, the others are empty."""
    had_passed: bool = False
    """Before it came to this."""
    recovered: bool = False
    is_reached: bool = False
    """Was any attempt of it made?"""
    recovered_late: bool = False
    """Of the full search alone: by an attempt that a probe would not have had."""
    cost: float = 0.0


def begun(task: FlowTask) -> Begun:
    """What the task began with, and whether that alone passed it."""
    first = task.attempts[0]
    rung = _rung_of(task.rungs, first)
    made = _leading(task.attempts, first)
    judged = [each.passed for each in made if each.passed is not None]
    return Begun(
        first.mode,
        first.tier,
        len(made) if rung is None else max(1, rung.k),
        any(judged) if judged else None,
        sum(each.cost for each in made),
    )


def climbed(task: FlowTask) -> Iterator[Climbed]:
    """What every rung and number of attempts that was open to the task did to it."""
    if all(each.passed is None for each in task.attempts):
        return
    tries = sum(rung.k for rung in task.rungs if rung.mode != "synth")
    alone = [each for each in task.attempts if each.mode != "synth"]
    if tries > 1:
        yield _further(alone, PROBE_MAX, "2-4")
    if tries > PROBE_MAX:
        yield _further(alone, len(alone), "5+")
    first = (task.rungs[0].mode, task.rungs[0].tier) if task.rungs else ("", None)
    for field in ("mode", "tier"):
        begins = first[0] if field == "mode" else first[1]
        levels = dict.fromkeys(getattr(rung, field) for rung in task.rungs)
        for level in levels:
            if level is not None and level != begins:
                yield _rung_climbed(task.attempts, field, level)


def _further(attempts: Sequence[Tried], until: int, band: str) -> Climbed:
    """Attempts after the first: what one alone would have left is what the first left."""
    first, later = attempts[:1], attempts[1:until]
    had = _passes(first)
    return Climbed(
        k=band,
        had_passed=had,
        recovered=not had and _passes(later),
        is_reached=bool(later),
        recovered_late=band == "5+" and not _passes(attempts[:PROBE_MAX]) and _passes(attempts[PROBE_MAX:until]),
        cost=sum(each.cost for each in later),
    )


def _rung_climbed(attempts: Sequence[Tried], field: str, level: str) -> Climbed:
    at = next((at for at, each in enumerate(attempts) if getattr(each, field) == level), len(attempts))
    made = [each for each in attempts[at:] if getattr(each, field) == level]
    had = _passes(attempts[:at])
    return Climbed(
        mode=level if field == "mode" else "",
        tier=level if field == "tier" else "",
        had_passed=had,
        recovered=not had and _passes(made),
        is_reached=bool(made),
        cost=sum(each.cost for each in made),
    )


def _passes(attempts: Sequence[Tried]) -> bool:
    return any(each.passed for each in attempts)


def _leading(attempts: Sequence[Tried], first: Tried) -> list[Tried]:
    """The attempts from the first on that were made as it was."""
    made: list[Tried] = []
    for each in attempts:
        if (each.mode, each.tier) != (first.mode, first.tier):
            break
        made.append(each)
    return made


def _rung_of(rungs: Sequence[Rung], first: Tried) -> Rung | None:
    return next((rung for rung in rungs if (rung.mode, rung.tier) == (first.mode, first.tier)), None)
