"""muniment: evidence-first memory and context for LLM agents.

    import muniment

    with muniment.open("agent.db") as mem:
        run = mem.run(user_id="ana", agent_id="support", session_id="s1")
        said = run.observe("user", "I moved to Berlin in May.")
        print(said.id)

Importing this package loads nothing heavy; names are resolved when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muniment import aio, errors
    from muniment.core.policy import Policy
    from muniment.errors import MunimentError
    from muniment.handles.memory import Memory, open
    from muniment.handles.run import Run
    from muniment.integrations.wrapping.clients import wrap
    from muniment.store.ledger import EntryDraft, LedgerEntry, Receipt
    from muniment.surfaces.client.connecting import connect

__version__ = "0.1.0"

__all__ = [
    "EntryDraft",
    "LedgerEntry",
    "Memory",
    "MunimentError",
    "Policy",
    "Receipt",
    "Run",
    "__version__",
    "aio",
    "connect",
    "errors",
    "open",
    "wrap",
]

_HOMES = {
    "EntryDraft": "muniment.store.ledger",
    "LedgerEntry": "muniment.store.ledger",
    "Memory": "muniment.handles.memory",
    "MunimentError": "muniment.errors",
    "Policy": "muniment.core.policy",
    "Receipt": "muniment.store.ledger",
    "Run": "muniment.handles.run",
    "connect": "muniment.surfaces.client.connecting",
    "open": "muniment.handles.memory",
    "wrap": "muniment.integrations.wrapping.clients",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in ("aio", "errors"):
        return importlib.import_module(f"muniment.{name}")
    raise AttributeError(f"module 'muniment' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
