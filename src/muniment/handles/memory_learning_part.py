"""The part of a memory that learns: banks, rulebooks, runners, routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from muniment.core.owners.reserved import is_reserved
from muniment.core.record import ValidationError, issues_of
from muniment.core.scope import DEFAULT_TENANT, scope_of
from muniment.errors import InvalidInput, InvalidRecord
from muniment.handles.run import Run

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from datetime import datetime

    from muniment.contracts.run_records import VerifierResult
    from muniment.core.scope import Scope
    from muniment.core.vocabulary import ScopeLevel
    from muniment.handles.bank import Bank
    from muniment.handles.memory import Memory
    from muniment.handles.rulebook import Rulebook
    from muniment.handles.runner import Runner
    from muniment.learning.folding import Learned
    from muniment.rules.routing.records import RateReport, RouteDecision, RouteRequest
    from muniment.rules.run_plans import Router
    from muniment.store.context import Context

__all__ = ["MemoryLearning", "granted"]


def granted(grants: Iterable[str]) -> frozenset[str]:
    """The levels above the user's that a run may write at, checked."""
    if grants == ():
        return frozenset()
    from muniment.memory import patches

    return patches.granted(grants)


def _bank_named(user_id: str | None, agent_id: str | None, tenant_id: str) -> tuple[Scope, str]:
    """The scope and the owner of the bank of a user, an agent or the tenant."""
    from muniment.core.owners.banks import bank_owner

    if user_id is not None and agent_id is not None:
        raise InvalidInput("a bank is a user's or an agent's", path="$.agent_id")
    if isinstance(user_id, str) and is_reserved(user_id):
        raise InvalidInput(f"{user_id!r:.60} is not the name of a user", path="$.user_id")
    plain = {
        "tenant_id": tenant_id,
        "user_id": "u" if user_id is None else user_id,
        "agent_id": "a" if agent_id is None else agent_id,
        "session_id": "s",
        "run_id": "r",
    }
    try:
        scope = scope_of(plain)
    except ValidationError as error:
        raise InvalidRecord("not a valid scope", issues_of(error, plain)) from None
    level: ScopeLevel = "tenant" if agent_id is None else "agent"
    return scope, bank_owner(scope, "user" if user_id is not None else level)


class MemoryLearning:
    """See `muniment.Memory`."""

    _ctx: Context

    def bank(self, *, user_id: str | None = None, agent_id: str | None = None, tenant_id: str = DEFAULT_TENANT) -> Bank:
        """What was learnt from verified runs: of a user, of an agent or, without either, of the whole tenant."""
        from muniment.handles.bank import Bank

        scope, owner = _bank_named(user_id, agent_id, tenant_id)
        return Bank(self._ctx, scope, owner)

    def rulebook(
        self, *, user_id: str | None = None, agent_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> Rulebook:
        """The rules of a user, of an agent or, without either, of the whole tenant: their tests, trials and figures."""
        from muniment.handles.rulebook import Rulebook

        _, owner = _bank_named(user_id, agent_id, tenant_id)
        return Rulebook(self._ctx, tenant_id, owner)

    def route(
        self,
        asked: RouteRequest | Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        **more: Any,
    ) -> RouteDecision:
        """How to try a task, by how runs of its bucket (and `intent`) fared; `more` are fields of a `RouteRequest`."""
        from muniment.rules.route import Routing

        _, owner = _bank_named(user_id, agent_id, tenant_id)
        return Routing(self._ctx, tenant_id, owner).decide(asked, **more)

    def observe_rates(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        bucket_key: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
    ) -> RateReport:
        """How often outcomes stay unknown, formats break, failures recur; and what that asks for."""
        from muniment.rules.route import Routing

        _, owner = _bank_named(user_id, agent_id, tenant_id)
        return Routing(self._ctx, tenant_id, owner).rates(bucket_key=bucket_key, since=since, until=until)

    def bank_of(self, record_id: str, *, tenant_id: str = DEFAULT_TENANT) -> Bank:
        """The bank that holds a learned record, or a plan or draft of one, by its id."""
        from muniment.core.owners.banks import holder_of
        from muniment.learning.banks import find_owner

        return self.bank(**holder_of(find_owner(self._ctx, tenant_id, record_id)), tenant_id=tenant_id)

    def learn(
        self,
        run_id: str,
        verifier_result: VerifierResult | Mapping[str, Any],
        *,
        tenant_id: str = DEFAULT_TENANT,
        grants: Iterable[str] = (),
        **more: Any,
    ) -> Learned:
        """Fold a run into memory, also one that has ended; `more` are the arguments of `Run.learn`."""
        from muniment.runs.reading import get_run

        state = get_run(self._ctx, tenant_id, run_id)
        run = Run(self._ctx, state.scope, state.task_type, None, None, granted(grants))
        return run._learn(verifier_result, None, more, is_final=True)

    def runner(
        self,
        agent: Callable[..., Any],
        verifier: Callable[..., Any],
        policy: Mapping[str, Any] | None = None,
        *,
        executor: Executor | None = None,
        router: Router | Literal[True] | None = None,
        **scope: Any,
    ) -> Runner:
        """Something that runs an agent on tasks, recalls for it, has its output verified, and learns.

        `executor` is where attempts run: threads of their own unless given. `router` says how far to go with a task:
        a function of a `RouteRequest`, or True for `route` over this runner's bank.
        """
        from muniment.handles.runner import Runner

        return Runner(cast("Memory", self), agent, verifier, policy, scope, executor, router)
