"""The memory stores as the composer is handed them: every candidate of a scope, with its match with the query.

Nothing is left out for its status, its age or its level: the composer does that, and says so (MP-07, MP-15).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, cast

from muniment.contracts.memory_packet import WorkingState
from muniment.core.canonical import canonical_text
from muniment.core.ports.engine import Reader
from muniment.core.scope import Scope
from muniment.core.text.attributes import key_attributes
from muniment.core.vocabulary import Trust
from muniment.memory.fact_reading import fallen_of, standing_of
from muniment.memory.fact_rows import LEVELS, level_of, newest_items
from muniment.memory.facts.records import StoredInsight, StoredProcedure
from muniment.memory.recall.matching import NOTHING, Match, Wanted, match_text
from muniment.memory.state_patching import read_state
from muniment.packets.page.lines import CLAIMS, HINTS
from muniment.packets.pool import FactCandidate, InsightCandidate, ProcedureCandidate
from muniment.runs.claim_reading import verified_claims
from muniment.store.items import Item, latest, latest_of_run

__all__ = ["Stores", "fact_match", "load_stores", "load_working_state", "match_facts"]

T = TypeVar("T")
_HINT_KEYS = ("memory_id", "source", "score", "reason", "summary")
"""What a packet shows of a hint."""


class Stores(NamedTuple):
    """Candidates of the memory stores, each list best first."""

    facts: tuple[FactCandidate, ...]
    procedures: tuple[ProcedureCandidate, ...]
    insights: tuple[InsightCandidate, ...]


def load_working_state(reader: Reader, scope: Scope, wanted: Wanted, claims_max: int) -> WorkingState | None:
    """The run's state, what it has verified so far and what it recalled, or None while there is none of it."""
    state = read_state(reader, scope)
    claims = verified_claims(reader, scope, wanted, claims_max)
    told: dict[str, Any] = {CLAIMS: claims, HINTS: _recalled_hints(reader, scope)}
    told = {part: values for part, values in told.items() if values}
    if not told:
        return state
    known = {} if state is None else state.to_wire()
    return WorkingState.from_wire({"state_version": 0} | known | told)


def load_stores(reader: Reader, scope: Scope, wanted: Wanted = NOTHING) -> Stores:
    """What this run can see of facts, procedures and insights: its user's, and what the agent and the tenant share."""
    kinds = {"user": ("fact", "procedure", "insight")}
    items = [
        item
        for level in LEVELS
        for item in newest_items(reader, kinds.get(level, ("fact", "procedure")), level_of(scope, level))
    ]
    return Stores(
        facts=tuple(match_facts(reader, (item for item in items if item.kind == "fact"), wanted)),
        procedures=tuple(_procedures((item for item in items if item.kind == "procedure"), wanted)),
        insights=tuple(_insights(reader, (item for item in items if item.kind == "insight"), scope)),
    )


def fact_match(wanted: Wanted, key: str, value: Any) -> Match:
    """How well a fact answers, by the words of its key and value and by the attribute that its key names."""
    return match_text(wanted, f"{key} {_text(value)}", key_attributes(key))


def match_facts(reader: Reader, items: Iterable[Item], wanted: Wanted) -> list[FactCandidate]:
    """The facts of these rows, best match first, then newest."""
    known: dict[str, bool] = {}
    found = []
    for item, stored in standing_of(items):
        fallen = fallen_of(reader, stored, known)
        found.append(
            FactCandidate(
                fact=stored.to_fact(fallen),
                trust=stored.trust,
                recorded_at=item.created_at,
                version=item.version,
                score=fact_match(wanted, stored.key, stored.value).score,
                is_preference=stored.is_preference,
                stale_dependency=bool(fallen),
                since=stored.since,
            )
        )
    return _ordered(found, lambda each: each.score, lambda each: (each.recorded_at, each.fact.fact_id))


def _procedures(items: Iterable[Item], wanted: Wanted) -> list[ProcedureCandidate]:
    """Procedures that were not retired, of every task type and level: by priority, usage, match, age (MP-10)."""
    found: list[tuple[tuple[float, ...], ProcedureCandidate]] = []
    for item in items:
        if item.user_id is not None and item.agent_id is not None:
            continue
        stored = StoredProcedure.from_wire(item.plain())
        if stored.is_retired:
            continue
        score = match_text(wanted, f"{stored.procedure.task_type} {_text(stored.procedure.content)}").score
        candidate = ProcedureCandidate(
            procedure=stored.procedure,
            trust=cast("Trust", item.trust),
            usage=stored.usage,
            recorded_at=item.created_at,
        )
        found.append(((stored.procedure.priority or 0, stored.usage, score), candidate))
    found.sort(key=lambda pair: pair[1].procedure.procedure_id)
    found.sort(key=lambda pair: pair[0], reverse=True)
    return [candidate for _, candidate in found]


def _insights(reader: Reader, items: Iterable[Item], scope: Scope) -> list[InsightCandidate]:
    """This user's insights with this agent, newest first, of every state, expired or not."""
    ended: dict[str, bool] = {}
    found = []
    for item in items:
        if item.agent_id != scope.agent_id:
            continue
        stored = StoredInsight.from_wire(item.plain())
        if stored.run_id not in ended:
            run = latest(reader, stored.run_id)
            ended[stored.run_id] = run is None or run.status == "finished"
        found.append(
            InsightCandidate(
                insight=stored.insight,
                trust=cast("Trust", item.trust),
                run_id=stored.run_id,
                run_is_finished=ended[stored.run_id],
                recorded_at=item.created_at,
            )
        )
    return sorted(found, key=lambda each: (each.recorded_at, each.insight.id), reverse=True)


def _text(value: Any) -> str:
    """The words of a value, for matching."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(f"{key} {_text(part)}" for key, part in value.items())
    return " ".join(map(_text, value)) if isinstance(value, list) else canonical_text(value)


def _ordered(found: Iterable[T], score: Callable[[T], float], age: Callable[[T], Any]) -> list[T]:
    newest_first = sorted(found, key=age, reverse=True)
    return sorted(newest_first, key=score, reverse=True)


def _recalled_hints(reader: Reader, scope: Scope) -> list[dict[str, Any]]:
    """What the run recalled last of learned memory, as far as it was within the injection budget, best first."""
    held = latest_of_run(reader, "recall", scope.user_id, scope.run_id)
    if held is None:
        return []
    return [
        {key: hint[key] for key in _HINT_KEYS if hint.get(key) is not None}
        for hint in held.plain()["response"]["items"]
        if hint.get("injected")
    ]
