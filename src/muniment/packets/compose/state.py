"""The working state's place in a packet: what the run is for and what binds it first, so that it goes last (MP-04)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muniment.contracts.packet import Risk, WorkingState
from muniment.core.record import Record
from muniment.packets.compose.budget import cut_value, typical_mark
from muniment.packets.compose.draft import PacketDraft, Placed
from muniment.packets.compose.explain import Reason, Rung
from muniment.packets.page.lines import (
    STATE_LISTS,
    STATE_PARTS,
    StateUnit,
    block_of,
    is_held_out,
    reading_order,
    state_evidence,
    state_line,
    state_units,
)
from muniment.packets.page.taught import merged_with

__all__ = ["place_state", "state_of"]

_CORE = ("goal", "objective", "constraints", "done_definition", "slots")
_WHOLE = ("constraints", "done_definition", "conflicts")
"""Never cut: half of a constraint is another one."""
_REF = "…"
"""Stands for a value, or the rest of one, that had no room: it is in the store."""
_TEXT_FIELDS = {"decisions": "statement", "risks": "risk", "plan": "step", "tool_evidence": "summary"}
_TEXT_KEYS = {"claims": "statement", "next_actions": "action", "failures": "why", "hints": "summary"}


def place_state(draft: PacketDraft) -> None:
    """Every unit whole, cut, by its key alone, or not at all."""
    if draft.pool.working_state is None:
        return
    fitting: list[StateUnit] = []
    for unit in state_units(draft.pool.working_state, draft.purpose):
        if draft.purpose not in STATE_PARTS[unit.part]:
            draft.tally.omit(unit.name, "purpose")
        elif is_held_out(unit):
            draft.tally.omit(unit.name, "held_out", lesson=str(unit.value.get("memory_id")))
        elif unit.part == "hints" and (leader := merged_with(unit.value)) is not None:
            draft.tally.omit(unit.name, "near_duplicate", merged_with=leader)
        elif (reason := _bars(draft, unit)) is not None:
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


def _bars(draft: PacketDraft, unit: StateUnit) -> Reason | None:
    """By its evidence; and what the run's log tells has the trust of what it was told on, and its flags (LG-08)."""
    for evidence_id in state_evidence(unit):
        if (reason := draft.bars_evidence(evidence_id)) is not None:
            return reason
    if not isinstance(unit.value, dict) or unit.part == "hints" or unit.part not in STATE_LISTS:
        return None
    flags = unit.value.get("flags")
    told_on = unit.value.get("trust", "external" if unit.part == "claims" else "assistant")
    return draft.bars(told_on, flags if isinstance(flags, list | tuple) else ())


def _place_unit(draft: PacketDraft, unit: StateUnit, at: int, *, share: float) -> None:
    """One long unit leaves the others of the core half of what is left."""
    room = draft.purse.room(block_of(unit.part))
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
        kept_part = None if unit.part in _WHOLE else cut_value(_text_of(unit), fits_cut)
        shorter = None if kept_part is None else _cut(kept_part)
        if shorter is None and unit.part in ("constraints", "done_definition", "slots") and fits(_REF):
            shorter, rung = _REF, "raw→ref"
    if shorter is None:
        draft.tally.omit(unit.name, "over_budget", tokens=price)
        return
    _put(draft, _with(unit, shorter), at)
    kept = draft.purse.price(state_line(_with(unit, shorter), typical_mark))
    _step_down(draft, unit.name, "raw→ref" if rung == "raw→ref" else "raw→quote", kept, price)


def _cut(value: Any) -> Any:
    """A part of a value, and a sign that there is more."""
    return f"{value} {_REF}" if isinstance(value, str) else [*value, _REF]


def _step_down(draft: PacketDraft, name: str, rung: Rung, kept: int, price: int) -> None:
    draft.tally.step_down(name, "working_state", rung, f"{kept} of {price} tokens kept")


def _put(draft: PacketDraft, unit: StateUnit, at: int) -> None:
    price = draft.purse.price(state_line(unit, typical_mark))
    order = (reading_order(unit.part, draft.purpose), at)
    draft.place(Placed(unit.name, block_of(unit.part), price, unit, order), 1.0, (f"working_state.{unit.part}",))


def _json_value(value: Any) -> Any:
    """A value of the state as plain JSON data."""
    return value.to_wire() if isinstance(value, Record) else value


def _text_of(unit: StateUnit) -> Any:
    field, key = _TEXT_FIELDS.get(unit.part), _TEXT_KEYS.get(unit.part)
    if key is not None and isinstance(unit.value, dict):
        return unit.value.get(key, "")
    return getattr(unit.value, field) if field else unit.value


def _with(unit: StateUnit, value: Any) -> StateUnit:
    """The unit with a shorter text or value."""
    field, key = _TEXT_FIELDS.get(unit.part), _TEXT_KEYS.get(unit.part)
    if key is not None and isinstance(unit.value, dict):
        return replace(unit, value=unit.value | {key: value})
    if field is None:
        return replace(unit, value=value)
    dropped = {"mitigation": None} if isinstance(unit.value, Risk) else {}
    kept = {key: part for key, part in unit.value.to_wire().items() if key not in dropped}
    return replace(unit, value=type(unit.value)(**{**kept, field: value}))


def state_of(draft: PacketDraft) -> WorkingState:
    """The working state of the packet: the units that have a place, and the version."""
    held = draft.pool.working_state
    parts: dict[str, Any] = {"state_version": held.state_version if held is not None else 0}
    for placed in (*draft.items("task"), *draft.items("state")):
        unit: StateUnit = placed.item
        if unit.part in ("goal", "objective", "done_definition"):
            parts[unit.part] = unit.value
        elif unit.part == "extra":
            parts[unit.key] = unit.value
        elif unit.part in STATE_LISTS:
            parts.setdefault(STATE_LISTS[unit.part], []).append(unit.value)
        elif unit.part in ("constraints", "slots"):
            parts.setdefault(unit.part, {})[unit.key] = unit.value
        else:
            parts[unit.part] = (*parts.get(unit.part, ()), unit.value)
    return WorkingState(**parts)
