"""Later changes to memory: facts disputed and retracted, insights judged, candidates decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from muniment.contracts.packet import Fact, InsightItem, Procedure, ValidationState
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.scope import ScopeLevel
    from muniment.memory._fact_records import Candidate, CandidateStatus, Unheard
    from muniment.memory.patches import Writer

__all__ = ["RunMemory"]


class RunMemory:
    """Later changes to facts, procedures, insights and candidates: `run.memory`."""

    def __init__(self, writer: Callable[[], Writer]) -> None:
        """`writer` makes a writer for each write."""
        self._writer = writer

    # -- facts ----------------------------------------------------------------------------------------

    def dispute(self, fact_id: str, *, sources: Iterable[str] = (), reason: str | None = None) -> Fact:
        """Dispute a fact: it is left out until it is remembered anew or retracted."""
        from muniment.memory import facts as facts

        return facts.dispute_fact(self._writer(), fact_id, sources, reason)

    def retract(self, fact_id: str, *, sources: Iterable[str] = (), reason: str | None = None) -> Fact:
        """Retract a fact: it stays as history, deprecated."""
        from muniment.memory import facts as facts

        return facts.retract_fact(self._writer(), fact_id, sources, reason)

    def fact_history(self, key: str, *, limit: int | None = None, cursor: str | None = None) -> Listing[Fact]:
        """Every value ever held for a key, oldest first."""
        from muniment.core.listing import list_items
        from muniment.memory.facts import fact_history

        return list_items("fact_history", fact_history(self._writer(), key), limit, cursor)

    # -- procedures -----------------------------------------------------------------------------------

    def retire_procedure(self, procedure_id: str) -> Procedure:
        """Retire a procedure: it is no longer chosen, but kept for the record."""
        from muniment.memory import insights

        return insights.retire_procedure(self._writer(), procedure_id)

    def use_procedures(self, procedure_ids: Iterable[str]) -> None:
        """Count one use of each procedure."""
        from muniment.memory import insights

        insights.use_procedures(self._writer(), procedure_ids)

    # -- insights -------------------------------------------------------------------------------------

    def judge_insight(
        self, insight_id: str, state: ValidationState, *, sources: Iterable[str] = (), reason: str | None = None
    ) -> InsightItem:
        """Change an insight's validation state. Validating it takes evidence; rejecting it is final."""
        from muniment.memory import insights

        return insights.judge_insight(self._writer(), insight_id, state, sources, reason)

    def promote_insight(
        self,
        insight_id: str,
        *,
        key: str | None = None,
        task_type: str | None = None,
        scope_level: ScopeLevel = "user",
    ) -> Fact | Procedure:
        """Promote a validated insight to a fact (`key`) or a procedure (`task_type`), on all of its evidence."""
        from muniment.memory import insights

        if (key is None) == (task_type is None):
            raise InvalidInput("give either key or task_type", path="$.key", hint="key for a fact")
        if key is not None:
            return insights.promote_to_fact(self._writer(), insight_id, key, scope_level)
        assert task_type is not None
        return insights.promote_to_procedure(self._writer(), insight_id, task_type, scope_level)

    # -- candidates -----------------------------------------------------------------------------------

    def candidates(
        self, status: CandidateStatus | None = None, *, limit: int | None = None, cursor: str | None = None
    ) -> Listing[Candidate]:
        """This user's candidates with their status, oldest first."""
        from muniment.core.listing import list_query, read_listing
        from muniment.memory.candidates import page_candidates

        def read(asked: ListQuery) -> Iterator[Placed[Candidate]]:
            return page_candidates(self._writer(), status, asked)

        return read_listing("candidates", (str, str), read, list_query(limit=limit), cursor)

    def decide(self, candidate_id: str, accept: bool, reason: str | None = None) -> Candidate:
        """Promote or decline a pending candidate."""
        from muniment.memory import candidates

        return candidates.decide_candidate(self._writer(), candidate_id, accept, reason)

    def unheard(self, event_ids: Iterable[str] | None = None) -> list[Unheard]:
        """Speakers whose words `extract` skips in these messages, or in all of this run: not the user's own, and
        why.
        """
        from muniment.memory import extracting as extraction

        return extraction.list_unheard(self._writer(), event_ids)
