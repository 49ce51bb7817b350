"""LangGraph over a muniment store.

    store = MunimentStore(mem, user_at=1)                      # a BaseStore; label 1 of a namespace names the user
    graph = builder.compile(checkpointer=MunimentSaver(mem), store=store)
    graph.add_node("remember", observe_node(mem))              # messages → ledger
    graph.add_node("recall", compose_node(mem))                # ledger → packet in the state

Extra: `muniment[langgraph]`.
"""

from muniment.integrations.langgraph.nodes import compose_node, observe_node
from muniment.integrations.langgraph.saver import MunimentSaver
from muniment.integrations.langgraph.store import AsyncMunimentStore, MunimentStore

__all__ = ["AsyncMunimentStore", "MunimentSaver", "MunimentStore", "compose_node", "observe_node"]
