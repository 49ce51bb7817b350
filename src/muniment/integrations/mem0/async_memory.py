"""`AsyncMemory`: the calls of `Memory` with `await`, derived from it. Each runs in a worker thread."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from muniment.integrations.mem0.exceptions import UnsupportedError
from muniment.integrations.mem0.memory import Memory, Project

__all__ = ["AsyncMemory", "awaiting"]

R = TypeVar("R")


def awaiting(call: Callable[..., R]) -> Callable[..., Coroutine[Any, Any, R]]:
    """Wrap a call of the sync object that an async one holds, to run in a worker thread."""

    @functools.wraps(call)
    async def awaited(self: Any, *args: Any, **kwargs: Any) -> R:
        return await asyncio.to_thread(call, self._sync, *args, **kwargs)

    return awaited


class AsyncProject:
    """`Project` with `await`."""

    def __init__(self) -> None:
        self._sync = Project()

    update = awaiting(Project.update)


class AsyncMemory:
    """mem0's `AsyncMemory`. It takes the arguments of `Memory`."""

    def __init__(self, config: Any = None, **parts: Any) -> None:
        self._sync = Memory(config, **parts)
        self.config = config

    @classmethod
    def from_config(cls, config_dict: dict[str, Any]) -> Self:
        """See `Memory.from_config`."""
        return cls({} if config_dict is None else config_dict)

    @property
    def project(self) -> AsyncProject:
        return AsyncProject()

    async def add(
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
        llm: Any = None,
    ) -> dict[str, Any]:
        """See `Memory.add`. `llm` is for procedural memories, which are not supported."""
        if llm is not None:
            raise UnsupportedError(
                "llm writes procedural memories, and nothing here rewrites what was said",
                suggestion="leave it out; AsyncMemory(mem, model=…) takes a model that proposes facts",
                path="$.llm",
            )
        return await asyncio.to_thread(
            self._sync.add,
            messages,
            user_id=user_id,
            agent_id=agent_id,
            run_id=run_id,
            metadata=metadata,
            timestamp=timestamp,
            expiration_date=expiration_date,
            infer=infer,
            memory_type=memory_type,
            prompt=prompt,
        )

    get = awaiting(Memory.get)
    get_all = awaiting(Memory.get_all)
    search = awaiting(Memory.search)
    update = awaiting(Memory.update)
    delete = awaiting(Memory.delete)
    delete_all = awaiting(Memory.delete_all)
    history = awaiting(Memory.history)
    reset = awaiting(Memory.reset)
    chat = awaiting(Memory.chat)

    def close(self) -> None:
        """See `Memory.close`."""
        self._sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)
