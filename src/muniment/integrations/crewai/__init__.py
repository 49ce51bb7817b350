"""CrewAI over a muniment store: a memory for crews and agents that is told as a packet and leads back to its sources.

    memory = MunimentMemory(mem, user_id="ana", session_id="chat-1")
    crew = Crew(agents=[…], tasks=[…], memory=memory)

Before each task stands a packet, and after it the task and its result are recorded. No model and no embedder is asked
for it. CrewAI's own tools, `Search memory` and `Save to memory`, and its calls (`recall`, `remember`, `forget`, scopes,
categories) work on it.

Read in this order: `records` (an event of the ledger as CrewAI's record), `memory`.

Extra: `muniment[crewai]`.
"""

from muniment.integrations.crewai.memory import MunimentMemory

__all__ = ["MunimentMemory"]
