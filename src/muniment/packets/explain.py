"""Explanations: every candidate is selected or omitted, exactly once, and each shortening is named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

from muniment.contracts.packet import Purpose
from muniment.packets.page import Section, state_units
from muniment.packets.pool import Pool

__all__ = [
    "BUDGET_REASONS",
    "REASONS",
    "UNGATHERED_REASONS",
    "Explanation",
    "Reason",
    "candidates_of",
    "names_of",
    "selected_name",
]

Reason = Literal[
    "over_budget",
    "duplicate",
    "near_duplicate",
    "expired",
    "not_yet_valid",
    "deprecated",
    "disputed",
    "overridden",
    "low_confidence",
    "weak_evidence",
    "out_of_window",
    "not_cued",
    "scope",
    "trust",
    "instruction_like",
    "superseded",
    "insight_wall",
    "purpose",
    "count_limit",
    "task_type",
    "empty",
    "excluded",
    "held_out",
]
REASONS: tuple[Reason, ...] = get_args(Reason)
UNGATHERED_REASONS: frozenset[str] = frozenset(
    (
        "count_limit",
        "deprecated",
        "duplicate",
        "empty",
        "no_match",
        "no_query",
        "not_cued",
        "not_indexed",
        "out_of_window",
        "over_budget",
        "scope",
        "unread",
    )
)
"""Reasons stored data was not gathered, counted in `explain.filters.not_gathered`."""
BUDGET_REASONS: frozenset[str] = frozenset(("over_budget", "count_limit", "duplicate", "near_duplicate"))
"""Omissions listed in the budget report; the others were never eligible."""

_SPACE = re.compile(r"\s+")


class Explanation:
    """The fate of every candidate, and the conflicts among a packet's facts."""

    def __init__(self) -> None:
        self._selected: dict[str, str] = {}
        self._omitted: dict[str, dict[str, Any]] = {}
        self._steps: dict[str, dict[str, str]] = {}
        self._rules_texts: dict[tuple[str, ...], str] = {}
        self.conflicts: list[dict[str, Any]] = []
        """In the form of `explain.conflicts`."""

    def select(self, name: str, score: float, rules: tuple[str, ...]) -> None:
        rules_text = self._rules_texts.get(rules)
        if rules_text is None:
            rules_text = self._rules_texts[rules] = _SPACE.sub("_", ",".join(rules)) or "default"
        self._selected[name] = f"{name} score={score:.4g} rules={rules_text}"

    def omit(self, name: str, reason: Reason, **detail: Any) -> None:
        omission = {"item": name, "reason": reason}
        self._omitted[name] = dict(sorted({**omission, **detail}.items())) if detail else omission

    def step_down(self, name: str, section: Section, step: str, detail: str) -> None:
        self._steps[name] = {"section": section, "action": step, "reason": f"over_budget: {name}, {detail}"}

    def conflict(self, kind: str, detail: str, fact_ids: tuple[str, ...]) -> None:
        self.conflicts.append({"type": kind, "detail": detail, "fact_ids": fact_ids})

    @property
    def selected(self) -> tuple[str, ...]:
        return tuple(self._selected.values())

    @property
    def omitted(self) -> list[dict[str, Any]]:
        """Omissions, in the form of `explain.omitted`."""
        return list(self._omitted.values())

    @property
    def omissions(self) -> list[dict[str, Any]]:
        """Omissions for lack of room, in the form of `budget_report.omissions`."""
        omitted = self._omitted.values()
        return [
            {"item": each["item"], "reason": each["reason"]} for each in omitted if each["reason"] in BUDGET_REASONS
        ]

    @property
    def degradations(self) -> list[dict[str, str]]:
        """Shortenings, in the form of `budget_report.degradations`."""
        return list(self._steps.values())


# -- names --------------------------------------------------------------------------------------------


def names_of(kind: str, ids: Iterable[str]) -> list[str]:
    """`fact:f1` for each; a repeated id gets a number, so that no two candidates share a name."""
    names: dict[str, None] = {}
    for each in ids:
        name, number = f"{kind}:{each}", 2
        while name in names:
            name, number = f"{kind}:{each}#{number}", number + 1
        names[name] = None
    return list(names)


def candidates_of(pool: Pool, purpose: Purpose) -> Iterator[tuple[str, str, str]]:
    """Every candidate of a pool: its name, its kind, its id (for a unit of the working state, its part)."""
    if pool.working_state is not None:
        yield from ((unit.name, "state", unit.part) for unit in state_units(pool.working_state, purpose))
    listed = {
        "fact": [each.fact.fact_id for each in pool.facts],
        "procedure": [each.procedure.procedure_id for each in pool.procedures],
        "summary": [each.evidence_id for each in pool.summary],
        "profile": [each.turn.id for each in pool.profile],
        "quote": [each.turn.id for each in pool.hits],
        "loop": [str(at) for at in range(len(pool.loops))],
        "turn": [each.id for each in pool.window],
        "tool": [each.ref for each in pool.tools],
        "episode": [each.episode_id for each in pool.episodes],
        "insight": [each.insight.id for each in pool.insights],
    }
    for kind, ids in listed.items():
        yield from ((name, kind, each) for name, each in zip(names_of(kind, ids), ids, strict=True))


def selected_name(line: str) -> str:
    """The candidate's name in one line of `explain.selected`."""
    return line.rpartition(" score=")[0]
