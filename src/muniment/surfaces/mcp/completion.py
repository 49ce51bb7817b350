"""Completion: ids of this caller's own builds, events, facts, runs and sessions, newest first, by prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from mcp_types import Completion, PromptReference, ResourceTemplateReference

from muniment.errors import InvalidInput
from muniment.packets.builds import list_readables
from muniment.surfaces.mcp.prompts import PROMPTS
from muniment.surfaces.mcp.uris import TEMPLATES

if TYPE_CHECKING:
    from muniment.store.ledger import RunState
    from muniment.surfaces.mcp.callers import ToolCaller

__all__ = ["complete"]

VALUES_MAX = 100
"""The most values of one answer; the protocol allows no more."""
LOOKED_AT_MAX = 1_000
"""The number of newest items checked."""


def complete(
    tool_caller: ToolCaller, ref: PromptReference | ResourceTemplateReference, name: str, typed: str
) -> Completion:
    """The values with the typed prefix. An argument with unlisted values has none."""
    if isinstance(ref, PromptReference):
        if ref.name not in PROMPTS:
            raise InvalidInput(
                f"there is no prompt {ref.name!r:.80}", path="$.ref.name", hint="`prompts/list` says which there are"
            )
        known = set(PROMPTS[ref.name].arguments)
    else:
        if ref.uri not in {uri for uri, _, _ in TEMPLATES.values()}:
            raise InvalidInput(
                f"there is no template {ref.uri!r:.120}",
                path="$.ref.uri",
                hint="`resources/templates/list` says which there are",
            )
        known = {each for each in _LISTS if f"{{{each}}}" in ref.uri}
    if name not in known or name not in _LISTS:
        return Completion(values=[], total=0, has_more=False)
    values = list(dict.fromkeys(each for each in _LISTS[name](tool_caller) if each.startswith(typed)))
    return Completion(values=values[:VALUES_MAX], total=len(values), has_more=len(values) > VALUES_MAX)


def _builds(tool_caller: ToolCaller) -> Iterable[str]:
    found = list_readables(tool_caller.memory._ctx, tool_caller.tenant, tool_caller.user, None, LOOKED_AT_MAX)
    return (each.id for each in found if each.kind == "build")


def _events(tool_caller: ToolCaller) -> Iterable[str]:
    entries = tool_caller.memory.ledger.entries(
        user_id=tool_caller.user, tenant_id=tool_caller.tenant, order="desc", limit=LOOKED_AT_MAX
    )
    return (entry.id for entry in entries if entry.kind in ("message", "tool_result") and not entry.is_forgotten)


def _facts(tool_caller: ToolCaller) -> Iterable[str]:
    return (fact.fact_id for fact in tool_caller.run.facts(order="desc", limit=LOOKED_AT_MAX))


def _runs(tool_caller: ToolCaller) -> Iterable[str]:
    return (state.scope.run_id for state in _run_states(tool_caller))


def _sessions(tool_caller: ToolCaller) -> Iterable[str]:
    return (state.scope.session_id for state in _run_states(tool_caller))


def _run_states(tool_caller: ToolCaller) -> Iterable[RunState]:
    return tool_caller.memory.runs(
        user_id=tool_caller.user, tenant_id=tool_caller.tenant, order="desc", limit=LOOKED_AT_MAX
    )


_LISTS: Mapping[str, Callable[[ToolCaller], Iterable[str]]] = {
    "build_id": _builds,
    "event_id": _events,
    "fact_id": _facts,
    "run_id": _runs,
    "session_id": _sessions,
}
"""By the argument of a template or a prompt. Tenant, user and agent are missing: the server sets those."""
