"""Strands Agents over a muniment store: a plugin with a packet for each question, conversations, a memory store.

    agent = Agent(
        model=model,
        plugins=[MunimentPlugin(mem, user_id="ana", session_id="chat-1")],
        session_manager=MunimentSessionManager("chat-1", mem, user_id="ana"),
    )

Each works without the others. If a plugin and a session manager serve the same session, the manager records and the
plugin adds packets. `MunimentMemoryStore` is for use with Strands' own `MemoryManager`.

Read in this order: `messages` (a message of Strands in the form of an API), `plugin`, `sessions`, `stores`.

Extra: `muniment[strands]`.
"""

from muniment.integrations.strands.plugin import MunimentPlugin
from muniment.integrations.strands.sessions import MunimentSessionManager
from muniment.integrations.strands.stores import MunimentMemoryStore

__all__ = ["MunimentMemoryStore", "MunimentPlugin", "MunimentSessionManager"]
