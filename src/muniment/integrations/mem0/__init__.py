"""The calls of mem0's `Memory` and `MemoryClient` over a muniment store, for migration; mem0 is not needed.

    from muniment.integrations.mem0 import Memory

    memory = Memory(muniment.open("agent.db"))
    memory.add("I moved to Berlin in May.", user_id="ana")
    memory.search("where does she live", filters={"user_id": "ana"})["results"]

A memory is one ledger event, under the event's id. Facts in its text are also extracted (`infer`), by rules or by your
model, and stored with that evidence; a search finds both.

Deliberate differences: an update is a new event that replaces the old one here, while the old one stays in the ledger
(`history` shows it). A delete erases, history included, and leaves a receipt. Users are isolated unless the filter says
otherwise: memories of an agent or a run without a user have their own ledger.

Read in this order: `memory` (the signatures), `validation`, `filters`, `scoping` (whose), `memories` (the store),
`marks` and `searching`, `profile`, `shapes`; `config` and `providers`; `client`, `options`, `platform`. All access to a
store is through its public face.
"""

from muniment.integrations.mem0.async_client import AsyncMemoryClient
from muniment.integrations.mem0.async_memory import AsyncMemory
from muniment.integrations.mem0.client import MemoryClient
from muniment.integrations.mem0.memory import Memory

__all__ = ["AsyncMemory", "AsyncMemoryClient", "Memory", "MemoryClient"]
