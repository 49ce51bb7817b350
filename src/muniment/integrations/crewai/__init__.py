"""CrewAI over a muniment store: a memory for crews and agents, given as packets with citations.

    memory = MunimentMemory(mem, user_id="ana", session_id="chat-1")
    crew = Crew(agents=[…], tasks=[…], memory=memory)

Each task gets a packet, and the task and its result are recorded afterwards. This needs no model and no embedder.
CrewAI's own tools, `Search memory` and `Save to memory`, and its calls (`recall`, `remember`, `forget`, scopes,
categories) work with it.

Read in this order: `records` (an event of the ledger as CrewAI's record), `memory`.

Extra: `muniment[crewai]`.
"""

from muniment.integrations.crewai.memory import MunimentMemory

__all__ = ["MunimentMemory"]
