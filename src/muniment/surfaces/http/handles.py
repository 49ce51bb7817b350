"""From an address to the library's handle, under the scope that the address names and nothing else (LG-02)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muniment.errors import InvalidInput, InvalidRecord, NotFound
from muniment.ports.engine import Reader
from muniment.records.base import ValidationError, issues_of
from muniment.records.scope import Scope, scope_of
from muniment.runtime.items import latest
from muniment.runtime.memory import Memory
from muniment.runtime.run import Run
from muniment.semantics.owners import is_reserved
from muniment.surfaces.http.routing import Found
from muniment.text.hashing import digest_of

__all__ = ["open_handle", "place_study", "versioned_id"]

_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def open_handle(memory: Memory, found: Found, context: Mapping[str, Any]) -> Any:
    """What the operation's method is called on; `context` is what the query says of a run."""
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
        case "study":
            _check_item(memory, _scope(names), "run", names["run_id"], "$.run_id")
            return memory.open_research(names["run_id"], tenant_id=tenant_id)


def _open_run(memory: Memory, found: Found, context: Mapping[str, Any]) -> Run:
    """The run that is named: as it stands; or, where it has not started, as the query has it begin."""
    names, said = found.names, dict(context)
    repair = said.pop("repair", False)
    scope: dict[str, Any] = {"tenant_id": names["tenant_id"], "user_id": names["user_id"]}
    if not found.route.names_run:
        return memory.run(**scope, **said)
    run_id = names["run_id"]
    if "agent_id" not in said and "session_id" not in said:
        said = _as_it_stands(memory, scope, run_id, said, starts=found.route.operation.access != "read")
    run = memory.run(**scope, run_id=run_id, **({"session_id": run_id} | said))
    if not repair:
        return run
    return Run(memory._ctx, run.scope, run._task_type, None, None, run._grants, repairs=True)


def _as_it_stands(
    memory: Memory, scope: Mapping[str, str], run_id: str, said: Mapping[str, Any], *, starts: bool
) -> dict[str, Any]:
    """What is known of a run. Where nothing is, a write starts it, in a session of its own."""
    item = memory._ctx.engine.read(scope["tenant_id"], lambda reader: latest(reader, run_id))
    if item is None and starts:
        return dict(said)
    if item is None or item.kind != "run" or item.user_id != scope["user_id"]:
        raise NotFound(
            f"no run {run_id!r:.80} in this scope",
            path="$.run_id",
            hint="POST …/runs starts one; or name agent_id and session_id in the query",
        )
    known: dict[str, Any] = {"agent_id": item.agent_id, "session_id": item.session_id}
    if item.body is not None:
        known["task_type"] = item.plain().get("task_type", "generic")
    return known | dict(said)


def _check_names(names: Mapping[str, str]) -> None:
    """Whose address it is: names fit for a tenant and a user, neither all tenants nor a corpus or bank."""
    if "tenant_id" not in names:
        return
    scope = _scope({"user_id": "u", **names})
    if scope.tenant_id == "*" or is_reserved(scope.user_id):
        raise InvalidInput("that is not the name of a tenant or a user", path="$")


def _check_owned(memory: Memory, found: Found) -> None:
    """What is named in the path of a user must be that user's."""
    if "user_id" not in found.names:
        return
    for name, kind in found.route.operation.owned.items():
        _check_item(memory, _scope(found.names), kind, found.names[name], f"$.{name}")


def _check_item(memory: Memory, scope: Scope, kind: str, item_id: str, path: str) -> None:
    def work(reader: Reader) -> None:
        item = latest(reader, item_id)
        if item is None or item.kind != kind or item.user_id != scope.user_id:
            raise NotFound(f"no {kind} {item_id!r:.80} in this scope", path=path)

    memory._ctx.engine.read(scope.tenant_id, work)


def _scope(names: Mapping[str, str]) -> Scope:
    plain = {"tenant_id": names["tenant_id"], "user_id": names["user_id"]}
    plain |= {"agent_id": "a", "session_id": "s", "run_id": "r"}
    try:
        return scope_of(plain)
    except ValidationError as error:
        raise InvalidRecord("not a valid scope", issues_of(error, plain)) from None


def versioned_id(found: Found) -> str:
    """The item whose version an ETag of this operation is."""
    from muniment.runtime.project_states import state_id

    named = found.route.operation.versioned
    return state_id(found.names["run_id"]) if named == "state" else found.names[str(named)]


def place_study(memory: Memory, found: Found, arguments: dict[str, Any], root: Path) -> None:
    """A research run's files lie under the server's own root, apart by tenant; callers name no folder."""
    run_id = arguments.get("run_id") or memory._ctx.ids.new("run")
    if not isinstance(run_id, str) or not _FOLDER.fullmatch(run_id):
        raise InvalidInput("the run's id cannot name a folder", path="$.run_id", hint="letters, digits, '-', '_', '.'")
    tenant = digest_of(found.names["tenant_id"])[:16]
    arguments |= {"run_id": run_id, "directory": root / tenant / run_id}
