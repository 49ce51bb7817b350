"""Does memory hold something on what is asked? Decided from what was gathered, so that replay decides the same."""

from __future__ import annotations

import math
from collections.abc import Iterable

from muniment.memory.evidence import match_text, read_wanted
from muniment.memory.tool_results import asks_how_often
from muniment.memory.turns import told_text
from muniment.packets.admission import Admission
from muniment.packets.allocate import Allocation
from muniment.packets.page.lines import BlockName, StateUnit, state_line

__all__ = ["found_chance", "is_found"]

_STANDING: tuple[BlockName, ...] = ("loops", "summary", "tools", "window")
_MEANT = frozenset(("goal", "objective", "done_definition", "plan", "next_actions", "risks", "hints"))
"""Parts of a state that say what is meant to be, and not what is: they answer only all of a question."""


def found_chance(admission: Admission) -> float:
    """The chance that a turn that may be quoted is evidence for what is asked: that of the likeliest."""
    likeliest = sorted(admission.pool.hits, key=lambda hit: -hit.score)
    return next((hit.score for hit in likeliest if admission.bars_turn(hit.turn) is None), 0.0)


def is_found(admission: Admission, allocation: Allocation) -> bool:
    """Something is found where a turn is evidence with `found_min` or more, where a fact or a line of the run's state
    holds `match_min` of what is asked for, and, of a question that names nothing, where anything stands there.
    """
    policy = admission.policy
    if not admission.is_asked:
        return bool(allocation.lines)
    if found_chance(admission) >= policy.found_min:
        return True
    wanted = read_wanted(admission.request.query)
    if asks_how_often(admission.request.query.casefold()):  # what happened often shares the chance: each has little
        texts = [(hit.score, told_text(hit.turn, hit.turn.text)) for hit in admission.pool.hits]
        alike = [score for score, text in texts if match_text(wanted, text).score >= policy.match_min]
        if math.fsum(alike) >= policy.found_min:
            return True
    facts = allocation.in_block("instructions", "facts")
    if any(line.item.score >= policy.match_min for line in facts):
        return True
    state: Iterable[StateUnit] = [line.item for line in allocation.in_block("task", "state")]
    if not admission.terms:
        return bool(state or allocation.in_block(*_STANDING))
    lines = [(state_line(unit, lambda _: ""), 1.0 if unit.part in _MEANT else policy.match_min) for unit in state]
    given = [line.item.line for line in allocation.in_block("summary")]
    lines += [(line.text, policy.match_min) for line in given if line.kind == "given"]
    return any(match_text(wanted, text).score >= share for text, share in lines)
