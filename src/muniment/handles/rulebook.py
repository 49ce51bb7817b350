"""A rulebook's handle: draft, test, try, promote and roll back rules. Made by `Memory.rulebook`.

book = mem.rulebook(user_id="ana")
book.advance(agent, verifier).text              # all of the following, as far as evidence allows
rule = book.submit(draft)                       # consolidated and linted: temporary
book.make_tests(rule.id); book.gate(rule.id, agent)
book.replay(rule.id, agent, verifier)
book.canary(rule.id, share=0.05)                # a share of real runs tries it
book.watch()                                    # the current results of the trials
book.promote(rule.id, signed_by="rosa")
book.rollback(to=book.revision - 1, signed_by="rosa")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from muniment.core.listing import list_query, read_listing
from muniment.core.scope import BANK_PREFIX, bank_level
from muniment.errors import InvalidInput
from muniment.rules import promotion, rulebook, testing
from muniment.rules.rulebook import (
    Book,
    find_rule,
    page_history,
    page_reports,
    page_revisions,
    page_rules,
    page_tests,
    revision_of,
)
from muniment.store.admission import is_id

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.scope import RuleType
    from muniment.learning.records import RuleStage, StoredMemory
    from muniment.rules._gate import CanaryVerdict
    from muniment.rules._records import (
        AdvanceReport,
        GateReport,
        LintFinding,
        PromotionReport,
        ReplayReport,
        RulebookRevision,
    )
    from muniment.rules._statistics import RuleStats
    from muniment.rules._tests import MadeTests
    from muniment.rules.rulebook import Report, RuleTest, Submitted
    from muniment.rules.selection import RuleSelection
    from muniment.store.context import Context
    from muniment.verify.outputs import Output

__all__ = ["Rulebook"]


class Rulebook:
    """The rules of a user, an agent or a tenant. Thread-safe. A rule that fails its checks raises `GateFailed`."""

    def __init__(self, ctx: Context, tenant_id: str, owner: str) -> None:
        self._book = Book(ctx, tenant_id, owner)

    def __repr__(self) -> str:
        return f"<Rulebook {self.name} of {self._book.tenant_id}>"

    @property
    def name(self) -> str:
        """The rulebook's owner: `user:ana`, `agent:solver`, `tenant`."""
        return self._book.owner.removeprefix(BANK_PREFIX)

    # -- reading --------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The number of the revision in force; 0 before the first change."""
        ctx, tenant_id, owner = self._book
        return ctx.engine.read(tenant_id, lambda reader: revision_of(reader, tenant_id, owner))

    def revisions(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[RulebookRevision]:
        """Every change of the rulebook, oldest first."""
        return read_listing(
            "revisions", (int,), lambda asked: page_revisions(self._book, asked), list_query(limit=limit), cursor
        )

    def rules(
        self,
        *,
        stage: RuleStage | None = None,
        include_all: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[StoredMemory]:
        """The rules, oldest first: of one stage, or all but the retired ones, or all with `include_all`."""

        def read(asked: ListQuery) -> Iterator[Placed[StoredMemory]]:
            return page_rules(self._book, stage, asked, include_all=include_all)

        return read_listing("rules", (str, str), read, list_query(limit=limit), cursor)

    def get(self, rule_id: str) -> StoredMemory:
        """A rule of this book, in any status."""
        ctx, tenant_id, owner = self._book
        return ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))

    def history(self, rule_id: str, *, limit: int | None = None, cursor: str | None = None) -> Listing[StoredMemory]:
        """Every version of a rule, oldest first."""
        asked = list_query(limit=limit)
        named = self.get(rule_id).id
        return read_listing("history", (int,), lambda asked: page_history(self._book, named, asked), asked, cursor)

    def tests(self, rule_id: str, *, limit: int | None = None, cursor: str | None = None) -> Listing[RuleTest]:
        """The tests of a rule."""
        asked = list_query(limit=limit)
        named = self.get(rule_id).id
        return read_listing("tests", (str, str, int), lambda asked: page_tests(self._book, named, asked), asked, cursor)

    def reports(self, rule_id: str, *, limit: int | None = None, cursor: str | None = None) -> Listing[Report]:
        """Reports of the gates, replays and promotions of a rule, oldest first."""
        asked = list_query(limit=limit)
        named = self.get(rule_id).id
        return read_listing(
            "reports", (str, str, int), lambda asked: page_reports(self._book, named, asked), asked, cursor
        )

    def stats(self, rule_id: str, *, start: Any = None, end: Any = None) -> RuleStats:
        """A rule's results in runs with it and without, by bucket; within a window, or since its last change."""
        return promotion.rule_stats(self._book, rule_id, start=start, end=end)

    def lint(self, rule: RuleRecord | Mapping[str, Any] | str) -> tuple[LintFinding, ...]:
        """The faults of a rule, given as a record or by its id."""
        return rulebook.lint(self._book, rule)

    def select(
        self,
        *,
        intent: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        bucket_key: str | None = None,
        features: Mapping[str, Any] | None = None,
        max_rules: int | None = None,
        allow_types: Sequence[RuleType] | None = None,
        prompt_profile: str | None = None,
        run_id: str = "none",
    ) -> RuleSelection:
        """The rules that a run of this kind would get, as a preview with no effect on a run. `run_id` draws the
        arms.
        """
        from muniment.rules.selection import ask_rules, read_asked

        if not is_id(run_id):
            raise InvalidInput("not the id of a run", path="$.run_id")
        ctx, tenant_id, owner = self._book
        asked = read_asked(
            ctx,
            intent=intent,
            state=state,
            bucket_key=bucket_key,
            features=features,
            max_rules=max_rules,
            allow_types=allow_types,
            prompt_profile=prompt_profile,
        )
        return ask_rules(ctx, tenant_id, (owner,), asked, run_id=run_id, x_ref=run_id)[0]

    # -- drafting and testing -------------------------------------------------------------------------

    def submit(self, draft: DistillDraft | Mapping[str, Any] | str) -> Submitted:
        """Turn a draft, or a draft of the bank by its id, into a temporary rule: new, merged, or as an exception."""
        return rulebook.submit(self._book, draft)

    def add(
        self,
        body: str,
        *,
        title: str | None = None,
        type: RuleType = "StrategyRule",
        applicability: Mapping[str, Any] | None = None,
        ttl: str | None = None,
    ) -> StoredMemory:
        """Add a person's rule: in a separate layer, inline, until its TTL. It is never promoted."""
        return rulebook.add_user_rule(self._book, body, title=title, type_=type, applicability=applicability, ttl=ttl)

    def make_tests(
        self, rule_id: str, *, constraints: Any = None, verifier: Callable[..., Any] | None = None
    ) -> MadeTests:
        """Make tests for a rule; `constraints` add micro-regressions.

        With a `verifier` they are earlier tasks that the rule was not learned from, judged by the verifier. Without one
        they assert something about the answer, and are made from the runs it was learned from and from others.
        """
        return testing.make_tests(self._book, rule_id, constraints, verifier)

    def add_tests(self, rule_id: str, specs: Iterable[RegressionTestSpec | Mapping[str, Any]]) -> list[RuleTest]:
        """Add hand-written tests."""
        testing.add_tests(self._book, rule_id, specs)
        return list(self.tests(rule_id))

    def gate(
        self,
        rule_id: str,
        agent: Callable[..., Any] | Mapping[str, Output | str],
        *,
        verifier: Callable[..., Any] | None = None,
        beside: str | None = None,
        executor: Executor | None = None,
        timeout_s: float | None = None,
    ) -> GateReport:
        """Run a rule's tests on an agent (or judge outputs given by test id) and report whether it passes.

        `verifier` judges tests that were made with one. With `beside`, an active rule is tested as it would be once
        that exception joins it.
        """
        return testing.gate(
            self._book, rule_id, agent, verifier=verifier, beside=beside, executor=executor, timeout_s=timeout_s
        )

    def replay(
        self,
        rule_id: str,
        agent: Callable[..., Any],
        verifier: Callable[..., Any],
        *,
        tasks: int = 50,
        executor: Executor | None = None,
        timeout_s: float | None = None,
    ) -> ReplayReport:
        """Replay earlier tasks that the rule applies to and was not learned from, newest first, each with and without
        it.
        """
        return testing.replay(self._book, rule_id, agent, verifier, tasks=tasks, executor=executor, timeout_s=timeout_s)

    def advance(
        self,
        agent: Callable[..., Any],
        verifier: Callable[..., Any],
        *,
        max_calls: int | None = None,
        tasks: int | None = None,
        share: float | None = None,
        executor: Executor | None = None,
        timeout_s: float | None = None,
    ) -> AdvanceReport:
        """Advance every draft and rule of the bank as far as evidence allows, and report what each still lacks.

        Drafts are submitted. Rules are tested on earlier tasks that they were not learned from, judged by the verifier;
        replayed; put on trial with `share` of the runs (by default the policy's); watched; and promoted if the policy
        allows that without a signature. At most `max_calls` calls of the agent. It may be called on a schedule.
        """
        from muniment.rules.advance import advance

        return advance(
            self._book,
            agent,
            verifier,
            max_calls=max_calls,
            tasks=tasks,
            share=share,
            executor=executor,
            timeout_s=timeout_s,
        )

    # -- trying and deciding --------------------------------------------------------------------------

    def canary(self, rule_id: str, *, share: float | None = None, bucket_keys: Sequence[str] = ()) -> StoredMemory:
        """Try the rule on a share of real runs, by the hash of their ids; in these buckets, or in all."""
        return promotion.start_trial(self._book, rule_id, share=share, bucket_keys=bucket_keys)

    def watch(self, *, act: bool = True) -> dict[str, CanaryVerdict]:
        """The current results of the trials, and of the holdouts of active rules.

        With `act`, harmful rules are withdrawn, and finished trials are ended; a rule is promoted only if the policy
        allows that without a signature.
        """
        return promotion.watch(self._book, act=act)

    def promote(self, rule_id: str, *, signed_by: str | None = None) -> PromotionReport:
        """Make a rule active: it has passed its gate, its replay and its trial, and a person signs."""
        return promotion.promote(self._book, rule_id, signed_by=signed_by)

    def retire(self, rule_id: str, *, reason: str, signed_by: str | None = None) -> PromotionReport:
        """Retire a rule."""
        return promotion.retire(self._book, rule_id, reason=reason, signed_by=signed_by)

    def rollback(self, *, to: int, reason: str = "", signed_by: str | None = None) -> RulebookRevision:
        """Restore an earlier revision of the rulebook: the same rules, the same selections."""
        return promotion.roll_back(self._book, to, reason=reason, signed_by=signed_by)

    def publish(self) -> RulebookRevision | None:
        """Write the counts into the rules, where selection reads them; None if nothing is new."""
        return promotion.publish(self._book)

    @property
    def level(self) -> Literal["user", "agent", "tenant"]:
        """The level of the rules: a user's, an agent's or the tenant's."""
        return bank_level(self._book.owner)
