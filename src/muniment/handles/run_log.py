"""A run's log: its steps, claims, conflicts, failures, questions and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muniment.contracts.snapshot import CompactionSnapshot
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.record import JsonObject
    from muniment.core.scope import Scope
    from muniment.memory.patches import Writer
    from muniment.packets.builds import Build
    from muniment.runs.records import ClaimStatus, CountedFailure, OpenQuestion, RunClaim, RunConflict, RunLog
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = ["RunLogHandle"]


class RunLogHandle:
    """The work and findings of a long run, recorded so that it can be compacted and resumed: `run.log`."""

    def __init__(self, ctx: Context, scope: Scope, writer: Callable[[], Writer]) -> None:
        """`writer` makes a writer for each write."""
        self._ctx = ctx
        self._scope = scope
        self._writer = writer

    # -- steps ----------------------------------------------------------------------------------------

    def step(
        self,
        event: str,
        content: str = "",
        *,
        step: int | None = None,
        action: Mapping[str, Any] | None = None,
        tokens: int | None = None,
        builds: Iterable[Build | str] = (),
        context: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        ts: Any = None,
    ) -> LedgerEntry:
        """Record a moment of a step: `COMPILE_DONE`, `PLAN_DONE`, `ACT_DONE`, `OBSERVE_DONE`, `CHECKPOINT_DONE`.

        Any other name that begins with a phase, such as `ACT_PROGRESS`, is verbose and does not count. `builds` (or
        `context`, if the window was assembled otherwise) go with `COMPILE_DONE`: what was in the window, what was left
        out and why. `action` goes with `ACT_DONE`: equal actions in a row are a loop. If this makes a snapshot due and
        the policy asks for it, one is taken; an invalid one raises `RunLocked`.
        """
        from muniment.errors import InvalidInput
        from muniment.packets.builds import build_of
        from muniment.runs.compaction import compact_if_due
        from muniment.runs.steps import ENDS, window_of, write_step

        if isinstance(builds, str | bytes) or not isinstance(builds, Iterable):
            raise InvalidInput("wanted a list of builds", path="$.builds", hint="wrap a single one in a list")
        made = [build_of(self._ctx, self._scope, build, f"$.builds[{index}]") for index, build in enumerate(builds)]
        entry = write_step(
            self._writer(),
            event,
            content,
            step=step,
            action=action,
            tokens=tokens,
            window=window_of(self._ctx, made, context),
            metadata=metadata,
            ts=ts,
        )
        if self._ctx.policy.compaction.auto and event in ENDS:
            compact_if_due(self._writer())
        return entry

    # -- claims ---------------------------------------------------------------------------------------

    def claim(
        self,
        statement: str,
        *,
        evidence: Iterable[Any] = (),
        status: str = "candidate",
        depends_on: Iterable[str] = (),
        id: str | None = None,
    ) -> RunClaim:
        """Claim a statement that needs evidence. `evidence` are event ids, or pointers such as `{"event_id", "quote"}`.

        Each pointer must resolve and its quote occur there, verbatim (else `QuoteMismatch`). A `verified` claim needs
        at least one. The same words again are the same claim.
        """
        from muniment.runs.claims import make_claim

        return make_claim(self._writer(), statement, evidence, status, id, depends_on)

    def verify_claim(self, claim_id: str, *, evidence: Iterable[Any] = ()) -> RunClaim:
        """Mark a candidate as verified, on its own evidence and any given here."""
        from muniment.runs.claims import verify_claim

        return verify_claim(self._writer(), claim_id, evidence)

    def retract_claim(self, claim_id: str, *, reason: str, evidence: Iterable[Any] = ()) -> RunClaim:
        """Take a claim back; verified claims that depend on it fall back to candidates."""
        from muniment.runs.claims import retract_claim

        return retract_claim(self._writer(), claim_id, reason, evidence)

    def conflict(
        self,
        description: str,
        *,
        side_a: Iterable[Any],
        side_b: Iterable[Any],
        claims: Iterable[str] = (),
    ) -> RunConflict:
        """Record two sides that cannot both be right, each with its own evidence."""
        from muniment.runs.claims import record_conflict

        return record_conflict(self._writer(), description, side_a, side_b, claims)

    def settle_conflict(self, conflict_id: str, *, resolution: str) -> RunConflict:
        """Mark a conflict as settled; it stays on record."""
        from muniment.runs.claims import settle_conflict

        return settle_conflict(self._writer(), conflict_id, resolution)

    def failure(self, category: str, where: str, why: str, *, evidence: Iterable[Any] = ()) -> str:
        """Record a failure; returns the fingerprint it is counted under. A failed tool result is counted
        automatically.
        """
        from muniment.runs.claims import record_failure

        return record_failure(self._writer(), category, where, why, evidence)

    def question(self, text: str) -> str:
        """Record an open question; returns its id."""
        from muniment.runs.claims import open_question

        return open_question(self._writer(), text)

    def close_question(self, question: str, *, answer: str | None = None) -> str:
        """Close a question, named by its id or its words."""
        from muniment.runs.claims import close_question

        return close_question(self._writer(), question, answer)

    def plan_next(self, actions: Iterable[str]) -> tuple[str, ...]:
        """Set the next actions, at most three."""
        from muniment.runs.claims import plan_actions

        return plan_actions(self._writer(), actions)

    # -- reading the log ------------------------------------------------------------------------------

    def read(self) -> RunLog:
        """The run derived from its entries: counts, claims, conflicts, failures, questions, coverage."""
        from muniment.runs.snapshots import load_log

        policy = self._ctx.policy.compaction
        loaded = self._ctx.engine.read(self._scope.tenant_id, lambda reader: load_log(reader, self._scope, policy))
        return loaded.unless_damaged(repairs=self._writer().repairs).log

    def claims(
        self, status: ClaimStatus | None = None, *, limit: int | None = None, cursor: str | None = None
    ) -> Listing[RunClaim]:
        """The run's claims, in the order they were made."""
        from muniment.core.listing import list_query, read_listing
        from muniment.runs.snapshots import page_claims

        def read(asked: ListQuery) -> Iterator[Placed[RunClaim]]:
            return page_claims(self._ctx, self._scope, status, asked)

        return read_listing("claims", (str, str), read, list_query(limit=limit), cursor)

    def conflicts(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[RunConflict]:
        """The conflicts of the run, including settled ones."""
        from muniment.core.listing import list_query, read_listing
        from muniment.runs.snapshots import page_conflicts

        def read(asked: ListQuery) -> Iterator[Placed[RunConflict]]:
            return page_conflicts(self._ctx, self._scope, asked)

        return read_listing("conflicts", (str, str), read, list_query(limit=limit), cursor)

    def failures(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[CountedFailure]:
        """The failures of the run, each once, with its count."""
        from muniment.core.listing import list_items

        return list_items("failures", self.read().failures, limit, cursor)

    def questions(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[OpenQuestion]:
        """The open questions of the run."""
        from muniment.core.listing import list_query, read_listing
        from muniment.runs.snapshots import page_questions

        def read(asked: ListQuery) -> Iterator[Placed[OpenQuestion]]:
            return page_questions(self._ctx, self._scope, asked)

        return read_listing("questions", (str, str), read, list_query(limit=limit), cursor)

    def budgets(self) -> JsonObject:
        """The run's budgets and what it has used."""
        log = self.read()
        return {"limits": log.budgets, "used": log.spent.to_wire()}

    # -- snapshots ------------------------------------------------------------------------------------

    def compact(self, *, force: bool = True) -> CompactionSnapshot | None:
        """Snapshot the run: built, validated, stored. Without `force`, only if one is due; None if not."""
        from muniment.runs.compaction import compact, compact_if_due

        return compact(self._writer()) if force else compact_if_due(self._writer())

    def unlock(self, reason: str) -> CompactionSnapshot:
        """Unlock a run that failed its compaction, after it was corrected: only if its snapshot is now valid."""
        from muniment.memory.patches import said_of
        from muniment.runs.compaction import unlock

        writer = self._writer()
        return unlock(writer, said_of(writer, reason, "$.reason"))
