"""From an address to the library's handle, under the scope that the address names and nothing else (LG-02)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muniment.core.canonical import digest_of
from muniment.core.scope import UserScope, is_reserved, scope_given, scope_of
from muniment.errors import InvalidInput, NotFound
from muniment.handles.bank import Bank
from muniment.handles.memory import Memory, granted
from muniment.handles.run import Run
from muniment.store.items import Item, latest
from muniment.store.reading import check_own
from muniment.surfaces.http.routing import MatchedRoute

__all__ = ["name_run", "open_handle", "place_study", "sees", "versioned_id"]

_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ANY_USER = "u"
"""Stands for the user where an address names a tenant alone: a name that is always valid."""


def open_handle(memory: Memory, found: MatchedRoute, context: Mapping[str, Any]) -> Any:
    """What the operation is called on; `context` is what the query says of a run."""
    names, tenant_id = found.names, found.names.get("tenant_id", "")
    _check_names(names)
    _check_owned(memory, found)
    match found.route.operation.handle:
        case "memory":
            return memory
        case "run":
            return _open_run(memory, found, context)
        case "corpus":
            return memory.corpus(names["corpus_id"], tenant_id=tenant_id, user_id=names.get("user_id"))
        case "bank":
            return memory.bank(user_id=names.get("user_id"), agent_id=names.get("agent_id"), tenant_id=tenant_id)
        case "rulebook":
            return memory.rulebook(user_id=names.get("user_id"), agent_id=names.get("agent_id"), tenant_id=tenant_id)
        case "values":
            user_at = context.get("user_at")
            return memory.store.values(
                names["space"], user_at=user_at, user_id=names.get("user_id"), tenant_id=tenant_id
            )
        case "threads":
            return memory.store.threads(names["space"], user_id=names.get("user_id"), tenant_id=tenant_id)
        case "study":
            check_own(memory._ctx, tenant_id, names["user_id"], "run", names["run_id"], "$.run_id")
            return memory.open_research(names["run_id"], tenant_id=tenant_id)


def name_run(found: MatchedRoute, own: Mapping[str, Any], context: dict[str, Any]) -> None:
    """The run of a request that names none, where its idempotency key stands for it: asked again, it is the same."""
    key = own.get("idempotency_key")
    if isinstance(key, str) and found.route.operation.handle == "run" and not found.route.names_run:
        context.setdefault("run_id", f"run_{digest_of(['muniment.keyed_run.v1', found.names['user_id'], key])[:32]}")


def _open_run(memory: Memory, found: MatchedRoute, context: Mapping[str, Any]) -> Run:
    """The run that is named: as it stands; or, where it has not started, as the query has it begin."""
    names, said = found.names, dict(context)
    repair = said.pop("repair", False)
    scope: dict[str, Any] = {"tenant_id": names["tenant_id"], "user_id": names["user_id"]}
    if not found.route.names_run:
        return memory.run(**scope, **said)
    run_id, starts = names["run_id"], found.route.operation.access != "read"
    if "agent_id" not in said and "session_id" not in said:
        item = _as_it_stands(memory, scope, run_id, starts=starts)
        if item is not None:
            return _taken_up(memory, scope, item, said, repair=repair)
    elif not starts:
        return _only_read(memory, scope, run_id, said, repair=repair)
    run = memory.run(**scope, run_id=run_id, **({"session_id": run_id} | said))
    if not repair:
        return run
    return Run(memory._ctx, run.scope, run._task_type, None, None, run._grants, repairs=True)


def _as_it_stands(memory: Memory, scope: Mapping[str, str], run_id: str, *, starts: bool) -> Item | None:
    """What is known of a run; None where nothing is, and a write starts it, in a session of its own.

    Where the id is another user's, a write is refused as every choice of an id is that the tenant has.
    """
    item = _own_run(memory, scope, run_id)
    if item is None and not starts:
        raise NotFound(
            f"no run {run_id!r:.80} in this scope",
            path="$.run_id",
            hint="POST …/runs starts one; or name agent_id and session_id in the query",
        )
    return item


def _own_run(memory: Memory, scope: Mapping[str, str], run_id: str) -> Item | None:
    item = memory._ctx.engine.read(scope["tenant_id"], lambda reader: latest(reader, run_id))
    return None if item is None or item.kind != "run" or item.user_id != scope["user_id"] else item


def _only_read(memory: Memory, owner: Mapping[str, Any], run_id: str, said: Mapping[str, Any], *, repair: bool) -> Run:
    """The handle of a run that is asked, under the session and agent of the query, and chooses no id by that: where the
    user has no such run, it has not started, whoever else has one (LG-02)."""
    run = memory.run(**owner, **({"session_id": run_id} | dict(said)))
    scope = scope_given({**run.scope.to_wire(), "run_id": run_id})
    item = _own_run(memory, owner, run_id)
    return Run(
        memory._ctx, scope, run._task_type, None, None, run._grants,
        repairs=bool(repair), found=item, is_new=item is None,
    )  # fmt: skip


def _taken_up(memory: Memory, owner: Mapping[str, str], item: Item, said: Mapping[str, Any], *, repair: bool) -> Run:
    """The handle of a run that stands, from what was read of it: it is not read twice."""
    scope = scope_of({**owner, "agent_id": item.agent_id, "session_id": item.session_id, "run_id": item.id})
    known = "generic" if item.body is None else item.plain().get("task_type", "generic")
    grants = granted(said.get("grants", ()))
    return Run(memory._ctx, scope, said.get("task_type", known), None, None, grants, repairs=bool(repair), found=item)


def _check_names(names: Mapping[str, str]) -> None:
    """Whose address it is: names fit for a tenant and a user, neither all tenants nor a corpus or bank."""
    if "tenant_id" not in names:
        return
    owner = {"tenant_id": names["tenant_id"], "user_id": names.get("user_id", _ANY_USER)}
    scope = UserScope.of_given(owner, "not a valid scope")
    if scope.tenant_id == "*" or is_reserved(scope.user_id):
        raise InvalidInput("that is not the name of a tenant or a user", path="$")


def _check_owned(memory: Memory, found: MatchedRoute) -> None:
    """What is named in the path of a user must be that user's."""
    names = found.names
    if "user_id" not in names:
        return
    for name, kind in found.route.operation.owned.items():
        check_own(memory._ctx, names["tenant_id"], names["user_id"], kind, names[name], f"$.{name}")


def versioned_id(found: MatchedRoute) -> str:
    """The item whose version an ETag of this operation is."""
    from muniment.memory.working_state import state_id

    named = found.route.operation.versioned
    return state_id(found.names["run_id"]) if named == "state" else found.names[str(named)]


_VERSIONED = {"fact_id": "fact", "plan_id": "plan", "state": "working_state"}
"""Of what kind the item is whose version an ETag is, by how an operation names it."""


def sees(handle: Any, found: MatchedRoute, item: Item) -> bool:
    """May whoever asks know of this item? Of a run: the user's own, or what the user inherits; of a bank: its own."""
    if item.kind != _VERSIONED[str(found.route.operation.versioned)]:
        return False
    if isinstance(handle, Bank):
        return item.user_id == handle._owner
    scope = handle.scope
    return item.user_id == scope.user_id or (item.user_id is None and item.agent_id in (None, scope.agent_id))


def place_study(memory: Memory, found: MatchedRoute, arguments: dict[str, Any], root: Path) -> None:
    """A research run's files lie under the server's own root, apart by tenant; callers name no folder."""
    run_id = arguments.get("run_id") or memory._ctx.ids.new("run")
    if not isinstance(run_id, str) or not _FOLDER.fullmatch(run_id):
        raise InvalidInput("the run's id cannot name a folder", path="$.run_id", hint="letters, digits, '-', '_', '.'")
    tenant = digest_of(found.names["tenant_id"])[:16]
    arguments |= {"run_id": run_id, "directory": root / tenant / run_id}
