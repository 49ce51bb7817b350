"""Which procedures stand in a packet: those of the task, applicable here, by priority and use (MP-10)."""

from __future__ import annotations

from typing import Any

from muniment.contracts.memory_packet import Procedure
from muniment.packets.compose.budget import typical_mark
from muniment.packets.compose.degrade import cut_value
from muniment.packets.compose.explain import names_of
from muniment.packets.compose.placing import Desk, Placed, instant_order
from muniment.packets.page.lines import procedure_line
from muniment.packets.page.matrix import may_show
from muniment.packets.pool import ProcedureCandidate

__all__ = ["place_procedures"]

Named = tuple[str, ProcedureCandidate]


def place_procedures(desk: Desk) -> None:
    names = names_of("procedure", (each.procedure.procedure_id for each in desk.pool.procedures))
    fit: list[Named] = []
    taken: set[str] = set()
    for name, each in zip(names, desk.pool.procedures, strict=True):
        procedure = each.procedure
        if not may_show("procedures", desk.purpose):
            desk.tally.omit(name, "purpose")
        elif procedure.procedure_id in taken:
            desk.tally.omit(name, "duplicate")
        elif (reason := desk.bars(each.trust)) is not None:
            desk.tally.omit(name, reason)
        elif procedure.task_type != desk.request.task_type:
            desk.tally.omit(name, "task_type", task_type=procedure.task_type)
        elif (unmet := _unmet(desk, procedure)) is not None:
            desk.tally.omit(name, "task_type", unmet=f"applicability.{unmet}")
        else:
            taken.add(procedure.procedure_id)
            fit.append((name, each))
    for at, (name, each) in enumerate(sorted(fit, key=_worth)):
        if at >= desk.policy.procedures_max:
            desk.tally.omit(name, "count_limit", limit=desk.policy.procedures_max)
        else:
            _place(desk, name, each, at)


def _worth(named: Named) -> tuple[int, int, int, str, str]:
    _, each = named
    recorded = instant_order(each.recorded_at).seconds
    return (-(each.procedure.priority or 0), -each.usage, -recorded, each.procedure.procedure_id, named[0])


def _place(desk: Desk, name: str, each: ProcedureCandidate, at: int) -> None:
    """Whole, or with what fits of its content (raw → summary)."""
    procedure = each.procedure
    price = desk.purse.price(procedure_line(procedure, typical_mark))
    room = desk.purse.room("procedures")
    if price > room:
        shorter = _shortened(desk, procedure, room) if room >= desk.policy.cut_tokens_min else None
        if shorter is None:
            desk.tally.omit(name, "over_budget", tokens=price)
            return
        kept = desk.purse.price(procedure_line(shorter, typical_mark))
        desk.tally.step_down(name, "procedures", "raw→summary", f"{kept} of {price} tokens kept")
        procedure, price = shorter, kept
    rules = ("task_type", f"priority={procedure.priority or 0}", f"usage={each.usage}")
    desk.place(Placed(name, "procedures", price, procedure, (at,)), float(procedure.priority or 0), rules)


def _shortened(desk: Desk, procedure: Procedure, room: int) -> Procedure | None:
    """Keys in order while they fit, the first that does not cut shorter."""
    kept: dict[str, Any] = {}

    def fits(content: dict[str, Any]) -> bool:
        return desk.purse.price(procedure_line(_with(procedure, content), typical_mark)) <= room

    for key, value in sorted(procedure.content.items()):
        if not fits({**kept, key: value}):
            shorter = cut_value(value, lambda part, key=key: fits({**kept, key: part}))  # type: ignore[misc]
            if shorter is None:
                continue
            value = shorter
        kept[key] = value
    return _with(procedure, kept) if kept else None


def _with(procedure: Procedure, content: dict[str, Any]) -> Procedure:
    return procedure.model_copy(update={"content": content})


# -- applicability ------------------------------------------------------------------------------------


def _unmet(desk: Desk, procedure: Procedure) -> str | None:
    """The first of tags, roles, conditions that is stated and does not hold here."""
    stated = procedure.applicability or {}
    cues = desk.request.cues
    given = {word.casefold() for word in (*(cues.tags or ()), *(cues.entities or ()), *(cues.keywords or ()))}
    tags = _texts(stated.get("tags"))
    if tags and given.isdisjoint(tag.casefold() for tag in tags):
        return "tags"
    roles = _texts(stated.get("roles"))
    if roles and not {desk.purpose, desk.request.scope.agent_id} & set(roles):
        return "roles"
    conditions = stated.get("conditions")
    if isinstance(conditions, dict):
        state = desk.pool.working_state
        known = {**((state.slots or {}) if state is not None else {}), **(cues.model_extra or {})}
        if any(known.get(key) != wanted for key, wanted in conditions.items()):
            return "conditions"
    elif (wanted := _texts(conditions)) and not given.issuperset(each.casefold() for each in wanted):
        return "conditions"
    return None


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
