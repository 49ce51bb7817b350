"""Operations that are not methods of a handle: parts of a build, a list of builds, one fact by its id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from muniment.core.record import JsonObject, Record, Timestamp
from muniment.errors import Forbidden, UnknownScope

if TYPE_CHECKING:
    from muniment.contracts.packet import Fact
    from muniment.core.listing import Listing, ListQuery
    from muniment.core.ports.engine import Reader
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.packets.answers import Resolution
    from muniment.store.items import Item
    from muniment.store.ledger import Receipt
    from muniment.store.reports import ImportReport
    from muniment.surfaces.operations.handles import BuildInputs

__all__ = ["BuildLine", "build_inputs", "build_line", "build_packet", "builds",
           "fact",
           "forget_tenant", "import_lines", "resolve_answer", "start_run"]  # fmt: skip


class BuildLine(Record):
    """A build in a list."""

    build_id: str
    created_at: Timestamp
    user_id: str
    session_id: str
    run_id: str
    purpose: str
    query: str
    policy_id: str


def start_run(
    memory: Memory,
    *,
    user_id: str,
    agent_id: str = "agent",
    session_id: str | None = None,
    run_id: str | None = None,
    tenant_id: str = "default",
    task_type: str = "generic",
    objective: str | None = None,
    done_definition: JsonObject | str | None = None,
    grants: Iterable[Literal["agent", "tenant"]] = (),
    budgets: Mapping[str, float] | None = None,
    start: bool = True,
) -> Run:
    """Start a run in a scope, or reopen it if its id exists; with `start` false, only look it up.

    Session and run ids are minted unless given. The run's purpose and limits are set when it starts.
    """
    run = memory.run(
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        run_id=run_id,
        tenant_id=tenant_id,
        task_type=task_type,
        objective=objective,
        done_definition=done_definition,
        grants=grants,
        budgets=budgets,
    )
    if start:
        from muniment.store.append import append

        append(memory._ctx, run.scope, (), run._opening)
    return run


def builds(
    memory: Memory,
    *,
    user_id: str | None = None,
    order: Literal["asc", "desc"] = "desc",
    since: Any = None,
    until: Any = None,
    q: str | None = None,
    around: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    tenant_id: str = "default",
) -> Listing[BuildLine]:
    """The builds of a user, or of the tenant, newest first or oldest (`asc`): all, or at most `limit`.

    `since`, `until`: made in that time; `q`: words of the query; `around` a build.
    """
    from muniment.core.listing import Placed, list_query, read_listing
    from muniment.packets.builds import page_builds
    from muniment.store.lists.seeking import count_listed

    def read(asked: ListQuery) -> Iterator[Placed[BuildLine]]:
        for each in page_builds(memory._ctx, tenant_id, user_id, asked):
            yield Placed(each.place, None if each.value is None else build_line(each.value))

    def count(asked: ListQuery) -> int | None:
        return count_listed(memory._ctx, tenant_id, "build", user_id, asked)

    asked = list_query(order=order, since=since, until=until, q=q, around=around, limit=limit)
    return read_listing("builds", (str, str), read, asked, cursor, count)


def build_line(item: Item) -> BuildLine:
    """A build as shown in a list."""
    asked = item.plain()["request"]
    return BuildLine(
        build_id=item.id,
        created_at=item.created_at,
        user_id=item.user_id or "",
        session_id=item.session_id or "",
        run_id=item.run_id or "",
        purpose=asked["purpose"],
        query=asked["query"],
        policy_id=asked["policy_id"],
    )


def build_packet(memory: Memory, build_id: str, *, tenant_id: str = "default") -> bytes:
    """The original packet of a build: its canonical bytes."""
    return memory.replay(build_id, tenant_id=tenant_id).packet_bytes


def build_inputs(memory: Memory, build_id: str, *, tenant_id: str = "default") -> BuildInputs:
    """The inputs of a build: the candidates with their scores, and the policy."""
    from muniment.surfaces.operations.handles import BuildInputs

    build = memory.replay(build_id, tenant_id=tenant_id)
    return BuildInputs(build.pool, build.policy)


def resolve_answer(memory: Memory, build_id: str, answer: str, *, tenant_id: str = "default") -> Resolution:
    """The citations of each sentence of a model's answer, and the marks that do not exist."""
    return memory.replay(build_id, tenant_id=tenant_id).resolve(answer)


def fact(run: Run, fact_id: str) -> Fact:
    """A fact by its id: the user's own, or an inherited one."""
    from muniment.memory.facts import view_fact
    from muniment.memory.patches import own_item

    def work(reader: Reader) -> Fact:
        own_item(reader, run.scope, "fact", fact_id, "$.fact_id")
        return view_fact(reader, fact_id)

    return run._ctx.engine.read(run.scope.tenant_id, work)


def forget_tenant(memory: Memory, *, tenant_id: str = "default") -> Receipt:
    """Erase a tenant and everything derived from it; returns the receipt."""
    if tenant_id not in memory.store.tenants():
        raise UnknownScope(f"no tenant {tenant_id!r:.80}", path="$.tenant_id")
    return memory.forget(tenant=tenant_id)


def import_lines(
    memory: Memory, source: Any, *, tenant_id: str = "default", progress: Callable[[int], None] | None = None
) -> ImportReport:
    """Import a dump of this tenant, checked before anything is written."""
    from muniment.handles.derived import check_dump

    dump = check_dump(source)
    if dump.tenant_id != tenant_id:
        raise Forbidden(
            f"the dump is of the tenant {dump.tenant_id!r:.80}", hint="a dump goes to the address of its own tenant"
        )
    return memory.import_(dump, progress=progress)
