"""The part of a run's handle that keeps memory: working state, facts, procedures, insights, candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from functools import cached_property

    from muniment.contracts.memory_packet import Fact, InsightItem, Procedure, ValidationState, WorkingState
    from muniment.core.record import JsonObject, JsonValue
    from muniment.core.scope import Scope
    from muniment.core.vocabulary import ScopeLevel
    from muniment.memory.extraction.model import Model
    from muniment.memory.facts.candidate_records import Candidate, CandidateStatus, Unheard
    from muniment.memory.patches import Desk
    from muniment.store.context import Context
    from muniment.store.ledger.admission import Admitted

__all__ = ["RunStores"]


class RunStores:
    """Each change is one `state_patch` entry; each answer is what then stands. See `muniment.Run`."""

    _ctx: Context
    _scope: Scope
    _grants: frozenset[str]
    _repairs: bool

    if TYPE_CHECKING:

        @cached_property
        def _opening(self) -> Admitted: ...

    def _desk(self) -> Desk:
        from muniment.memory.patches import Desk

        return Desk(self._ctx, self._scope, self._opening, self._grants, self._repairs)

    # -- working state --------------------------------------------------------------------------------

    def patch(
        self,
        *,
        goal: str | None = None,
        plan: Iterable[Mapping[str, Any]] | None = None,
        slots: Mapping[str, Any] | None = None,
        constraints: Mapping[str, Any] | None = None,
        tool_evidence: Iterable[Mapping[str, Any]] | None = None,
        decisions: Iterable[Mapping[str, Any]] | None = None,
        risks: Iterable[Mapping[str, Any]] | None = None,
        expected_version: int | None = None,
        **extra: JsonValue,
    ) -> WorkingState:
        """Change the run's working state: slots and constraints merge, a null takes a key away, the rest replaces.

        With `expected_version`, only where the state is still at that version; else `StaleState` says which it is.
        """
        from muniment.memory import state_patching as states

        named = {
            "goal": goal,
            "plan": plan,
            "slots": slots,
            "constraints": constraints,
            "tool_evidence": tool_evidence,
            "decisions": decisions,
            "risks": risks,
        }
        given = {name: _real(value) for name, value in named.items() if value is not None}
        return states.patch_state(self._desk(), given | extra, expected_version)

    def working_state(self) -> WorkingState:
        """The run's working state, at version 0 before its first patch."""
        from muniment.contracts.memory_packet import WorkingState
        from muniment.memory import state_patching as states

        found = self._ctx.engine.read(self._scope.tenant_id, lambda reader: states.read_state(reader, self._scope))
        return WorkingState(state_version=0) if found is None else found

    # -- facts ----------------------------------------------------------------------------------------

    def remember(
        self,
        key: str,
        value: JsonValue,
        *,
        sources: Iterable[str],
        confidence: float | None = None,
        scope_level: ScopeLevel = "user",
        valid_from: Any = None,
        valid_to: Any = None,
        notes: str | None = None,
        depends_on: Iterable[str] = (),
        quote: str | None = None,
        is_preference: bool | None = None,
    ) -> Fact:
        """A fact on evidence. What it does to what is known of the key, the policy's rules say; nothing is deleted.

        `quote` must stand in one of the sources, verbatim (else `QuoteMismatch`). A level above the user's takes a
        grant (else `Forbidden`). A source that is not this user's evidence is `NotFound`.
        """
        from muniment.memory import remembering as facts

        request = facts.request_fact(
            key=key,
            value=value,
            sources=sources,
            confidence=confidence,
            scope_level=scope_level,
            valid_from=valid_from,
            valid_to=valid_to,
            notes=notes,
            depends_on=depends_on,
            quote=quote,
            is_preference=is_preference,
        )
        return facts.remember(self._desk(), request)

    def dispute(self, fact_id: str, *, sources: Iterable[str] = (), reason: str | None = None) -> Fact:
        """Object to a fact: it is left out until it is remembered anew or retracted."""
        from muniment.memory import remembering as facts

        return facts.dispute_fact(self._desk(), fact_id, sources, reason)

    def retract(self, fact_id: str, *, sources: Iterable[str] = (), reason: str | None = None) -> Fact:
        """Take a fact back: it stays as history, deprecated."""
        from muniment.memory import remembering as facts

        return facts.retract_fact(self._desk(), fact_id, sources, reason)

    def facts(self, key: str | None = None, *, include_all: bool = False, at: Any = None) -> list[Fact]:
        """What holds now, or held `at` a point in time, by the nearest level; with `include_all`, all there is."""
        from muniment.memory import fact_reading

        return fact_reading.list_facts(self._desk(), key, at, include_all=include_all)

    def fact_history(self, key: str) -> list[Fact]:
        """Everything that was ever held of a key, oldest first."""
        from muniment.memory import fact_reading

        return fact_reading.fact_history(self._desk(), key)

    # -- procedures -----------------------------------------------------------------------------------

    def procedure(
        self,
        task_type: str,
        content: JsonObject,
        *,
        priority: int = 0,
        sources: Iterable[str] = (),
        applicability: JsonObject | None = None,
        scope_level: ScopeLevel = "user",
    ) -> Procedure:
        """How to go about a type of task."""
        from muniment.memory import insight_writing as insights

        given = {
            "task_type": task_type,
            "content": _real(content),
            "priority": priority,
            "sources": sources,
            "applicability": _real(applicability),
        }
        return insights.write_procedure(self._desk(), given, scope_level)

    def retire_procedure(self, procedure_id: str) -> Procedure:
        """No longer to be chosen; kept for the record."""
        from muniment.memory import insight_writing as insights

        return insights.retire_procedure(self._desk(), procedure_id)

    def use_procedures(self, procedure_ids: Iterable[str]) -> None:
        """Count one use of each procedure."""
        from muniment.memory import insight_writing as insights

        insights.use_procedures(self._desk(), procedure_ids)

    # -- insights -------------------------------------------------------------------------------------

    def insight(
        self,
        type_: Literal["hypothesis", "strategy", "pattern"],
        statement: str,
        *,
        sources: Iterable[str] = (),
        trigger: Literal["conflict", "failure", "synthesis", "analogy"] | None = None,
        confidence: float | None = None,
        tests_suggested: Iterable[str] = (),
        expires_at: Any = "run_end",
        validation_state: ValidationState = "unvalidated",
    ) -> InsightItem:
        """Something supposed, not known: no responder sees it. It ends with the run, or at the instant it is given."""
        from muniment.memory import insight_writing as insights

        given = {
            "type": type_,
            "statement": statement,
            "sources": sources,
            "trigger": trigger,
            "confidence": confidence,
            "tests_suggested": tests_suggested,
            "expires_at": expires_at,
            "validation_state": validation_state,
        }
        return insights.suppose(self._desk(), given)

    def judge_insight(
        self, insight_id: str, state: ValidationState, *, sources: Iterable[str] = (), reason: str | None = None
    ) -> InsightItem:
        """Move an insight on. Validating it takes evidence; rejecting it is final."""
        from muniment.memory import insight_writing as insights

        return insights.judge_insight(self._desk(), insight_id, state, sources, reason)

    def promote_insight(
        self,
        insight_id: str,
        *,
        key: str | None = None,
        task_type: str | None = None,
        scope_level: ScopeLevel = "user",
    ) -> Fact | Procedure:
        """A validated insight as a fact (`key`) or a procedure (`task_type`), on all of its evidence."""
        from muniment.memory import insight_writing as insights

        if (key is None) == (task_type is None):
            raise InvalidInput("give either key or task_type", path="$.key", hint="key for a fact")
        if key is not None:
            return insights.promote_to_fact(self._desk(), insight_id, key, scope_level)
        assert task_type is not None
        return insights.promote_to_procedure(self._desk(), insight_id, task_type, scope_level)

    # -- candidates -----------------------------------------------------------------------------------

    def propose(
        self,
        key: str,
        value: JsonValue,
        *,
        sources: Iterable[str],
        quote: str | None = None,
        confidence: float | None = None,
        reason: str | None = None,
    ) -> Candidate:
        """Propose a fact. Policy promotes it at once where it is sure; else it waits for `decide`. It says why."""
        from muniment.memory import candidate_deciding as candidates
        from muniment.memory import remembering as facts

        request = facts.request_fact(key=key, value=value, sources=sources, quote=quote, confidence=confidence)
        if reason is not None and not isinstance(reason, str):
            raise InvalidInput("reason should be a string", path="$.reason")
        return candidates.propose(self._desk(), candidates.Proposed(request, "caller", reason))

    def candidates(self, status: CandidateStatus | None = None) -> list[Candidate]:
        """This user's candidates and their fates, oldest first."""
        from muniment.memory import candidate_deciding as candidates

        return candidates.list_candidates(self._desk(), status)

    def decide(self, candidate_id: str, accept: bool, reason: str | None = None) -> Candidate:
        """Promote or decline a candidate that waits."""
        from muniment.memory import candidate_deciding as candidates

        return candidates.decide_candidate(self._desk(), candidate_id, accept, reason)

    def extract(self, event_ids: Iterable[str] | None = None, *, model: Model | None = None) -> list[Candidate]:
        """Look for candidates in these messages, or all of this run's: by patterns, and by a model where given."""
        from muniment.memory import proposing as extraction

        return extraction.extract(self._desk(), event_ids, model)

    def unheard(self, event_ids: Iterable[str] | None = None) -> list[Unheard]:
        """Whose words `extract` leaves aside in these messages, or all of this run's: not the user's own, and why."""
        from muniment.memory import proposing as extraction

        return extraction.list_unheard(self._desk(), event_ids)


def _real(given: Any) -> Any:
    """Real dicts and lists of what callers give; what is neither is refused later, by the record."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | list | tuple):
        return list(given)
    return given
