"""Learning across runs, by the id of a run or a record, and routing of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.scope import DEFAULT_TENANT, is_reserved, scope_given
from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from muniment.contracts.runs import VerifierResult
    from muniment.core.scope import Scope, ScopeLevel
    from muniment.handles.bank import Bank
    from muniment.learning.folding import Learned
    from muniment.rules._records import RateReport, RouteDecision, RouteRequest
    from muniment.store.context import Context

__all__ = ["MemoryLearning", "name_bank"]


def name_bank(user_id: str | None, agent_id: str | None, tenant_id: str) -> tuple[Scope, str]:
    """The scope and the owner of the bank and rulebook of a user, an agent or the tenant."""
    from muniment.core.scope import bank_owner

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
    scope = scope_given(plain)
    level: ScopeLevel = "tenant" if agent_id is None else "agent"
    return scope, bank_owner(scope, "user" if user_id is not None else level)


class MemoryLearning:
    """Routes and their rates, the bank of a record, learning from any run: `mem.learning`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def route(
        self,
        asked: RouteRequest | Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        **more: Any,
    ) -> RouteDecision:
        """Choose how to try a task from the runs of its bucket (and `intent`); `more` are fields of a
        `RouteRequest`.
        """
        from muniment.rules.routing import route_task

        _, owner = name_bank(user_id, agent_id, tenant_id)
        return route_task(self._ctx, tenant_id, owner, asked, **more)

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
        """Rates of unknown outcomes, broken formats and recurring failures, and the changes they call for."""
        from muniment.rules.routing import observe_rates

        _, owner = name_bank(user_id, agent_id, tenant_id)
        return observe_rates(self._ctx, tenant_id, owner, bucket_key=bucket_key, since=since, until=until)

    def bank_of(self, record_id: str, *, tenant_id: str = DEFAULT_TENANT) -> Bank:
        """The bank that holds a learned record, or a plan or draft of one, by its id."""
        from muniment.core.scope import bank_names
        from muniment.handles.bank import Bank
        from muniment.learning.banks import find_owner

        holder = bank_names(find_owner(self._ctx, tenant_id, record_id))
        scope, owner = name_bank(holder.get("user_id"), holder.get("agent_id"), tenant_id)
        return Bank(self._ctx, scope, owner)

    def learn(
        self,
        run_id: str,
        verifier_result: VerifierResult | Mapping[str, Any],
        *,
        tenant_id: str = DEFAULT_TENANT,
        grants: Iterable[str] = (),
        **more: Any,
    ) -> Learned:
        """Fold a run into memory, even one that has ended; `more` are the arguments of `run.learning.learn`."""
        from muniment.handles.run import Run
        from muniment.handles.run_learning import learn_from
        from muniment.memory.patches import granted
        from muniment.runs.snapshots import get_run

        state = get_run(self._ctx, tenant_id, run_id)
        run = Run(self._ctx, state.scope, state.task_type, None, None, granted(grants))
        return learn_from(run._writer(), verifier_result, None, more, task_type=state.task_type, is_final=True)
