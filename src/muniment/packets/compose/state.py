"""The working state's place in a packet: goal, constraints and slots first, so that they go last (MP-04)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muniment.contracts.memory_packet import Decision, Risk, WorkingState
from muniment.core.record import Record
from muniment.packets.compose.budget import cut_value, typical_mark
from muniment.packets.compose.draft import PacketDraft, Placed
from muniment.packets.compose.explain import Reason, Rung
from muniment.packets.page.lines import CLAIMS, HINTS, STATE_PARTS, StateUnit, claim_evidence, state_line, state_units

__all__ = ["place_state", "state_of"]

_CORE = ("goal", "constraints", "slots")
_REF = "…"
"""Stands for a value, or the rest of one, that had no room: it is in the store."""
_TEXT_FIELDS = {"decisions": "statement", "risks": "risk", "plan": "step", "tool_evidence": "summary"}


def place_state(draft: PacketDraft) -> None:
    """Every unit whole, cut, by its key alone, or not at all."""
    if draft.pool.working_state is None:
        return
    fitting: list[StateUnit] = []
    for unit in state_units(draft.pool.working_state, draft.purpose):
        if draft.purpose not in STATE_PARTS[unit.part]:
            draft.tally.omit(unit.name, "purpose")
        elif (reason := draft.bars_evidence(_evidence_of(unit)) or _bars_claim(draft, unit)) is not None:
            draft.tally.omit(unit.name, reason)
        elif draft.wall.bars_value([unit.key, _json_value(unit.value)]):
            draft.tally.omit(unit.name, "insight_wall")
        else:
            fitting.append(unit)
    draft.purse.price_many(state_line(unit, typical_mark) for unit in fitting)
    core_left = sum(unit.part in _CORE for unit in fitting)
    for at, unit in enumerate(fitting):
        core_left -= unit.part in _CORE
        _place_unit(draft, unit, at, share=0.5 if core_left else 1.0)


def _bars_claim(draft: PacketDraft, unit: StateUnit) -> Reason | None:
    """A claim has the trust of its evidence (LG-08)."""
    if unit.part != CLAIMS or not isinstance(unit.value, dict):
        return None
    return draft.bars(unit.value.get("trust", "external"))


def _place_unit(draft: PacketDraft, unit: StateUnit, at: int, *, share: float) -> None:
    """One long unit leaves the others of the core half of what is left."""
    room = draft.purse.room("state")
    limit = int(room * share)

    def fits(value: Any) -> bool:
        return draft.purse.price(state_line(_with(unit, value), typical_mark)) <= limit

    def fits_cut(value: Any) -> bool:
        return fits(_cut(value))

    price = draft.purse.price(state_line(unit, typical_mark))
    if price <= limit or (unit.part in _CORE and price <= room and price <= draft.policy.cut_tokens_min):
        _put(draft, unit, at)
        return
    shorter, rung = None, "raw→quote"
    if room >= draft.policy.cut_tokens_min:
        kept_part = None if unit.part == "constraints" else cut_value(_text_of(unit), fits_cut)
        shorter = None if kept_part is None else _cut(kept_part)
        if shorter is None and unit.part in ("constraints", "slots") and fits(_REF):
            shorter, rung = _REF, "raw→ref"
    if shorter is None:
        draft.tally.omit(unit.name, "over_budget", tokens=price)
        return
    _put(draft, _with(unit, shorter), at)
    kept = draft.purse.price(state_line(_with(unit, shorter), typical_mark))
    _step_down(draft, unit.name, "raw→ref" if rung == "raw→ref" else "raw→quote", kept, price)


def _cut(value: Any) -> Any:
    """A part of a value, and a sign that there is more. Constraints are never cut: half of one is another one."""
    return f"{value} {_REF}" if isinstance(value, str) else [*value, _REF]


def _step_down(draft: PacketDraft, name: str, rung: Rung, kept: int, price: int) -> None:
    draft.tally.step_down(name, "working_state", rung, f"{kept} of {price} tokens kept")


def _put(draft: PacketDraft, unit: StateUnit, at: int) -> None:
    price = draft.purse.price(state_line(unit, typical_mark))
    draft.place(Placed(unit.name, "state", price, unit, (at,)), 1.0, (f"working_state.{unit.part}",))


def _evidence_of(unit: StateUnit) -> str | None:
    if isinstance(unit.value, Decision):
        return unit.value.evidence_id
    return claim_evidence(unit) or getattr(unit.value, "ref", None)


def _json_value(value: Any) -> Any:
    """A value of the state as plain JSON data."""
    return value.to_wire() if isinstance(value, Record) else value


def _text_of(unit: StateUnit) -> Any:
    field = _TEXT_FIELDS.get(unit.part)
    if unit.part == CLAIMS and isinstance(unit.value, dict):
        return unit.value.get("statement", "")
    return getattr(unit.value, field) if field else unit.value


def _with(unit: StateUnit, value: Any) -> StateUnit:
    """The unit with a shorter text or value."""
    field = _TEXT_FIELDS.get(unit.part)
    if unit.part == CLAIMS and isinstance(unit.value, dict):
        return replace(unit, value=unit.value | {"statement": value})
    if field is None:
        return replace(unit, value=value)
    dropped = {"mitigation": None} if isinstance(unit.value, Risk) else {}
    kept = {key: part for key, part in unit.value.to_wire().items() if key not in dropped}
    return replace(unit, value=type(unit.value)(**{**kept, field: value}))


def state_of(draft: PacketDraft) -> WorkingState:
    """The working state of the packet: the units that have a place, and the version."""
    held = draft.pool.working_state
    parts: dict[str, Any] = {"state_version": held.state_version if held is not None else 0}
    for placed in draft.items("state"):
        unit: StateUnit = placed.item
        if unit.part == "goal":
            parts["goal"] = unit.value
        elif unit.part == "extra":
            parts[unit.key] = unit.value
        elif unit.part in ("hints", "claims"):
            parts.setdefault(HINTS if unit.part == "hints" else CLAIMS, []).append(unit.value)
        elif unit.part in ("constraints", "slots"):
            parts.setdefault(unit.part, {})[unit.key] = unit.value
        else:
            parts[unit.part] = (*parts.get(unit.part, ()), unit.value)
    return WorkingState(**parts)
