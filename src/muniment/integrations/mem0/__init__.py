"""The calls of mem0's `Memory` over a muniment store, for people who move over. It does not need mem0.

    from muniment.integrations.mem0 import Memory

    memory = Memory(muniment.open("agent.db"))
    memory.add("I moved to Berlin in May.", user_id="ana")
    memory.search("where does she live", filters={"user_id": "ana"})["results"]

A memory is something that was said: one event of the ledger, under the event's id. What a text states is also looked
for (`infer`), by patterns or by a model of yours, and kept as facts on that evidence; they come with `Run.compose`.

Where it differs, on purpose: an update is a new event that takes the place of the old one here, and what was said
before stays in the ledger (`history` shows it). A delete erases, history included, and leaves a receipt. Nothing
crosses a user: what an agent or a run holds without a user is a ledger of its own. Scores have their own scale, so a
`threshold` is applied only where you give one.
"""

from muniment.integrations.mem0.memory import AsyncMemory, Memory

__all__ = ["AsyncMemory", "Memory"]
