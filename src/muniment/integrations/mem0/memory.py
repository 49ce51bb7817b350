"""`Memory`: mem0's calls with mem0's signatures, over a muniment store."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from muniment.core.outside.system import system_clock
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import Closed
from muniment.handles import memory as runtime
from muniment.integrations.mem0.answers import list_memories, search_memories
from muniment.integrations.mem0.config import Opened, open_config
from muniment.integrations.mem0.exceptions import UnsupportedError, ValidationError
from muniment.integrations.mem0.filters import read_filters
from muniment.integrations.mem0.memories import Memories
from muniment.integrations.mem0.scoping import filters_given
from muniment.integrations.mem0.searching import Search
from muniment.integrations.mem0.shapes import owner_of
from muniment.integrations.mem0.validation import (
    UNSET,
    DefaultThreshold,
    check_memory_type,
    check_search_params,
    checked_query,
    entity_ids,
    expiration_day,
    logger,
    messages_given,
    moment_given,
    own_metadata,
    refuse_top_level,
)

if TYPE_CHECKING:
    from muniment.core.ports.models import Clock

__all__ = ["Memory"]

_THRESHOLD = DefaultThreshold(0.1)
_CHAT = "run.compose(…) makes a prompt of what is known, which any model answers"
_DEPRECATED = (
    "The `data` argument to update() is deprecated and will be removed in the next major release. Use `text` instead."
)


class Memory:
    """mem0's `Memory`. `config` is an open store, or a mem0 configuration; without one, a default file is opened.

    `model` proposes facts: an address, a function of messages or a client, as `run.extract` takes it. Thread-safe.
    """

    def __init__(
        self,
        config: Any = None,
        *,
        model: Any = None,
        tenant_id: str = DEFAULT_TENANT,
        clock: Clock = system_clock,
    ) -> None:
        opened = Opened(config, model, tenant_id, False) if isinstance(config, runtime.Memory) else open_config(config)
        self.config = config
        self._is_own = opened.is_own
        self._memories: Memories | None = Memories(opened.mem, model or opened.model, opened.tenant_id, clock)

    @classmethod
    def from_config(cls, config_dict: dict[str, Any]) -> Self:
        """Open a memory from mem0's configuration. Ignored keys are named once in a warning; keys that cannot be
        ignored without changing the meaning are refused (docs/guides/from-mem0.md).
        """
        return cls({} if config_dict is None else config_dict)

    @property
    def memories(self) -> Memories:
        """The memories of the store; raises `Closed` after `close`."""
        if self._memories is None:
            raise Closed("this memory was closed", hint="make another one")
        return self._memories

    @property
    def project(self) -> Project:
        return Project()

    def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timestamp: Any | None = None,
        expiration_date: Any | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Record messages. `run_id` is the session; `timestamp` is their time. Returns `results` and `facts`."""
        moment = None if timestamp is None else moment_given(timestamp, "$.timestamp")
        expires = expiration_day(expiration_date)
        entities = entity_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        owner_of(entities)
        kept = own_metadata(metadata, "add()")
        check_memory_type(memory_type, entities.get("agent_id"), prompt)
        said = messages_given(messages)
        if moment is None and isinstance(kept.get("created_at"), str):  # mem0 takes it from there
            moment = moment_given(kept.pop("created_at"), "$.metadata.created_at")
        return self.memories.add(said, entities, kept, expires=expires, timestamp=moment, infer=bool(infer))

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory or a fact by its id; None if there is none."""
        return self.memories.get(memory_id)

    def get_all(
        self,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Memories of the owners in the filters, newest first, at most `top_k`."""
        refuse_top_level(kwargs, "get_all")
        check_search_params(top_k=top_k)
        tree, owners = filters_given(filters)
        found = list_memories(self.memories, owners, tree, top_k, show_expired=show_expired)
        return {"results": [{key: value for key, value in each.items() if key != "score"} for each in found]}

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: dict[str, Any] | None = None,
        threshold: float = _THRESHOLD,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any | None = None,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Search the best memories and facts for a query, of the owners in the filters.

        `threshold` leaves out less likely evidence; by default, nothing is left out. `reference_date` is the time of
        the question. Results are already ranked, so `rerank` has no effect.
        """
        del rerank
        now = None if reference_date is None else moment_given(reference_date, "$.reference_date")
        refuse_top_level(kwargs, "search")
        check_search_params(threshold=threshold, top_k=top_k)
        asked = checked_query(query)
        tree, owners = filters_given(filters)
        least = 0.0 if threshold is None or isinstance(threshold, DefaultThreshold) else float(threshold)
        wanted = Search(asked, tree, top_k, least, show_expired, explain, now)
        return {"results": search_memories(self.memories, owners, wanted)}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory's text or metadata under the same id. Facts are extracted from it as when it was added."""
        if data is not None:
            logger.warning(_DEPRECATED)
            text = data if text is None else text
        if text is None and metadata is None and expiration_date is UNSET:
            raise ValidationError("At least one of text, metadata, or expiration_date must be provided.")
        expires = UNSET if expiration_date is UNSET else expiration_day(expiration_date)
        if text is not None and not isinstance(text, str):
            raise ValidationError(f"Memory with id {memory_id} does not have text content to update", path="$.text")
        present: Mapping[str, Any] = {} if metadata is None else self.memories.known(memory_id)[0]
        kept = None if metadata is None else own_metadata(metadata, "update()", present)
        self.memories.update(memory_id, text, kept, expires)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Erase a memory with its earlier versions and everything derived from it; for a fact, only the fact, not its
        evidence.
        """
        return {"message": "Memory deleted successfully!", "receipt_id": self.memories.delete(memory_id)}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Erase the memories of an owner; with only a user, everything of that user."""
        entities = entity_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        if not entities:
            raise ValidationError(
                "At least one filter is required to delete all memories. If you want to delete all memories, use the "
                "`reset()` method."
            )
        owner = owner_of(entities)
        self.memories.delete_all(read_filters(entities), owner, is_whole=len(entities) == 1)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """All versions of a memory, oldest first; for an erased one, only its erasure."""
        return self.memories.history(memory_id)

    def reset(self) -> None:
        """Erase everything: all users of the tenant, with a receipt."""
        logger.warning("Resetting all memories")
        self.memories.reset()

    def close(self) -> None:
        """Close the store. One that was passed in open stays open."""
        memories, self._memories = self._memories, None
        if memories is not None and self._is_own:
            memories.mem.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()

    def chat(self, query: str) -> Any:  # noqa: ARG002
        """Raise an error, as in mem0."""
        raise UnsupportedError("Chat function not implemented yet.", suggestion=_CHAT)


class Project:
    """Project settings of mem0's platform, which a self-hosted store does not have."""

    def update(
        self,
        custom_instructions: str | None = None,  # noqa: ARG002  # mem0's signature
        custom_categories: list[Any] | None = None,  # noqa: ARG002
        multilingual: bool | None = None,  # noqa: ARG002
        decay: bool | None = None,
    ) -> Any:
        if decay is True:
            raise UnsupportedError("The decay parameter is not supported by the OSS Memory SDK.", path="$.decay")
        raise UnsupportedError("Project updates are not supported by the OSS Memory SDK.")
