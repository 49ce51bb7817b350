"""The store behind a handle, for what LangGraph asks for that no other handle has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.store.context import Context

__all__ = ["context_of"]


def context_of(mem: Memory) -> Context:
    """The context of a store that was opened in this process."""
    ctx: Context | None = getattr(mem, "_ctx", None)
    if ctx is None:
        raise InvalidInput(
            "LangGraph's store and checkpointer need a store that is opened in this process",
            path="$.mem",
            hint="muniment.open(…) or muniment.open('postgresql://…'); a server's store can be opened beside it",
        )
    return ctx
