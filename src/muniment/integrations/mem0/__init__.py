"""The calls of mem0's `Memory` and `MemoryClient` over a muniment store, for people who move over; mem0 is not needed.

    from muniment.integrations.mem0 import Memory

    memory = Memory(muniment.open("agent.db"))
    memory.add("I moved to Berlin in May.", user_id="ana")
    memory.search("where does she live", filters={"user_id": "ana"})["results"]

A memory is something that was said: one event of the ledger, under the event's id. What a text states is also looked
for (`infer`), by rule or by a model of yours, and kept as facts on that evidence; a search finds both.

Where it differs, on purpose: an update is a new event that takes the place of the old one here, and what was said
before stays in the ledger (`history` shows it). A delete erases, history included, and leaves a receipt. Nothing
crosses a user unless the filter says so: what an agent or a run holds without a user is a ledger of its own.

To read in this order: `memory` (the signatures), `validation`, `filters`, `scoping` (whose), `memories` (the store),
`marks` and `searching`, `profile`, `shapes`; `config` and `providers`; `client`, `options`, `platform`. Nothing here
reads a store but through its public face.
"""

from muniment.integrations.mem0.async_client import AsyncMemoryClient
from muniment.integrations.mem0.async_memory import AsyncMemory
from muniment.integrations.mem0.client import MemoryClient
from muniment.integrations.mem0.memory import Memory

__all__ = ["AsyncMemory", "AsyncMemoryClient", "Memory", "MemoryClient"]
