"""The logs of runs: their states, snapshots and packets, and the drift of long runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from muniment.core.scope import DEFAULT_TENANT

if TYPE_CHECKING:
    from muniment.contracts.packet import Purpose
    from muniment.contracts.snapshot import CompactionSnapshot, SnapshotValidation
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.policy import Policy
    from muniment.packets.billing import RunBill
    from muniment.packets.compare import Preview
    from muniment.packets.in_view import LineInView
    from muniment.packets.timeline import RunTurn, TurnKind
    from muniment.runs.drift import DriftReport
    from muniment.store.context import Context
    from muniment.store.ledger import RunState

__all__ = ["MemoryLog"]


class MemoryLog:
    """Everything known of any run, even one that has ended or is locked: `mem.log`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def run_state(self, run_id: str, *, tenant_id: str = DEFAULT_TENANT) -> RunState:
        """A run by its id: its purpose, whether it has ended or is locked, and why."""
        from muniment.runs import snapshots as run_snapshots
        from muniment.runs.snapshots import with_spoken_times

        state = run_snapshots.get_run(self._ctx, tenant_id, run_id)
        return self._ctx.engine.read(tenant_id, lambda reader: with_spoken_times(reader, state))

    def turns(
        self,
        run_id: str | None = None,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        order: Literal["asc", "desc"] = "asc",
        since: Any = None,
        until: Any = None,
        kind: TurnKind | None = None,
        q: str | None = None,
        around: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Listing[RunTurn]:
        """The turns of a run or a user, with the packets composed between them.

        A user's are listed session by session; `session_id` selects one session. Oldest or newest first (`desc`): all,
        or at most `limit`. Filters: written `since` one time and before `until`, of a `kind` (that of an entry, or
        `build`), with the words `q` (case-insensitive); or `around` an entry or a build by its id or, in a run or a
        session, around an entry by its number.
        """
        from muniment.core.listing import list_query, read_listing
        from muniment.packets.timeline import TURN_KINDS, count_turns, page_turns

        def read(asked: ListQuery) -> Iterator[Placed[RunTurn]]:
            return page_turns(self._ctx, tenant_id, user_id, session_id, run_id, asked)

        def count(asked: ListQuery) -> int | None:
            return count_turns(self._ctx, tenant_id, user_id, session_id, run_id, asked)

        asked = list_query(
            order=order, since=since, until=until, kind=kind, kinds=TURN_KINDS, q=q, around=around, limit=limit
        )
        return read_listing("turns", (str, int, str, str), read, asked, cursor, count)

    def snapshot(
        self, run_id: str, sequence: int | None = None, *, tenant_id: str = DEFAULT_TENANT
    ) -> CompactionSnapshot:
        """A snapshot of a run, by default the latest, checked against the ledger that sealed it."""
        from muniment.runs import snapshots as run_snapshots

        return run_snapshots.get_snapshot(self._ctx, tenant_id, run_id, sequence)

    def snapshots(
        self, run_id: str, *, limit: int | None = None, cursor: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> Listing[CompactionSnapshot]:
        """The snapshots of a run, oldest first."""
        from muniment.core.listing import list_query, read_listing
        from muniment.runs.snapshots import page_snapshots

        def read(asked: ListQuery) -> Iterator[Placed[CompactionSnapshot]]:
            return page_snapshots(self._ctx, tenant_id, run_id, asked)

        return read_listing("snapshots", (int,), read, list_query(limit=limit), cursor)

    def check_snapshot(
        self, run_id: str, sequence: int | None = None, *, tenant_id: str = DEFAULT_TENANT
    ) -> SnapshotValidation:
        """Validate a snapshot again from the store as it is now, and compare it with a replay of the whole ledger."""
        from muniment.runs.compaction import check_snapshot

        return check_snapshot(self._ctx, tenant_id, run_id, sequence)

    def narrative(self, run_id: str, sequence: int | None = None, *, tenant_id: str = DEFAULT_TENANT) -> str:
        """Render a snapshot as Markdown for people: eight sections, from the snapshot alone."""
        from muniment.runs.narrative import narrative

        return narrative(self.snapshot(run_id, sequence, tenant_id=tenant_id))

    def drift(
        self,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        since: Any = None,
        until: Any = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> DriftReport:
        """Count loops, stalls and forgotten constraints in a window, with rates and the cost of a verified claim."""
        from muniment.runs.drift import measure_drift

        return measure_drift(self._ctx, tenant_id, user_id, run_id, since, until)

    def bill(self, run_id: str, *, tenant_id: str = DEFAULT_TENANT) -> RunBill:
        """The input cost of the conversation in a run's session, with memory and without.

        In fresh, cached and written tokens, under the rules of some providers.
        """
        from muniment.packets.billing import bill_run

        return bill_run(self._ctx, tenant_id, run_id)

    def in_view(self, build_id: str, *, tenant_id: str = DEFAULT_TENANT) -> list[LineInView]:
        """The lines in the model's window with a build.

        The build's own, and those of earlier packets of the conversation, each with its build and since when.
        """
        from muniment.packets.in_view import explain_view

        return explain_view(self._ctx, tenant_id, build_id)

    def preview(
        self,
        build_id: str,
        *,
        purpose: Purpose | None = None,
        query: str | None = None,
        max_tokens: int | None = None,
        per_section: Mapping[str, int] | None = None,
        window_turns: int | None = None,
        policy: str | Policy | Mapping[str, Any] | None = None,
        basis: Literal["then", "now"] = "then",
        tenant_id: str = DEFAULT_TENANT,
    ) -> Preview:
        """Compose a kept build again with other settings, for comparison. Nothing is written.

        Settings not given stay as the build has them. A section limit of 0 leaves the section out; `window_turns` is
        how many of the last turns are kept verbatim. The `basis` is the store as the build saw it (`then`), as far as
        that is still available, or the present store (`now`); the answer says which was used.
        """
        from muniment.core.policy import policy_named
        from muniment.packets.builds import load_build
        from muniment.packets.compare import Settings, preview_build

        def why_no_rule(rule_id: str) -> str | None:
            from muniment.rules.rulebook import why_taken_out

            return self._ctx.engine.read(tenant_id, lambda reader: why_taken_out(reader, tenant_id, rule_id))

        other = None if policy is None else policy_named(self._ctx.policy, policy)
        build = load_build(self._ctx, tenant_id, build_id)
        settings = Settings(purpose, query, max_tokens, per_section, window_turns)
        return preview_build(self._ctx, build, settings, other, basis, why_no_rule)
