"""`MemoryClient`: the calls of the client of mem0's hosted platform, over your own server or an open store.

    client = MemoryClient(api_key="…", host="https://memory.example.org")  # `muniment serve`
    client = MemoryClient(client=muniment.open("agent.db"))

Features that only the platform has are refused with an alternative (`platform`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from muniment.core.outside.system import system_clock
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import MunimentError
from muniment.handles import memory as runtime
from muniment.integrations.mem0.answers import list_memories, search_memories
from muniment.integrations.mem0.client_filters import ADDED, ENTITY_NAMES, LISTED, SEARCHED, UPDATED, asked_filters
from muniment.integrations.mem0.environment import variable
from muniment.integrations.mem0.exceptions import (
    ConfigurationError,
    MemoryNotFoundError,
    UnsupportedError,
    ValidationError,
    translated,
)
from muniment.integrations.mem0.memories import not_found
from muniment.integrations.mem0.memory import Memory
from muniment.integrations.mem0.options import options_given
from muniment.integrations.mem0.platform import HostedProject, PlatformOnly
from muniment.integrations.mem0.scoping import filters_given
from muniment.integrations.mem0.searching import Search
from muniment.integrations.mem0.shapes import OWNERLESS, entities_of_owner, owner_of
from muniment.integrations.mem0.validation import (
    ENTITIES,
    UNSET,
    check_search_params,
    checked_query,
    entity_id,
    moment_given,
    own_metadata,
    refuse_top_level,
)

__all__ = ["MemoryClient"]

Call = TypeVar("Call", bound=Callable[..., Any])
_PAGE = 100
_TOP = 10
_FEEDBACK = ("POSITIVE", "NEGATIVE", "VERY_NEGATIVE")


def _told(call: Call) -> Call:
    """Raise a server's refusals as mem0's client does."""

    @functools.wraps(call)
    def asking(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except MunimentError as error:
            raise translated(error) from error.__cause__

    return cast("Call", asking)


class MemoryClient(PlatformOnly):
    """mem0's `MemoryClient`. `host` is a muniment server and `api_key` its key (`MEM0_API_KEY` otherwise); `client` is
    an open store in place of both, or an HTTP client to reach the host with. Thread-safe.
    """

    def __init__(self, api_key: str | None = None, host: str | None = None, client: Any | None = None) -> None:
        self.api_key = api_key or variable("MEM0_API_KEY")
        self.host = host
        self.org_id: str | None = None
        self.project_id: str | None = None
        self.user_email: str | None = None
        self.project = HostedProject()
        self._is_own = not isinstance(client, runtime.Memory)
        self._memory = Memory(
            client if isinstance(client, runtime.Memory) else _connected(self.api_key, host, client),
            tenant_id=DEFAULT_TENANT,
            clock=system_clock,
        )

    @_told
    def add(self, messages: Any, options: Any | None = None, **kwargs: Any) -> dict[str, Any]:
        """Record messages for the given ids, which are arguments or in `filters`."""
        given = options_given("add", options, kwargs, ADDED)
        if not isinstance(messages, str | dict | list):
            raise ValidationError(f"messages must be str, dict, or list[dict], got {type(messages).__name__}")
        ids = {**(given.get("filters") or {}), **{name: given[name] for name in ENTITY_NAMES if name in given}}
        unknown = sorted(set(ids) - set(ENTITY_NAMES))
        if unknown:
            raise ValidationError(f"filters of add() are ids; {unknown[0]!r} is none", path=f"$.filters.{unknown[0]}")
        metadata = dict(given.get("metadata") or {})
        if ids.get("app_id") is not None:
            metadata["app_id"] = entity_id(ids["app_id"], "app_id")
        return self._memory.add(
            messages,
            **{name: ids.get(name) for name in ENTITIES},
            metadata=metadata,
            timestamp=given.get("timestamp"),
            expiration_date=given.get("expiration_date"),
            infer=given.get("infer", True),
        )

    @_told
    def get(self, memory_id: str) -> dict[str, Any]:
        """Return a memory or a fact by its id."""
        found = self._memory.get(memory_id)
        if found is None:
            raise not_found(memory_id)
        return _shown(found)

    @_told
    def get_all(self, options: Any | None = None, **kwargs: Any) -> dict[str, Any]:
        """A page of matching memories: `count` is the number of all, `next` and `previous` are other pages if there are
        any.
        """
        refuse_top_level({name: kwargs[name] for name in ENTITY_NAMES if name in kwargs}, "get_all", ENTITY_NAMES)
        given = options_given("get_all", options, kwargs, LISTED)
        page, size = (_counted(given, name, default) for name, default in (("page", 1), ("page_size", _PAGE)))
        tree, owners = filters_given(asked_filters(given), nested=True)
        found = list_memories(
            self._memory.memories, owners, tree, None, show_expired=bool(given.get("show_expired", False))
        )
        begin = (page - 1) * size
        return {
            "count": len(found),
            "next": f"?page={page + 1}&page_size={size}" if begin + size < len(found) else None,
            "previous": f"?page={page - 1}&page_size={size}" if page > 1 else None,
            "results": [_shown(each) for each in found[begin : begin + size]],
        }

    @_told
    def search(self, query: str, options: Any | None = None, **kwargs: Any) -> dict[str, Any]:
        """The best memories and facts for a query; `fields` selects the parts of each to return."""
        refuse_top_level({name: kwargs[name] for name in ENTITY_NAMES if name in kwargs}, "search", ENTITY_NAMES)
        given = options_given("search", options, kwargs, SEARCHED)
        asked = checked_query(query)
        top, threshold = given.get("top_k", _TOP), given.get("threshold")
        check_search_params(threshold=threshold, top_k=top)
        tree, owners = filters_given(asked_filters(given), nested=True)
        when = given.get("reference_date")
        wanted = Search(
            asked, tree, top, float(threshold or 0.0), bool(given.get("show_expired", False)), False,
            None if when is None else moment_given(when, "$.reference_date"),
        )  # fmt: skip
        found = [_shown(each) for each in search_memories(self._memory.memories, owners, wanted)]
        fields = given.get("fields")
        return {
            "results": found if not fields else [{key: each[key] for key in fields if key in each} for each in found]
        }

    @_told
    def update(self, memory_id: str, options: Any | None = None, **kwargs: Any) -> dict[str, Any]:
        """Change a memory's text, metadata or expiration day; return the new state."""
        given = options_given("update", options, kwargs, UPDATED)
        if not given:
            raise ValidationError(
                "At least one of text, metadata, timestamp, or expiration_date must be provided for update."
            )
        if "timestamp" in given:
            raise UnsupportedError(
                "when something was said does not change", suggestion="delete it and add it with its timestamp"
            )
        self._memory.update(memory_id, given.get("text"), given.get("metadata"), given.get("expiration_date", UNSET))
        return self.get(memory_id)

    @_told
    def delete(self, memory_id: str, delete_linked: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """Erase a memory. Its earlier versions go with it, with or without `delete_linked`."""
        return self._memory.delete(memory_id)

    @_told
    def delete_all(self, options: Any | None = None, **kwargs: Any) -> dict[str, str]:
        """Erase the memories of the given ids; `user_id="*"` is every user."""
        given = options_given("delete_all", options, kwargs, frozenset(("filters", *ENTITY_NAMES)))
        filters = {**(given.pop("filters", None) or {}), **given}
        if not filters:
            raise ValidationError("At least one filter is required to delete all memories.", path="$.filters")
        tree, owners = filters_given(filters, nested=True)
        memories = self._memory.memories
        is_whole = len(filters) == 1 and not set(filters).isdisjoint(ENTITIES)
        for owner in self._owners(owners):
            if filters.get("user_id") == "*" and owner.startswith(OWNERLESS):
                continue
            memories.delete_all(tree, owner, is_whole=is_whole)
        return {"message": "Memories deleted successfully!"}

    def _owners(self, owners: frozenset[str]) -> list[str]:
        return list(self._memory.memories.owners()) if "*" in owners else sorted(owners)

    @_told
    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """All versions of a memory, oldest first."""
        return self._memory.history(memory_id)

    @_told
    def users(self) -> dict[str, Any]:
        """All owners of a ledger: users, and agents and runs that were used without one."""
        memories = self._memory.memories
        found = []
        for state in memories.mem.store.users(tenant_id=memories.tenant_id):
            kind, name = entities_of_owner(state.user_id)
            found.append(
                {
                    "id": state.user_id,
                    "name": name,
                    "type": kind.removesuffix("_id"),
                    "total_memories": state.events,
                    "created_at": state.first_seen_at,
                    "updated_at": state.last_seen_at,
                }
            )
        return {"count": len(found), "next": None, "previous": None, "results": found}

    @_told
    def delete_users(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, str]:
        """Erase one of the owners that `users` lists, or all of them."""
        if app_id is not None:
            raise UnsupportedError("an app has no ledger", suggestion='delete_all(user_id="*", app_id=…)')
        given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        one = next(((name, value) for name, value in given.items() if value is not None), None)
        memories = self._memory.memories
        if one is None:
            owners = list(memories.owners())
            if not owners:
                raise ValidationError("No entities to delete")
        else:
            owners = [owner_of({one[0]: str(entity_id(one[1], one[0]))})]
            if not memories.has_owner(owners[0]):
                raise MemoryNotFoundError(f"no {one[0].removesuffix('_id')} {one[1]}", path=f"$.{one[0]}")
        for owner in owners:
            memories.mem.forget(user_id=owner, tenant_id=memories.tenant_id)
        all_gone = "All users, agents, apps and runs deleted."
        return {"message": all_gone if one is None else "Entity deleted successfully."}

    @_told
    def reset(self) -> dict[str, str]:
        """Erase all memories of all users."""
        self.delete_users()
        return {"message": "Client reset successful. All users and memories deleted."}

    @_told
    def batch_update(self, memories: list[dict[str, Any]]) -> dict[str, Any]:
        """Update several memories; if one does not exist, none is changed."""
        asked = _batch(memories, {"memory_id", "text", "metadata"})
        changes = []
        for number, each in enumerate(asked):
            text, metadata = each.get("text"), each.get("metadata")
            if text is None and metadata is None:
                raise ValidationError("each memory needs a text or metadata", path=f"$.memories[{number}]")
            present = self._memory.memories.known(each["memory_id"])[0]
            kept = None if metadata is None else own_metadata(metadata, "batch_update()", present)
            changes.append((each["memory_id"], text, kept))
        for change in changes:
            self._memory.memories.update(*change)
        return {"message": f"Successfully updated {len(changes)} memories"}

    @_told
    def batch_delete(self, memories: list[dict[str, Any]]) -> dict[str, Any]:
        """Erase several memories; if one does not exist, none is erased."""
        ids = list(dict.fromkeys(each["memory_id"] for each in _batch(memories, {"memory_id"})))
        for memory_id in ids:
            if self._memory.get(memory_id) is None:
                raise not_found(memory_id)
        for memory_id in ids:
            self._memory.delete(memory_id)
        return {"message": f"Successfully deleted {len(ids)} memories"}

    @_told
    def feedback(
        self, memory_id: str, feedback: str | None = None, feedback_reason: str | None = None
    ) -> dict[str, str]:
        """Store feedback with a memory. It changes neither the memory nor any ranking."""
        said = feedback.upper() if feedback else None
        if said is not None and said not in _FEEDBACK:
            raise ValidationError(f"feedback must be one of {', '.join(_FEEDBACK)} or None", path="$.feedback")
        noted = {"feedback": said, "feedback_reason": feedback_reason}
        self._memory.memories.update(memory_id, None, None, noted=noted)
        return {"message": "Feedback recorded", "memory_id": memory_id}

    @_told
    def get_profile(self, entity_id: str) -> dict[str, Any]:
        """A user's profile: the current facts, by their keys."""
        memories = self._memory.memories
        if not memories.has_owner(entity_id):
            raise MemoryNotFoundError(f"no user {entity_id}", path="$.entity_id")
        profile: dict[str, list[Any]] = {}
        for fact in memories.facts(entity_id):
            profile.setdefault(fact.fact_key, []).append(fact.value)
        return {
            "profile": {key: held[0] if len(held) == 1 else held for key, held in profile.items()},
            "status": "succeeded" if profile else "insufficient_data",
            "entity_type": "user",
            "entity_id": entity_id,
        }

    def close(self) -> None:
        """Close the connection; a store that was passed in stays open."""
        memories = self._memory.memories
        self._memory.close()
        if self._is_own:
            memories.mem.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()


def _connected(api_key: str | None, host: str | None, http: Any) -> runtime.Memory:
    if host is None:
        if api_key is None:
            raise ConfigurationError(
                "Mem0 API Key not provided. Please provide an API Key.",
                suggestion="MemoryClient(api_key=…, host=…) with a server of yours, or MemoryClient(client=mem)",
                path="$.api_key",
            )
        raise ConfigurationError(
            "there is no hosted platform: memories lie where you keep them",
            suggestion='host="https://…" of a `muniment serve`, or client=muniment.open("agent.db")',
            path="$.host",
        )
    import muniment

    try:
        return muniment.connect(host, key=api_key, http=http)
    except MunimentError as error:
        raise translated(error) from error.__cause__


def _counted(given: Mapping[str, Any], name: str, default: int) -> int:
    value = given.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValidationError(f"{name} must be a whole number from 1", path=f"$.{name}")
    return value


def _batch(memories: Any, keys: set[str]) -> Iterable[dict[str, Any]]:
    if not isinstance(memories, list) or not memories:
        raise ValidationError("memories must be a non-empty list of dicts", path="$.memories")
    for number, each in enumerate(memories):
        if not isinstance(each, dict) or not isinstance(each.get("memory_id"), str) or not set(each) <= keys:
            raise ValidationError(
                f"each memory is a dict with memory_id, and of {', '.join(sorted(keys))} alone",
                path=f"$.memories[{number}]",
            )
    return memories


def _shown(memory: dict[str, Any]) -> dict[str, Any]:
    """A memory in the platform's shape, with its categories and app next to the metadata."""
    metadata = memory.get("metadata") or {}
    more = {name: metadata[name] for name in ("categories", "app_id") if name in metadata}
    return {**memory, **more}
