"""The tools' callers: the store scope of each, and the run it writes to. Nothing reaches past it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.core.scope import lowest_trust
from muniment.errors import InvalidInput
from muniment.store.admission import trust_of
from muniment.store.items import latest
from muniment.store.proofs import check_proofs
from muniment.store.reading import check_own

if TYPE_CHECKING:
    from muniment.core.scope import Trust
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.packets.builds import Build
    from muniment.store.ledger import LedgerEntry, Role
    from muniment.surfaces.mcp.settings import McpSettings

__all__ = ["CallerScope", "ToolCaller", "ToolCallers"]

RUNS_MAX = 1000
"""The most scopes with a cached run; beyond them, the longest unused begin a new one."""


class CallerScope(NamedTuple):
    """The user, agent, session and run of a caller; session and run are minted if empty."""

    tenant: str
    user: str
    agent: str
    session: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The scope and permissions of one request."""

    memory: Memory
    run: Run
    settings: McpSettings
    reads_only: bool = False

    @property
    def tenant(self) -> str:
        return self.run.scope.tenant_id

    @property
    def user(self) -> str:
        return self.run.scope.user_id

    @property
    def writes(self) -> bool:
        return self.settings.writes == "on" and not self.reads_only

    def trust(self, role: Role, claimed: Trust | None = None) -> Trust:
        """The trust of a role's words when they are recorded here."""
        most = [trust_of(role, None), cast("Trust", self.settings.trust)]
        return lowest_trust(most if claimed is None else [*most, claimed])

    def build(self, build_id: str) -> Build:
        """A build of this user; other users' builds are not found."""
        check_own(self.memory._ctx, self.tenant, self.user, "build", build_id, "$.build_id")
        return self.memory.replay(build_id, tenant_id=self.tenant)

    def fact(self, fact_id: str) -> dict[str, Any]:
        """The current state of a fact of this user; other users' facts, the agent's and the tenant's are not found."""
        ctx = self.memory._ctx
        check_own(ctx, self.tenant, self.user, "fact", fact_id, "$.fact_id")
        item = ctx.engine.read(self.tenant, lambda reader: latest(reader, fact_id))
        assert item is not None  # rows are never deleted
        check_proofs(ctx, self.tenant, [item])
        return item.plain()

    def turns(self, session_id: str, limit: int) -> list[LedgerEntry]:
        """The latest turns of a session of this user, in order."""
        found = self.memory.ledger.entries(
            user_id=self.user, tenant_id=self.tenant, session_id=session_id, order="desc", limit=2 * limit
        )
        said = [each for each in found if each.kind in ("message", "tool_result") and not each.is_forgotten]
        return said[:limit][::-1]

    def narrative(self, run_id: str, sequence: int | None) -> str:
        """The narrative of a run of this user."""
        check_own(self.memory._ctx, self.tenant, self.user, "run", run_id, "$.run_id")
        return self.memory.log.narrative(run_id, sequence, tenant_id=self.tenant)


class ToolCallers:
    """Makes callers. A scope keeps its run until the server ends or the run does."""

    def __init__(self, memory: Memory, settings: McpSettings) -> None:
        self.memory, self.settings = memory, settings
        self._runs: OrderedDict[CallerScope, Run] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, place: CallerScope, *, reads_only: bool = False) -> ToolCaller:
        """The caller of a scope; its run is opened with the first."""
        with self._lock:
            run = self._runs.pop(place, None) or self._open(place)
            self._runs[place] = run
            if len(self._runs) > RUNS_MAX:
                self._runs.popitem(last=False)
        return ToolCaller(self.memory, run, self.settings, reads_only)

    def leave(self, run: Run) -> None:
        """Drop a run that has ended: the next caller of its scope begins another, unless the run was named."""
        with self._lock:
            for place in [each for each, held in self._runs.items() if held is run and not each.run]:
                del self._runs[place]

    def _open(self, place: CallerScope) -> Run:
        if not place.user:
            raise InvalidInput("no user is named", path="$.user", hint="the server's configuration names a user")
        level = self.settings.level
        named: dict[str, Any] = {"session_id": place.session or None, "run_id": place.run or None}
        return self.memory.run(
            user_id=place.user,
            agent_id=place.agent,
            tenant_id=place.tenant,
            task_type=self.settings.task_type,
            grants=() if level == "user" else (cast("Any", level),),
            **named,
        )
